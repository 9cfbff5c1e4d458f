"""Sinusoidal position encodings, for text and for images."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.base import Position
from keras_attention.positions.indices import (
    check_max_wavelength,
    compute_angles,
    count,
    expand_positions,
)
from keras_attention.positions.patch_grid import (
    check_grid,
    check_grid_length,
    check_grid_tokens,
    compute_coordinates,
)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sinusoidal(Position, Part):
    """Adds sines and cosines of the position (Vaswani et al., 2017, section 3.5).

    Pass it as `position=` of `ka.blocks.TokenEmbedding`, `PatchEmbedding` or a model.

    At position p, feature 2k gets `sin(p / max_wavelength^(2k/D))` and feature 2k + 1 gets the
    cosine of the same angle. If the width D is odd, there is one more sine than cosines.

    Args:
        layout: `"interleaved"` alternates sines and cosines, as in the paper. `"concatenated"` puts
            all sines first, as in tensor2tensor. With n = D/2, tensor2tensor also divides exponents
            by n - 1 instead of n: use max_wavelength=10000 ** (n / (n - 1)) for that.
        max_wavelength: positive number. The longest wavelength is almost 2π · max_wavelength.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Sinusoidal()
    x = np.zeros((1, 3, 2), "float32")
    assert np.allclose(position.embed(x)[0], [[np.sin(p), np.cos(p)] for p in range(3)])
    assert np.allclose(position.embed(x, [7, 8, 9])[0, 0], [np.sin(7), np.cos(7)])
    ```
    """

    layout: str = "interleaved"
    max_wavelength: float = 10000

    roles = frozenset({"embed"})

    def __post_init__(self):
        check_layout(self)
        check_max_wavelength(self)

    def embed(self, x, positions=None):
        waves = self.waves(count(positions, x), x.shape[2])
        return ops.cast(ops.cast(x, "float32") + waves, x.dtype)

    def waves(self, positions, width):
        """Compute the encoding of `positions` (T,) or (B, T): float32 (1 or B, T, width)."""
        rates, is_sine = compute_frequencies(width, self.layout, self.max_wavelength)
        angle = compute_angles(expand_positions(positions, 2), rates[None, None])
        return choose_waves(angle, is_sine)


def choose_waves(angle, is_sine):
    """Return the sine of `angle` where the NumPy array `is_sine` is True, and the cosine elsewhere.

    Both are computed for all features, and one is multiplied by 0. LiteRT runs this as a single
    XNNPACK partition at any length, twice as fast as a reshape or a gather.
    """
    sine, cosine = (ops.convert_to_tensor(w, "float32") for w in (is_sine, ~is_sine))
    return ops.sin(angle) * sine + ops.cos(angle) * cosine


def check_layout(part):
    checks.check_choice(part, "layout", ("interleaved", "concatenated"))


def compute_frequencies(width, layout, max_wavelength):
    """Compute two NumPy arrays (width,): the rate of each feature, and whether it is a sine.

    The rate is the angle at position 1. `layout` is `"interleaved"`, which alternates sines and
    cosines, or `"concatenated"`, which puts all sines first. `max_wavelength` is a float, 10000 in
    the paper.
    """
    feature = np.arange(width)
    if layout == "interleaved":
        pair, is_sine = feature // 2, feature % 2 == 0
    else:
        sines = (width + 1) // 2
        pair, is_sine = feature % sines, feature < sines
    return float(max_wavelength) ** (-2.0 * pair / width), is_sine


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sinusoidal2D(Position, Part):
    """Adds `Sinusoidal` of the column to half of the features, and of the row to the rest.

    Pass it as `position=` of `ka.blocks.TokenEmbedding`, `PatchEmbedding` or a model.

    MAE (He et al., 2022) uses this encoding. If the width D is odd, the column has one more feature
    than the row. MoCo v3 and big_vision divide exponents by n - 1 instead of n = D/4: use
    max_wavelength=10000 ** (n / (n - 1)) for that.

    Args:
        grid: (rows, columns) of the image in patches. Tokens are the patches, row by row.
        prefix: int, the number of tokens before the grid. Nothing is added to them.
        layout: the order within each half. `"concatenated"` puts all sines first, as in MAE.
            `"interleaved"` alternates sines and cosines.
        max_wavelength: positive number. The longest wavelength is almost 2π · max_wavelength.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Sinusoidal2D(grid=(2, 3), prefix=1)
    x = position.embed(np.zeros((1, 7, 4), "float32"))[0]
    assert np.array_equal(x[0], [0, 0, 0, 0])  # the class token
    assert np.allclose(x[6], [np.sin(2), np.cos(2), np.sin(1), np.cos(1)])  # column 2, row 1
    ```
    """

    grid: tuple
    prefix: int = 0
    layout: str = "concatenated"
    max_wavelength: float = 10000

    roles = frozenset({"embed"})

    def __post_init__(self):
        check_grid(self)
        check_layout(self)
        check_max_wavelength(self)

    def check_length(self, length, exact=True):
        check_grid_length(self, length, exact)

    def embed(self, x, positions=None):
        check_grid_tokens(self, x.shape[1], positions)
        waves = self.waves(count(positions, x), x.shape[2])
        return ops.cast(ops.cast(x, "float32") + waves, x.dtype)

    def waves(self, positions, width):
        """Compute the encoding of `positions` (T,) or (B, T): float32 (1 or B, T, width)."""
        halves = (width + 1) // 2, width // 2
        of_column, of_row = (
            compute_frequencies(half, self.layout, self.max_wavelength) for half in halves
        )
        rows, columns = compute_coordinates(positions, self.grid, self.prefix)
        # Each feature has rate 0 for the other axis, so angles are added, not concatenated.
        column_rates = np.concatenate([of_column[0], np.zeros(halves[1])])
        row_rates = np.concatenate([np.zeros(halves[0]), of_row[0]])
        angle = compute_angles(expand_positions(columns, 2), column_rates[None, None])
        angle = angle + compute_angles(expand_positions(rows, 2), row_rates[None, None])
        is_sine = np.concatenate([of_column[1], of_row[1]])
        waves = choose_waves(angle, is_sine)
        if self.prefix:
            in_grid = ops.cast(expand_positions(positions, 2) >= self.prefix, "float32")
            waves = waves * in_grid
        return waves
