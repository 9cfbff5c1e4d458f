"""`TokenChoice`: greedy search and sampling in NumPy, for files that run without Keras."""

import dataclasses

import numpy as np

from keras_attention.core import checks
from keras_attention.core.lazy import generation

IMPOSSIBLE = -1e9  # the logit of a forbidden token


@dataclasses.dataclass(frozen=True)
class TokenChoice:
    """Chooses the same tokens as `ka.generation.Greedy` or `ka.generation.Sample`.

    Args:
        temperature: float. 0 always selects the most probable token, like `Greedy`. Otherwise it is
            the sampling temperature of `Sample`.
        top_k: int, samples only from the k most probable tokens. None uses all tokens.
        top_p: float, samples only from the fewest most probable tokens that together have this
            probability. None uses all tokens. Neither is used if the temperature is 0.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        checks.check_number(self, "temperature", least=0)
        checks.check_whole_numbers(self, "top_k", optional=True)
        checks.check_number(self, "top_p", above=0, most=1, optional=True)

    def make_sampler(self):
        """Return the sampler of `ka.generation` that chooses the same tokens."""
        if self.temperature == 0:
            return generation.Greedy()
        return generation.Sample(self.temperature, self.top_k, self.top_p)

    def draw_uniform(self, seed, shape):
        """Return random float32 numbers in [0, 1), the same as in `ka.generation.generate`.

        `seed` is an int, or None for a random seed. `shape` is the shape of the result.
        """
        if seed is None:  # keras.utils.set_random_seed sets this generator
            seed = np.random.randint(2**31)
        checks.check_whole_number("generate", "seed", seed, least=0)
        numbers = np.random.default_rng(seed).integers(2**23, size=shape) / 2**23
        return numbers.astype("float32")

    def choose(self, logits, uniform):
        """Choose the next tokens.

        Args:
            logits: float32 array (B, vocabulary_size).
            uniform: array (B,) of random numbers in [0, 1), such as from `draw_uniform`.

        Returns:
            int32 array (B,).
        """
        if self.temperature == 0:
            return np.argmax(logits, axis=-1).astype("int32")
        weights = self.probabilities(logits)
        sums = np.where(weights > 0, np.cumsum(weights, axis=-1, dtype="float32"), 0)
        above = sums > np.asarray(uniform)[:, None] * sums.max(axis=-1, keepdims=True)
        above[:, -1] = True  # select the last id if no sum is above
        return above.argmax(axis=-1).astype("int32")

    def probabilities(self, logits):
        """Convert logits (B, vocabulary_size) to the probabilities for sampling, of this shape."""
        logits = np.asarray(logits, "float32") / np.float32(self.temperature)
        highest = np.sort(logits, axis=-1)[:, ::-1][:, : self.top_k]
        logits = np.where(logits >= highest[:, -1:], logits, IMPOSSIBLE)
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        if self.top_p is not None and self.top_p < 1:
            highest = np.sort(weights, axis=-1)[:, ::-1][:, : self.top_k]
            before = np.cumsum(highest, axis=-1, dtype="float32") - highest
            least = np.where(before < self.top_p, highest, 1).min(axis=-1, keepdims=True)
            weights = np.where(weights >= least, weights, 0)
        return weights / weights.sum(axis=-1, keepdims=True)
