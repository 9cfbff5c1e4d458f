"""The base class of scalings, and the unscaled rates of rotary positions."""

import numpy as np
from keras import ops

from keras_attention.core import scope


class Scaling:
    """Gives the rates at which `Rotary` rotates its pairs of features.

    A new scaling is a frozen dataclass under `Scaling` and `Part` that defines `rates`.

    ```python
    import dataclasses
    import numpy as np
    import keras_attention as ka


    @dataclasses.dataclass(frozen=True)
    class Fastest(ka.positions.scalings.Scaling, ka.Part):
        "Rotates the first pair alone."

        def rates(self, size, max_wavelength, positions):
            return np.eye(size // 2)[0]


    x = np.ones((1, 5, 1, 4), "float32")
    rotated = ka.positions.Rotary(scaling=Fastest()).rotate(x)
    assert np.all(np.asarray(rotated)[..., 1::2] == 1)
    ```
    """

    amplitude = 1.0  # factor of the rotated features

    def rates(self, size, max_wavelength, positions):
        """Compute the angle of each pair at position 1.

        Args:
            size: even int, R, the number of features that rotate.
            max_wavelength: as in `Rotary`.
            positions: int (T,) or (B, T), where the tokens are.

        Returns:
            NumPy (R / 2,), or a tensor (1 or B, 1, 1, R / 2) if they depend on the positions.
        """
        raise NotImplementedError(f"{type(self).__name__}.rates")


def unscaled(size, max_wavelength):
    """Compute the rates of the paper, max_wavelength^(-2k/R): NumPy (R / 2,)."""
    return float(max_wavelength) ** (-2.0 * np.arange(size // 2) / size)


def compute_length(positions, length=None):
    """Return `length`, or one more than each row's last position: float32 (1 or B, 1, 1, 1)."""
    if length is None:
        scope.refuse_decoding(
            "a rotary scaling that goes by the length of the text (DynamicNTK, LongRoPE) would "
            "rotate earlier tokens anew as it grows. Fix its length=."
        )
        length = ops.max(positions, axis=-1) + 1
    return ops.reshape(ops.cast(ops.convert_to_tensor(length), "float32"), (-1, 1, 1, 1))


def get_attention_factor(part, default):
    """Return the `attention_factor` of a scaling, or `default` for None."""
    return default if part.attention_factor is None else part.attention_factor
