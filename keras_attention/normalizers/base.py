"""What every normalizer is: scores in, weights out, and nothing where nothing may be seen."""

import keras
from keras import ops

from keras_attention import scope


class Normalizer:
    """Turns scores into weights: `normalizer(scores, mask)`, over the last axis.

    A subclass says how in `normalize`, for float32 scores; this class does what all share. It adds
    a large negative number where the mask forbids, and multiplies the weights by the mask after:
    masked weights are exact zeros, and a row that may attend to nothing gets zeros with zero
    gradient, even though its scores, all equally low, have been normalized like any others.

    Inside `scope.Export(mask_constant=-100.0)` the number is that mild, for int8. It then bounds
    what the scores may be: an unmasked score below it by far loses its weight to masked ones.

    Call arguments:
        scores: float, (B, N, T, S) or any shape of rank 4 or less.
        mask: bool, True = may attend, broadcastable to the scores' shape, or None.

    Returns:
        The weights, in the scores' shape and dtype; computed in float32 whatever that is.
    """

    temperature = 1.0
    """What `normalize` divides the scores by, with the mask in them already."""

    def __call__(self, scores, mask=None):
        dtype = keras.backend.standardize_dtype(scores.dtype)
        scores = self.prepare(ops.cast(scores, "float32"))
        if mask is None:
            return ops.cast(self.normalize(scores, None), dtype)
        allowed = ops.cast(mask, "float32")
        scores = scores + (1.0 - allowed) * self.mask_constant()
        return ops.cast(self.normalize(scores, allowed) * allowed, dtype)

    def loose(self, scores, mask):
        """The weights, but of a row that may attend to nothing any weights: a kernel that clears
        the output of such rows needs no pass over the weights for them.
        """
        return self(scores, mask)

    def mask_constant(self):
        """What is added to the scores of masked keys."""
        return scope.mask_constant() * self.temperature

    def prepare(self, scores):
        """What happens to the scores before the mask."""
        return scores

    def normalize(self, scores, allowed):
        """Float32 scores, masked ones very low, to weights.

        `allowed` is the mask as 0.0 and 1.0, broadcastable to the scores, or None.
        """
        raise NotImplementedError(f"{type(self).__name__}.normalize")


def count_allowed(scores, allowed):
    """How many keys each row may attend to, at least 1; a number or a float32 tensor (..., 1)."""
    length = ops.shape(scores)[-1]
    if allowed is None:
        return ops.cast(length, "float32")
    # A mask of width 1 speaks for all keys.
    repeats = ops.cast(length // ops.shape(allowed)[-1], "float32")
    return ops.maximum(ops.sum(allowed, axis=-1, keepdims=True) * repeats, 1.0)
