"""The base class of scalings, and the unscaled rotation rates of rotary positions."""

import numpy as np
from keras import ops

from keras_attention.core import scope


class Scaling:
    """Base class of scalings, which determine how fast `Rotary` rotates its pairs of features.

    To write a new scaling, subclass `Scaling` and `Part` as a frozen dataclass and define `rates`.

    ```python
    import dataclasses
    import numpy as np
    import keras_attention as ka


    @dataclasses.dataclass(frozen=True)
    class Fastest(ka.positions.scalings.Scaling, ka.Part):
        "Rotates only the first pair."

        def rates(self, size, max_wavelength, positions):
            return np.eye(size // 2)[0]


    x = np.ones((1, 5, 1, 4), "float32")
    rotated = ka.positions.Rotary(scaling=Fastest()).rotate(x)
    assert np.all(np.asarray(rotated)[..., 1::2] == 1)
    ```
    """

    amplitude = 1.0  # the rotated features are multiplied by it

    def rates(self, size, max_wavelength, positions):
        """Compute the rate of each pair of features: its angle at position 1.

        Args:
            size: even int, R, the number of features that rotate.
            max_wavelength: positive number. Without scaling, the slowest pair has a wavelength of
                almost 2π · max_wavelength.
            positions: int (T,) or (B, T), for rates that depend on the positions.

        Returns:
            NumPy (R / 2,), or a tensor (1 or B, 1, 1, R / 2) if rates depend on the positions.
        """
        raise NotImplementedError(f"{type(self).__name__}.rates")


def unscaled(size, max_wavelength):
    """Compute the rotation rates of `Rotary` without scaling: NumPy (size / 2,).

    Pair k of the `size` rotated features has the rate max_wavelength^(-2k/size), its angle at
    position 1.
    """
    return float(max_wavelength) ** (-2.0 * np.arange(size // 2) / size)


def compute_length(positions, length=None):
    """Return the length of each row of a batch as float32 (1 or B, 1, 1, 1).

    The length is `length`. If `length` is None, it is one more than the largest position of the row
    in `positions`, int (T,) or (B, T).
    """
    if length is None:
        scope.refuse_decoding(
            "a rotary scaling that depends on the length of the text (DynamicNTK, LongRoPE) would "
            "rotate earlier tokens differently as the text grows. Set its length=."
        )
        length = ops.max(positions, axis=-1) + 1
    return ops.reshape(ops.cast(ops.convert_to_tensor(length), "float32"), (-1, 1, 1, 1))


def get_attention_factor(part, default):
    """Return `part.attention_factor`, or `default` if it is None. `part` is a scaling."""
    return default if part.attention_factor is None else part.attention_factor
