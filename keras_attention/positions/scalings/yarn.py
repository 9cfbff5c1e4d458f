"""YaRN: long wavelengths stretched, short ones unchanged, with a ramp between."""

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
    """Stretches the pairs that rotate less than once in training by `factor` (Peng et al., 2024).

    Pairs that rotate more than `beta_fast` times in `original_length` positions stay. Those that
    rotate less than `beta_slow` times are slowed as by `Linear`, with a ramp between (section 3.2).
    Queries and keys grow by 0.1 ln(factor) + 1, to make up for the softmax over more keys (equation
    15).

    Args:
        factor: number above 0, how many times longer the inputs are than in training.
        original_length: int, the length in training.
        beta_fast, beta_slow: numbers above 0, rotations in `original_length`. Beta and alpha in the
            paper.
        attention_factor: float, the factor of queries and keys. None is the paper's.
        truncate: bool, whether the ramp begins and ends at whole pairs, as in the paper's code.

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
                f"YaRN(beta_fast={self.beta_fast}, beta_slow={self.beta_slow}): beta_fast, the "
                "rotations from which a pair stays, must be more than beta_slow."
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
        """Return the pair, a real number, with `turns` rotations in `original_length` positions."""
        rate = 2 * math.pi * turns / self.original_length
        return -size * math.log(rate) / (2 * math.log(max_wavelength))
