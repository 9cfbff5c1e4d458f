"""`Sampler` and `TokenSampler`, the base classes, and drawing by probabilities."""

from keras import ops

from keras_attention.core.part import Part

IMPOSSIBLE = -1e9
"""The logit, or log-probability, of a token that may not be chosen; finite for LiteRT."""


class Sampler(Part):
    """Finds a sequence in the distributions that a model gives, token by token."""

    seed = None


class TokenSampler(Sampler):
    """A sampler that chooses one token after the other, and takes none back.

    A subclass defines the `probabilities`, and may override `choose` with something cheaper.
    """

    def probabilities(self, logits):
        """Float32 logits (B, V), `IMPOSSIBLE` where forbidden -> probabilities (B, V)."""
        raise NotImplementedError(f"{type(self).__name__}.probabilities")

    def choose(self, logits, uniform):
        """Return the next tokens, int32 (B,).

        Args:
            logits: float32 (B, V).
            uniform: float32 (B,), random numbers in [0, 1).
        """
        return draw(self.probabilities(logits), uniform)


def draw(weights, uniform):
    """Draws ids, int32 (B,), in proportion to `weights` (B, V), by inverse transform sampling.

    Args:
        weights: float32 (B, V), not negative. An id of weight 0 is never drawn.
        uniform: float32 (B,), in [0, 1), multiples of 2^-23.
    """
    # Sums computed in parallel may rise by a rounding error where a weight is 0.
    sums = ops.where(weights > 0.0, ops.cumsum(weights, axis=-1), 0.0)
    bound = ops.expand_dims(uniform, axis=-1) * ops.max(sums, axis=-1, keepdims=True)
    return first_of(sums > bound)


def first_of(marked):
    """The first id that is marked in each row, int32 (B,) of bool (B, V); the last id if none is.

    In place of `argmax`, which LiteRT lacks for floats and computes slowly for bools.
    """
    last = marked.shape[-1] - 1
    return ops.min(ops.where(marked, ops.arange(last + 1, dtype="int32"), last), axis=-1)
