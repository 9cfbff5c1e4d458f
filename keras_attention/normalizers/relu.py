"""The ReLU normalizer: the positive part of each score."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer, count_allowed


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ReLU(Normalizer, Part):
    """ReLU of scores s: `weights = max(0, s)`, or `max(0, s) / length` (Wortsman et al., 2023).

    The weights of a query need not sum to 1. The length is the number of keys that the query sees,
    so padding, or later tokens in causal attention, do not change the weights.

    Args:
        divide_by_length: bool, whether to divide by the length, as in the paper.

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = ka.normalizers.ReLU(divide_by_length=True)(
        np.array([[8.0, 4.0, -1.0, 0.0]], "float32")
    )
    assert np.allclose(weights, [[2, 1, 0, 0]])
    ```
    """

    divide_by_length: bool = False

    def __post_init__(self):
        checks.check_choice(self, "divide_by_length", (True, False))

    def normalize(self, scores, allowed):
        weights = ops.relu(scores)
        return weights / count_allowed(scores, allowed) if self.divide_by_length else weights
