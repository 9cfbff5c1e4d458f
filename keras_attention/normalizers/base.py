"""The base class of normalizers, with exact zeros where the mask hides keys."""

import keras
from keras import ops

from keras_attention.core import scope


class Normalizer:
    """Turns scores into weights: `normalizer(scores, mask)`, over the last axis.

    A subclass defines `normalize` for float32 scores; this class applies the mask. It adds a large
    negative number to masked scores and multiplies the weights by the mask: masked weights are
    exact zeros, and a row without visible keys gets zeros with zero gradient.

    Inside `scope.Export(mask_constant=-100.0)` that number is -100, for int8: an unmasked score far
    below it then loses its weight to masked ones.

    Call arguments:
        scores: float, (B, N, T, S) or any shape of rank 4 or less.
        mask: bool, True = may attend, broadcastable to the scores' shape, or None.

    Returns:
        The weights, in the scores' shape and dtype (Keras's float dtype for integers), computed in
        float32.
    """

    def __init_subclass__(cls, **kwargs):
        """Keep a normalizer that computes something else from inheriting exponents."""
        super().__init_subclass__(**kwargs)
        if {"normalize", "__call__"} & set(vars(cls)) and "exponents" not in vars(cls):
            cls.exponents = None

    temperature = 1.0
    """The number that `normalize` divides masked scores by."""

    exponents = None
    """For a normalizer that is a softmax of changed scores: `exponents(scores)`, what `exp` is of.

    Float32 scores to float32 exponents, before the mask: `weights = exp(e) / (exp(sink) + sum
    exp(e))` can be added up key by key. None for all others.
    """

    sink = None
    """Of one with `exponents`: one more exponent, a number or float32 (N,). None for none."""

    def __call__(self, scores, mask=None):
        dtype = keras.backend.result_type(scores.dtype, float)
        if 0 in scores.shape:  # empty, without a maximum
            return ops.cast(scores, dtype)
        scores = self.prepare(ops.cast(scores, "float32"))
        if mask is None:
            return ops.cast(self.normalize(scores, None), dtype)
        allowed = ops.cast(mask, "float32")
        scores = scores + (1.0 - allowed) * self.mask_constant()
        return ops.cast(self.normalize(scores, allowed) * allowed, dtype)

    def loose(self, scores, mask):
        """Return the weights; those of a row without visible keys may be anything.

        For kernels that clear the output of such rows: it saves a pass over the weights.
        """
        return self(scores, mask)

    def mask_constant(self):
        """Return the number added to the scores of masked keys."""
        return scope.mask_constant() * self.temperature

    def prepare(self, scores):
        """Changes the scores before the mask; by default not at all."""
        return scores

    def normalize(self, scores, allowed):
        """Return the weights of float32 scores, in which masked scores are very low.

        `allowed` is the mask as 0.0 and 1.0, broadcastable to the scores, or None.
        """
        raise NotImplementedError(f"{type(self).__name__}.normalize")


def count_allowed(scores, allowed):
    """Return the number of visible keys of each row, at least 1: a number or float32 (..., 1)."""
    length = ops.shape(scores)[-1]
    if allowed is None:
        return ops.cast(length, "float32")
    # A mask of width 1 is for all keys.
    repeats = ops.cast(length // ops.shape(allowed)[-1], "float32")
    return ops.maximum(ops.sum(allowed, axis=-1, keepdims=True) * repeats, 1.0)
