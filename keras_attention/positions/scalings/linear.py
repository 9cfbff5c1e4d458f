"""Position interpolation: positions are divided by a factor."""

import dataclasses

import keras

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.scalings.base import Scaling, unscaled


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Linear(Scaling, Part):
    """A scaling of `Rotary` that divides every position by `factor` (Chen et al., 2023).

    This method is also called position interpolation.

    Args:
        factor: positive number, the ratio of the longest input to the length in training.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(1, 1, 2, 8).astype("float32")
    scaled = ka.positions.Rotary(scaling=ka.positions.scalings.Linear(4))
    assert np.allclose(scaled.rotate(x, [12]), ka.positions.Rotary().rotate(x, [3]), atol=1e-6)
    ```
    """

    factor: float

    def __post_init__(self):
        checks.check_number(self, "factor", above=0)

    def rates(self, size, max_wavelength, positions):
        return unscaled(size, max_wavelength) / self.factor
