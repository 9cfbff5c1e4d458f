"""Top-k softmax: softmax over the k highest scores of a row."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.softmax import softmax


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class TopK(Normalizer, Part):
    """Softmax over the k highest scores of a row, zero elsewhere (Gupta et al., 2021).

    All scores equal to the k-th highest are kept, so that the order of the keys does not matter:
    with ties, more than k keys get weight. A row of fewer than k keys gets plain softmax.

    Args:
        k: int, at least 1; may be larger than the number of keys.

    Masking: as in `Normalizer`; masked keys take no place among the k.

    ```python
    import numpy as np
    import keras_attention as ka

    scores = np.array([[3.0, 1.0, 2.0, 3.0]], "float32")
    assert np.allclose(ka.normalizers.TopK(2)(scores), [[0.5, 0, 0, 0.5]])
    assert np.allclose(ka.normalizers.TopK(1)(scores), [[0.5, 0, 0, 0.5]])  # a tie
    ```
    """

    k: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "k")

    def normalize(self, scores, allowed):
        length = ops.shape(scores)[-1]  # an int where it is known, else a tensor
        k = min(self.k, length) if isinstance(length, int) else ops.minimum(self.k, length)
        highest, _ = ops.top_k(ops.stop_gradient(scores), k)
        kept = ops.cast(scores >= ops.min(highest, axis=-1, keepdims=True), "float32")
        weights = softmax(scores) * kept
        return weights / ops.sum(weights, axis=-1, keepdims=True)
