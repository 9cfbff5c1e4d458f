"""NTK scalings of rotary positions, with a fixed or a dynamic factor."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.scalings.base import Scaling, compute_length, unscaled


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class NTK(Scaling, Part):
    """A scaling of `Rotary` that slows rotations, and slow ones the most (bloc97, 2023).

    `Rotary` rotates pairs of features, each at its own rate. Here `max_wavelength` is multiplied by
    factor^(R / (R - 2)), for R features that rotate. The rate of the fastest pair is unchanged, and
    the rate of the slowest pair is divided by `factor` (equation 8 of Peng et al., 2024).

    Args:
        factor: positive number, the ratio of the longest input to the length in training.

    ```python
    import numpy as np
    import keras_attention as ka

    rates = ka.positions.scalings.NTK(4).rates(8, 10000, None)
    plain = ka.positions.scalings.unscaled(8, 10000)
    assert rates[0] == plain[0] and np.isclose(rates[-1], plain[-1] / 4)
    ```
    """

    factor: float

    def __post_init__(self):
        checks.check_number(self, "factor", above=0)

    def rates(self, size, max_wavelength, positions):
        return unscaled(size, max_wavelength) * self.factor ** compute_exponents(size)


def compute_exponents(size):
    """Return the exponent of `NTK.factor` in the rate of each pair, 0 to -1: NumPy (size / 2,).

    `size` is the number of features that rotate.
    """
    return -2.0 * np.arange(size // 2) / max(size - 2, 1)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class DynamicNTK(Scaling, Part):
    """`NTK` with a factor that grows with the length L of the input (emozilla, 2023).

    For inputs longer than `original_length`, NTK's factor is `factor · L / original_length -
    (factor - 1)`. Shorter inputs are not scaled. L is one more than the largest position, and is
    computed separately for queries and keys. In cross-attention, and to decode with a cache, set
    `length` instead.

    Args:
        factor: positive number. Larger values scale long inputs more.
        original_length: int, the length in training.
        length: int, the L to assume for all inputs. None computes it from the positions.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(1, 9, 2, 8).astype("float32")
    plain = ka.positions.Rotary()
    dynamic = ka.positions.Rotary(scaling=ka.positions.scalings.DynamicNTK(2, original_length=8))
    assert np.allclose(dynamic.rotate(x[:, :8]), plain.rotate(x[:, :8]), atol=1e-6)
    assert not np.allclose(dynamic.rotate(x), plain.rotate(x), atol=1e-3)
    ```
    """

    factor: float
    original_length: int
    length: int | None = None

    def __post_init__(self):
        checks.check_number(self, "factor", above=0)
        checks.check_whole_numbers(self, "original_length")
        checks.check_whole_numbers(self, "length", optional=True)

    def rates(self, size, max_wavelength, positions):
        length = compute_length(positions, self.length)
        factor = length * (self.factor / self.original_length) - (self.factor - 1)
        powers = ops.convert_to_tensor(compute_exponents(size)[None, None, None], "float32")
        plain = ops.convert_to_tensor(unscaled(size, max_wavelength)[None, None, None], "float32")
        return plain * ops.power(ops.maximum(factor, 1.0), powers)
