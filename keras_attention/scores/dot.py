"""Dot-product scores, plain and scaled."""

import dataclasses

import keras

from keras_attention.core.part import Part
from keras_attention.scores.base import Score, check_one_width, compute_product


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Dot(Score, Part):
    """The dot-product score `q · k` (Luong et al., 2015, section 3.1, *dot*).

    The variance of this score grows with H. `ScaledDot` keeps it at 1.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, H).

    Returns:
        (B, N, T, S), in the dtype of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.ones((1, 5, 2, 4), "float32"), np.ones((1, 7, 2, 4), "float32")
    scores = ka.scores.Dot()(query, key)
    assert scores.shape == (1, 2, 5, 7) and np.all(np.asarray(scores) == 4)
    ```
    """

    def __call__(self, query, key):
        return compute_product(self, query, key)

    def fold(self, query, key):
        check_one_width(self, query, key)
        return query, key, 1.0


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ScaledDot(Score, Part):
    """The scaled dot product `q · k / √H`, the score of the Transformer (Vaswani et al., 2017).

    The query is scaled before the product, so that float16 does not overflow.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, H).

    Returns:
        (B, N, T, S), in the dtype of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.ones((1, 5, 2, 4), "float32"), np.ones((1, 7, 2, 4), "float32")
    scores = ka.scores.ScaledDot()(query, key)
    assert np.all(np.asarray(scores) == 4 / np.sqrt(4))
    ```
    """

    def __call__(self, query, key):
        return compute_product(self, query, key)

    def fold(self, query, key):
        check_one_width(self, query, key)
        return query, key, query.shape[-1] ** -0.5
