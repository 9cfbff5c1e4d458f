"""`TokenChoice`: how a token follows from logits, in NumPy, for files that need no Keras."""

import dataclasses

import numpy as np

from keras_attention.core import checks
from keras_attention.core.lazy import generation

IMPOSSIBLE = -1e9  # the logit of a token that may not be chosen


@dataclasses.dataclass(frozen=True)
class TokenChoice:
    """Chooses the tokens that `ka.generation.Greedy` and `ka.generation.Sample` choose.

    Args:
        temperature: float. 0 takes the best token, as `Greedy` does.
        top_k, top_p: as in `Sample`, where the temperature is above 0.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        checks.check_number(self, "temperature", least=0)
        if self.top_k is not None:
            checks.check_whole_numbers(self, "top_k")
        if self.top_p is not None:
            checks.check_number(self, "top_p", above=0, most=1)

    def make_sampler(self):
        """Return the sampler of `ka.generation` that chooses the same tokens."""
        if self.temperature == 0:
            return generation.Greedy()
        return generation.Sample(self.temperature, self.top_k, self.top_p)

    def draw_uniform(self, seed, shape):
        """Draw float32 numbers in [0, 1), those that `ka.generation.generate` draws for a seed."""
        if seed is None:  # keras.utils.set_random_seed sets this generator
            seed = np.random.randint(2**31)
        checks.check_whole_number("generate", "seed", seed, least=0)
        numbers = np.random.default_rng(seed).integers(2**23, size=shape) / 2**23
        return numbers.astype("float32")

    def choose(self, logits, uniform):
        """Return the next tokens, int32 (B,), of float32 logits (B, V) and numbers (B,)."""
        if self.temperature == 0:
            return np.argmax(logits, axis=-1).astype("int32")
        weights = self.probabilities(logits)
        sums = np.where(weights > 0, np.cumsum(weights, axis=-1, dtype="float32"), 0)
        above = sums > np.asarray(uniform)[:, None] * sums.max(axis=-1, keepdims=True)
        above[:, -1] = True  # the last id where none is above
        return above.argmax(axis=-1).astype("int32")

    def probabilities(self, logits):
        """Return the probabilities (B, V) that a token is drawn with."""
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
