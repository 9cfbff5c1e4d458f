"""The base class of normalizers, which sets the weights of hidden keys to exactly zero."""

import keras
from keras import ops

from keras_attention.core import scope


class Normalizer:
    """Base class of normalizers, which turn scores into attention weights over the last axis.

    A normalizer is called as `normalizer(scores, mask)`. A subclass defines `normalize` for float32
    scores. This base class adds a large negative number to masked scores, and multiplies the
    resulting weights by the mask. The weights of masked keys are therefore exactly zero. If a query
    sees no key, all its weights and gradients are zero.

    Inside `scope.Export(mask_constant=-100.0)`, which is used for int8 quantization, this number is
    -100. Unmasked scores far below -100 would then lose their weight to masked ones.

    Call arguments:
        scores: float, (B, N, T, S) or any shape of rank 4 or less.
        mask: bool, True = may attend, broadcastable to the scores' shape, or None.

    Returns:
        The weights, in the shape and dtype of the scores. They are computed in float32. For integer
        scores they have Keras's default float dtype.
    """

    def __init_subclass__(cls, **kwargs):
        """Reset `exponents` in a subclass that computes weights in another way than its parent."""
        super().__init_subclass__(**kwargs)
        if {"normalize", "__call__"} & set(vars(cls)) and "exponents" not in vars(cls):
            cls.exponents = None

    temperature = 1.0
    """The number by which `normalize` divides the masked scores."""

    exponents = None
    """A method that maps unmasked float32 scores to exponents e, or None.

    Normalizers of the form `weights = exp(e) / (exp(sink) + sum exp(e))` define it, because their
    sums can be accumulated key by key. Other normalizers have None.
    """

    sink = None
    """An additional exponent in the denominator, a number or float32 (N,), or None.

    Only normalizers with `exponents` may have one.
    """

    def __call__(self, scores, mask=None):
        dtype = keras.backend.result_type(scores.dtype, float)
        if 0 in scores.shape:  # empty scores have no maximum
            return ops.cast(scores, dtype)
        scores = self.prepare(ops.cast(scores, "float32"))
        if mask is None:
            return ops.cast(self.normalize(scores, None), dtype)
        allowed = ops.cast(mask, "float32")
        scores = scores + (1.0 - allowed) * self.mask_constant()
        return ops.cast(self.normalize(scores, allowed) * allowed, dtype)

    def loose(self, scores, mask):
        """Compute the weights like a call, but with arbitrary weights if a query sees no key.

        `scores` and `mask` are the arguments of a call. Kernels that later set the output of such
        queries to zero use this method, to save a pass over the weights.
        """
        return self(scores, mask)

    def mask_constant(self):
        """Return the number added to the scores of masked keys."""
        return scope.mask_constant() * self.temperature

    def prepare(self, scores):
        """Return the scores, transformed before the mask applies. By default they are unchanged."""
        return scores

    def normalize(self, scores, allowed):
        """Compute the weights of float32 scores. Masked scores are already very low.

        `allowed` is the mask as floats 0.0 and 1.0, broadcastable to the scores, or None.
        """
        raise NotImplementedError(f"{type(self).__name__}.normalize")


def count_allowed(scores, allowed):
    """Count the keys that each query sees, at least 1: float32 (..., 1).

    `scores` is (..., S), one for each of S keys. `allowed` is the mask as floats 0.0 and 1.0. If it
    is None, return S, a scalar.
    """
    length = ops.shape(scores)[-1]
    if allowed is None:
        return ops.cast(length, "float32")
    # A mask of width 1 applies to all keys.
    repeats = ops.cast(length // ops.shape(allowed)[-1], "float32")
    return ops.maximum(ops.sum(allowed, axis=-1, keepdims=True) * repeats, 1.0)
