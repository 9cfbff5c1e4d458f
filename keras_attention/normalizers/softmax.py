"""Softmax, with temperature, soft cap, and one more zero score (plus one)."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer

LEAST_OF_EXP = -1e4  # below it exp is zero in float32, also after scores are added


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Softmax(Normalizer, Part):
    """`weights = exp(s) / sum exp(s)` (Vaswani et al., 2017, equation 1).

    Args:
        temperature: float above 0; the scores are divided by it, after `soft_cap`.
        soft_cap: float above 0, or None. Scores become `soft_cap · tanh(s / soft_cap)`, before the
            mask (Gemma 2, 2024, section 2).
        plus_one: bool. `exp(s) / (1 + sum exp(s))`, so that a head may attend to nothing much
            (Miller, 2023, "Attention is off by one"): rows sum to less than 1.

    Masking: as in `Normalizer`.

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
        if self.soft_cap is not None:
            checks.check_number(self, "soft_cap", above=0)
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
        # Not in `prepare`: TensorFlow fuses product · scale + mask, in this order, slowly.
        scores = scores if self.temperature == 1 else scores / self.temperature
        return softmax_with_sink(scores, 0.0) if self.plus_one else softmax(scores)


def softmax(scores):
    """Softmax over the last axis, without the warning of Keras's own for a single key."""
    if scores.shape[-1] == 1:
        return 1.0 + 0.0 * scores  # with a gradient, of zero
    return ops.softmax(scores, axis=-1)


def softmax_with_sink(scores, sink):
    """Softmax over the last axis and one more score, `sink`, that belongs to no key."""
    highest = ops.maximum(ops.max(scores, axis=-1, keepdims=True), sink)
    highest = ops.stop_gradient(highest)
    exponentials = ops.exp(scores - highest)
    total = ops.sum(exponentials, axis=-1, keepdims=True) + ops.exp(sink - highest)
    return exponentials / total
