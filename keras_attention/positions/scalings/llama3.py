"""Llama 3.1's scaling of rotary positions: long wavelengths are stretched, and short ones kept."""

import dataclasses
import math

import keras
import numpy as np

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.scalings.base import Scaling, unscaled


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Llama3(Scaling, Part):
    """A scaling of `Rotary` that divides only slow rotation rates by `factor` (Dubey et al., 2024).

    The rate of a pair of features is divided if the pair rotates fewer than `low_frequency_factor`
    times in `original_length` positions, and unchanged if it rotates more than
    `high_frequency_factor` times. Between the two, the rate is interpolated linearly in the number
    of rotations.

    Args:
        factor: positive number, the ratio of the longest input to the length in training.
        original_length: int, the length in training.
        low_frequency_factor: positive number of rotations, less than `high_frequency_factor`.
        high_frequency_factor: positive number of rotations.

    ```python
    import numpy as np
    import keras_attention as ka

    llama3 = ka.positions.scalings.Llama3()  # the values of Llama 3.1
    slower = ka.positions.scalings.unscaled(128, 500000) / llama3.rates(128, 500000, None)
    assert slower[0] == 1 and np.isclose(slower[-1], 8)
    ```
    """

    factor: float = 8
    original_length: int = 8192
    low_frequency_factor: float = 1
    high_frequency_factor: float = 4

    def __post_init__(self):
        for name in ("factor", "low_frequency_factor", "high_frequency_factor"):
            checks.check_number(self, name, above=0)
        checks.check_whole_numbers(self, "original_length")
        if self.high_frequency_factor <= self.low_frequency_factor:
            raise ValueError(
                f"Llama3(low_frequency_factor={self.low_frequency_factor}, "
                f"high_frequency_factor={self.high_frequency_factor}): the first must be smaller."
            )

    def rates(self, size, max_wavelength, positions):
        plain = unscaled(size, max_wavelength)
        waves = self.original_length * plain / (2 * math.pi)
        low, high = self.low_frequency_factor, self.high_frequency_factor
        unchanged = np.clip((waves - low) / (high - low), 0, 1)
        return plain * unchanged + plain / self.factor * (1 - unchanged)
