"""Top-k softmax: softmax over the k highest scores of each query."""

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
    """Softmax over the k highest scores of a query. Other weights are 0 (Gupta et al., 2021).

    All scores equal to the k-th highest are included, so more than k keys get weight if there are
    ties. If there are fewer than k keys, this is the ordinary softmax.

    Args:
        k: int, at least 1, the number of keys that get weight. It may be larger than the number of
            keys.

    Masking: the weights of hidden keys are exactly zero, and they are never among the k.

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
        length = ops.shape(scores)[-1]  # an int if it is static, otherwise a tensor
        k = min(self.k, length) if isinstance(length, int) else ops.minimum(self.k, length)
        highest, _ = ops.top_k(ops.stop_gradient(scores), k)
        is_among = ops.cast(scores >= ops.min(highest, axis=-1, keepdims=True), "float32")
        weights = softmax(scores) * is_among
        return weights / ops.sum(weights, axis=-1, keepdims=True)
