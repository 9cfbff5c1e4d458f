"""Softmax, with an optional temperature, soft cap, and 1 in the denominator."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer

LEAST_OF_EXP = -1e4  # exp of a lower number is zero in float32, even if a score is added to it


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Softmax(Normalizer, Part):
    """Softmax of scores s: `weights = exp(s) / sum exp(s)` (Vaswani et al., 2017, equation 1).

    Args:
        temperature: positive float, by which scores are divided, after `soft_cap`.
        soft_cap: positive float, or None. Before they are masked, scores are limited to
            `soft_cap · tanh(s / soft_cap)` (Gemma 2, 2024, section 2). None does not limit them.
        plus_one: bool, whether to compute `exp(s) / (1 + sum exp(s))`, so that weights may sum to
            less than 1 (Miller, 2023, "Attention is off by one").

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = ka.normalizers.Softmax()(np.zeros((1, 1, 1, 4), "float32"))
    assert np.allclose(weights, 1 / 4)
    weights = ka.normalizers.Softmax(plus_one=True)(np.zeros((1, 1, 1, 4), "float32"))
    assert np.allclose(weights, 1 / 5)
    ```
    """

    temperature: float = 1.0
    soft_cap: float | None = None
    plus_one: bool = False

    def __post_init__(self):
        checks.check_number(self, "temperature", above=0)
        checks.check_number(self, "soft_cap", above=0, optional=True)
        checks.check_choice(self, "plus_one", (True, False))

    def loose(self, scores, mask):
        if mask is None or scope.mask_constant() > LEAST_OF_EXP:
            return self(scores, mask)
        dtype = keras.backend.result_type(scores.dtype, float)
        scores = self.prepare(ops.cast(scores, "float32"))
        scores = scores + (1.0 - ops.cast(mask, "float32")) * self.mask_constant()
        return ops.cast(self.normalize(scores, None), dtype)  # exp of masked scores is exactly 0

    def prepare(self, scores):
        if self.soft_cap is None:
            return scores
        return self.soft_cap * ops.tanh(scores / self.soft_cap)

    def exponents(self, scores):
        return self.prepare(scores) / self.temperature

    @property
    def sink(self):
        return 0.0 if self.plus_one else None

    def normalize(self, scores, allowed):
        # Not in `prepare`, where TensorFlow would fuse product · scale + mask, which is slow.
        scores = scores if self.temperature == 1 else scores / self.temperature
        return softmax_with_sink(scores, 0.0) if self.plus_one else softmax(scores)


def softmax(scores):
    """Compute the softmax of `scores` over the last axis, without Keras's warning for one key."""
    if scores.shape[-1] == 1:
        return 1.0 + 0.0 * scores  # ones with a gradient of zero
    return ops.softmax(scores, axis=-1)


def softmax_with_sink(scores, sink):
    """Compute the softmax of scores (B, N, T, S) over the last axis with one more score, `sink`.

    The sink, a number or a tensor (1, N, 1, 1), takes part in the denominator. Its own weight is
    dropped.
    """
    highest = ops.maximum(ops.max(scores, axis=-1, keepdims=True), sink)
    highest = ops.stop_gradient(highest)
    exponentials = ops.exp(scores - highest)
    total = ops.sum(exponentials, axis=-1, keepdims=True) + ops.exp(sink - highest)
    return exponentials / total
