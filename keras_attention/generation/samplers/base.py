"""What samplers are, and what those have in common that choose one token after the other."""

from keras import ops

from keras_attention.part import Part

IMPOSSIBLE = -1e9
"""The logit, or log-probability, of what may not be chosen; finite, as LiteRT wants it."""


class Sampler(Part):
    """Says how a sequence is found in the distributions that a model gives."""

    seed = None


class TokenSampler(Sampler):
    """A sampler that chooses one token after the other, each for good.

    A subclass says with which `probabilities`. It may override `choose` where that is cheaper.
    """

    def probabilities(self, logits):
        """Float32 logits (B, V), `IMPOSSIBLE` where forbidden -> probabilities (B, V)."""
        raise NotImplementedError(f"{type(self).__name__}.probabilities")

    def choose(self, logits, uniform):
        """The next tokens, int32 (B,).

        Args:
            logits: float32 (B, V).
            uniform: float32 (B,), numbers in [0, 1) that decide where chance does.
        """
        return draw(self.probabilities(logits), uniform)


def draw(weights, uniform):
    """Draws ids, int32 (B,), in proportion to `weights` (B, V), by the inverse of their sum.

    Args:
        weights: float32 (B, V), not negative. An id of weight 0 is never drawn.
        uniform: float32 (B,), in [0, 1), multiples of 2^-23.
    """
    # Sums that are computed in parallel may rise by a rounding where a weight is 0.
    sums = ops.where(weights > 0.0, ops.cumsum(weights, axis=-1), 0.0)
    bound = ops.expand_dims(uniform, axis=-1) * ops.max(sums, axis=-1, keepdims=True)
    return first_of(sums > bound)


def first_of(marked):
    """The first id that is marked in each row, int32 (B,) of bool (B, V); the last id if none is.

    An `argmax`, which takes an op that LiteRT lacks for floats, and the longest of all for bools.
    """
    last = marked.shape[-1] - 1
    return ops.min(ops.where(marked, ops.arange(last + 1, dtype="int32"), last), axis=-1)
