"""`Sampler` and `TokenSampler`, the base classes of samplers, and random choices of ids."""

from keras import ops

from keras_attention.core.part import Part

IMPOSSIBLE = -1e9
"""The logit, or log-probability, of a forbidden token. It is finite for LiteRT."""


class Sampler(Part):
    """Base class of the settings that say how `generate` chooses tokens from logits."""

    seed = None


class TokenSampler(Sampler):
    """Base class of samplers that choose one token after the other, and never replace a token.

    A subclass defines `probabilities`. It can override `choose` if there is a faster way than to
    sample from these probabilities.
    """

    def probabilities(self, logits):
        """Return the probability of choosing each token, in the shape of `logits`.

        `logits` are float32 (B, vocabulary_size). Forbidden tokens have the logit `IMPOSSIBLE`,
        -1e9.
        """
        raise NotImplementedError(f"{type(self).__name__}.probabilities")

    def choose(self, logits, uniform):
        """Return the next tokens, int32 (B,).

        Args:
            logits: float32 (B, vocabulary_size).
            uniform: float32 (B,), random numbers in [0, 1).
        """
        return draw(self.probabilities(logits), uniform)


def draw(weights, uniform):
    """Sample one id for each row, int32 (B,), in proportion to `weights`.

    Args:
        weights: float32 (B, vocabulary_size), not negative. An id of weight 0 is never chosen.
        uniform: float32 (B,), in [0, 1), multiples of 2^-23.
    """
    # Sums computed in parallel may rise by a rounding error at a weight of 0.
    sums = ops.where(weights > 0.0, ops.cumsum(weights, axis=-1), 0.0)
    bound = ops.expand_dims(uniform, axis=-1) * ops.max(sums, axis=-1, keepdims=True)
    return first_of(sums > bound)


def first_of(marked):
    """Return the first id, int32 (B,), that is True in each row of `marked`, bool (B, ids).

    A row without True returns the last id. The function replaces `argmax`, which LiteRT lacks for
    floats and computes slowly for bools.
    """
    last = marked.shape[-1] - 1
    return ops.min(ops.where(marked, ops.arange(last + 1, dtype="int32"), last), axis=-1)
