"""The sigmoid normalizer: a weight for each key, independent of the others."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer, count_allowed


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sigmoid(Normalizer, Part):
    """`weights = 1 / (1 + exp(-(s + b)))` (Ramapuram et al., 2024).

    Keys do not compete: rows need not sum to 1. With `bias="-log_length"`, the paper's advice, sums
    start near 1. The length is the number of the row's visible keys, so that padding, and later
    tokens in causal attention, change nothing.

    Args:
        bias: float, b itself, or `"-log_length"`.

    Masking: as in `Normalizer`.

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
