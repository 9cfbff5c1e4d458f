"""The sigmoid normalizer: the weight of a key does not depend on other keys."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer, count_allowed


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sigmoid(Normalizer, Part):
    """Sigmoid of scores s: `weights = 1 / (1 + exp(-(s + b)))` (Ramapuram et al., 2024).

    The weights of a query need not sum to 1. With `bias="-log_length"`, as the paper recommends,
    their sums are near 1 at the start of training. The length is the number of keys that the query
    sees, so padding, or later tokens in causal attention, do not change the weights.

    Args:
        bias: float, b, or `"-log_length"` for the negative logarithm of the length.

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    scores, mask = np.zeros((1, 1, 1, 6), "float32"), np.arange(6) < 4
    weights = ka.normalizers.Sigmoid(bias="-log_length")(scores, mask)
    assert np.allclose(weights, [1 / (1 + 4)] * 4 + [0] * 2)
    assert np.allclose(ka.normalizers.Sigmoid()(scores), 0.5)
    ```
    """

    bias: float | str = 0.0

    def __post_init__(self):
        if isinstance(self.bias, str):
            checks.check_choice(self, "bias", ("-log_length",))
        else:
            checks.check_number(self, "bias")

    def normalize(self, scores, allowed):
        if self.bias == "-log_length":
            return ops.sigmoid(scores - ops.log(count_allowed(scores, allowed)))
        return ops.sigmoid(scores + self.bias)
