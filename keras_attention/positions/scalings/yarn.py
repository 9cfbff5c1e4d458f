"""YaRN scaling of rotary positions: long wavelengths are stretched, and short ones kept."""

import dataclasses
import math

import keras
import numpy as np

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.scalings.base import Scaling, get_attention_factor, unscaled


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class YaRN(Scaling, Part):
    """A scaling of `Rotary` that divides only slow rotation rates by `factor` (Peng et al., 2024).

    Pairs of features that rotate more than `beta_fast` times in `original_length` positions are
    unchanged. The rates of pairs that rotate fewer than `beta_slow` times are divided by `factor`,
    as in `Linear`. There is a linear ramp in between (section 3.2). Queries and keys are multiplied
    by 0.1 ln(factor) + 1, to compensate for the softmax over more keys (equation 15).

    Args:
        factor: positive number, the ratio of the longest input to the length in training.
        original_length: int, the length in training.
        beta_fast: positive number of rotations, β in the paper.
        beta_slow: positive number of rotations, α in the paper, less than `beta_fast`.
        attention_factor: float, the factor of queries and keys. None means the paper's factor
            above.
        truncate: bool, whether the ends of the ramp are rounded to whole pair indices, as in the
            paper's code.

    ```python
    import numpy as np
    import keras_attention as ka

    yarn = ka.positions.scalings.YaRN(4, original_length=4096)
    slower = ka.positions.scalings.unscaled(64, 10000) / yarn.rates(64, 10000, None)
    assert slower[0] == 1 and np.isclose(slower[-1], 4)
    layer = ka.attention.MultiHeadAttention(2, 8, position=ka.positions.Rotary(scaling=yarn))
    ```
    """

    factor: float
    original_length: int
    beta_fast: float = 32
    beta_slow: float = 1
    attention_factor: float | None = None
    truncate: bool = True

    def __post_init__(self):
        for name in ("factor", "beta_fast", "beta_slow"):
            checks.check_number(self, name, above=0)
        checks.check_whole_numbers(self, "original_length")
        checks.check_choice(self, "truncate", (True, False))
        checks.check_number(self, "attention_factor", above=0, optional=True)
        if self.beta_fast <= self.beta_slow:
            raise ValueError(
                f"YaRN(beta_fast={self.beta_fast}, beta_slow={self.beta_slow}): beta_fast "
                "must be larger than beta_slow."
            )

    @property
    def amplitude(self):
        return get_attention_factor(self, 0.1 * math.log(max(self.factor, 1)) + 1)

    def rates(self, size, max_wavelength, positions):
        plain = unscaled(size, max_wavelength)
        first = self._pair(self.beta_fast, size, max_wavelength)
        last = self._pair(self.beta_slow, size, max_wavelength)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, size - 1)
        width = last - first or 0.001  # a ramp over no pairs is a step
        stretched = np.clip((np.arange(size // 2) - first) / width, 0, 1)
        return plain * (1 - stretched) + plain / self.factor * stretched

    def _pair(self, turns, size, max_wavelength):
        """Return the (fractional) index of the pair that rotates `turns` times in training."""
        rate = 2 * math.pi * turns / self.original_length
        return -size * math.log(rate) / (2 * math.log(max_wavelength))
