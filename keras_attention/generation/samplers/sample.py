"""`Sample`: a sampler that chooses random tokens, with temperature, top k, top p and min p."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.generation.samplers.base import IMPOSSIBLE, TokenSampler

LEAST = 1e-30  # temperature: below it, float32 would divide 0 by 0


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sample(TokenSampler):
    """Samples each token from the model's distribution, or from its more probable part.

    Pass it to `generate` as `sampler=`. The logits are divided by the temperature, then `top_k`,
    `top_p` and `min_p` are applied in this order. Each sees only the tokens that are left, with
    probabilities that add up to 1.

    Args:
        temperature: float above 0 that divides the logits. Above 1 makes tokens more random.
        top_k: int, keeps the k most probable tokens (Fan et al., 2018, section 5.1), and tokens as
            probable as the last of them.
        top_p: float in (0, 1], keeps the fewest most probable tokens that together have at least
            this probability (Holtzman et al., 2020, section 3.1), and tokens as probable as the
            last of them.
        min_p: float in [0, 1], keeps tokens with at least this fraction of the highest
            probability (Nguyen et al., 2024, section 3).
        seed: int, for the same random tokens every time. `generate(seed=...)` takes precedence.
            None uses NumPy's generator, which `keras.utils.set_random_seed` sets.

    ```python
    import numpy as np
    import keras_attention as ka

    logits = np.log(np.array([[0.5, 0.3, 0.15, 0.05]], "float32"))
    assert np.allclose(ka.generation.Sample().probabilities(logits), [[0.5, 0.3, 0.15, 0.05]])
    two = ka.generation.Sample(top_p=0.7).probabilities(logits)
    assert np.allclose(two, [[0.625, 0.375, 0, 0]])
    ```
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int | None = None

    def __post_init__(self):
        checks.check_number(self, "temperature", above=0)
        checks.check_whole_numbers(self, "top_k", optional=True)
        checks.check_number(self, "top_p", above=0, most=1, optional=True)
        checks.check_number(self, "min_p", least=0, most=1, optional=True)
        checks.check_whole_numbers(self, "seed", least=0, optional=True)

    def probabilities(self, logits):
        logits = ops.cast(logits, "float32")
        allowed = logits > IMPOSSIBLE / 2  # a forbidden token stays forbidden
        logits = logits - ops.max(logits, axis=-1, keepdims=True)
        logits = logits / min(max(self.temperature, LEAST), 1 / LEAST)
        logits = ops.where(allowed, ops.maximum(logits, IMPOSSIBLE), IMPOSSIBLE)
        number = min(self.top_k or logits.shape[-1], logits.shape[-1])
        if number < logits.shape[-1]:
            highest, _ = ops.top_k(logits, number)
            logits = ops.where(logits >= highest[:, number - 1 :], logits, IMPOSSIBLE)
        weights = ops.softmax(logits, axis=-1)
        if self.top_p is not None and self.top_p < 1:
            highest, _ = ops.top_k(weights, number)  # these include the nucleus
            before = ops.cumsum(highest, axis=-1) - highest
            least = ops.min(ops.where(before < self.top_p, highest, 1.0), axis=-1, keepdims=True)
            weights = ops.where(weights >= least, weights, 0.0)
        if self.min_p is not None:
            least = self.min_p * ops.max(weights, axis=-1, keepdims=True)
            weights = ops.where(weights >= least, weights, 0.0)
        return weights / ops.sum(weights, axis=-1, keepdims=True)
