"""Rotary position embeddings: queries and keys are rotated by their positions."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.core.shapes import prepend_batch
from keras_attention.positions import scalings
from keras_attention.positions.base import Position
from keras_attention.positions.indices import (
    check_max_wavelength,
    compute_angles,
    count,
    expand_positions,
)
from keras_attention.positions.patch_grid import check_grid, check_grid_length, compute_coordinates


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Rotary(Position, Part):
    """Rotates pairs of features by an angle that grows with the position (Su et al., 2021, eq. 34).

    Pass it as `position=` of an attention layer, which rotates its query and key heads with it.

    The R rotated features of a head form R/2 pairs. At position p, pair k is rotated by the angle
    `p · max_wavelength^(-2k/R)`, in all heads alike. The product of a query at position i and a key
    at position j therefore depends only on i - j. R is `rotary_dim`, or H if that is None.

    On a grid (axial, Heo et al., 2024), the first half of the pairs is rotated by the row and the
    second half by the column, each as if R were half as large. DINOv3 uses coordinates from -1 to 1
    over n rows and columns, which gives the same scores as `scaling=Linear(n / (4 * math.pi))`.

    Args:
        layout: which features form pair k. `"half"`: features k and k + R/2, as in GPT-NeoX and
            Llama's published weights. It is faster. `"interleaved"`: features 2k and 2k + 1, as in
            the paper and GPT-J. The layouts differ by a permutation of features: `convert_layout`
            converts trained projections.
        max_wavelength: positive number. The slowest pair has a wavelength of almost 2π ·
            max_wavelength.
        rotary_dim: even int, R. Only the first R features of a head rotate. None means all.
        scaling: a scaling of `keras_attention.positions.scalings`, its name or its config, for
            inputs longer than in training. None applies no scaling.
        grid: (rows, columns) of an image whose patches are the tokens, row by row. None for text.
            Positions still count 0, 1, 2, ... along the tokens.
        prefix: int, the number of tokens before the grid, which do not rotate. Unless you pass
            positions, attention raises an error if the static number of tokens is not prefix + rows
            · columns. A causal model accepts fewer: the beginning of an image.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.Rotary()
    q, k = np.random.rand(2, 1, 1, 1, 8).astype("float32")
    score = lambda i, j: np.sum(position.rotate(q, [i]) * position.rotate(k, [j]))
    assert np.isclose(score(5, 2), score(105, 102), atol=1e-4)

    long = ka.positions.Rotary(scaling=ka.positions.scalings.YaRN(4, original_length=4096))
    image = ka.positions.Rotary(max_wavelength=100, grid=(14, 14), prefix=1)
    ```
    """

    layout: str = "half"
    max_wavelength: float = 10000
    rotary_dim: int | None = None
    scaling: scalings.Scaling | None = None
    grid: tuple | None = None
    prefix: int = 0

    roles = frozenset({"rotate"})

    def __post_init__(self):
        check_layout(self)
        check_max_wavelength(self)
        object.__setattr__(self, "scaling", scalings.get(self.scaling))
        check_grid(self, optional=True)

    def check_length(self, length, exact=True):
        if self.grid is not None:
            check_grid_length(self, length, exact)

    def rotate(self, x, positions=None):
        size = compute_rotary_size(self, x.shape[3])
        amplitude = None if self.scaling is None else self.scaling.amplitude
        return rotate_pairs(x, self.angle(count(positions, x), size), self.layout, amplitude)

    def angle(self, positions, size):
        """Compute the rotation angle of each pair at `positions`: float32 (1 or B, T, 1, size/2).

        `size` is the number of rotated features.
        """
        if self.grid is None:
            return self._along(positions, size)
        if size % 4:
            raise ValueError(
                f"Rotary(grid={self.grid}) rotates half of the pairs by the row and half by the "
                f"column, but {size} features are {size // 2} pairs. Choose a head size or "
                "rotary_dim that 4 divides."
            )
        axes = compute_coordinates(positions, self.grid, self.prefix)
        return ops.concatenate([self._along(axis, size // 2) for axis in axes], axis=3)

    def _along(self, positions, size):
        if self.scaling is None:
            rates = scalings.unscaled(size, self.max_wavelength)
        else:
            rates = self.scaling.rates(size, self.max_wavelength, positions)
        if len(rates.shape) == 1:
            rates = rates[None, None, None]
        return compute_angles(expand_positions(positions, 2, 3), rates)


GAMMA = 0.4


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class XPos(Position, Part):
    """Rotates features like `Rotary`, and makes scores decay with the distance (Sun et al., 2023).

    Pass it as `position=` of an attention layer, which rotates its query and key heads with it.

    The R rotated features of a head form R/2 pairs. Pair k of a query at position i is multiplied
    by `z^(i / scale_base)`, and pair k of a key at position j by `z^(-j / scale_base)`, where
    `z = (2k/R + 0.4) / 1.4`. Their product decays as `z^((i - j) / scale_base)` for keys before the
    query, but grows for later keys, so use it with causal attention.

    Although the products decay, the keys themselves grow with their position. Features of size 1
    stay within the range of float16 up to 4000 positions from `middle`, and within the range of
    float32 and bfloat16 up to 35,000.

    Args:
        layout: which features form pair k: k and k + R/2 (`"half"`), or 2k and 2k + 1
            (`"interleaved"`, as in the paper's code).
        max_wavelength: positive number. The slowest pair has a wavelength of almost 2π ·
            max_wavelength.
        rotary_dim: even int, R. Only the first R features of a head rotate. None means all.
        scale_base: positive number. Larger values decay more slowly.
        middle: int, the position where the factor is 1. It does not change the scores. Half of the
            longest length keeps the features smallest.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.XPos()
    q, k = np.ones((2, 1, 1, 1, 8), "float32")
    score = lambda i, j: np.sum(position.rotate(q, [i]) * position.rotate_key(k, [j]))
    assert np.isclose(score(500, 100), score(700, 300), rtol=1e-3)
    assert abs(score(5000, 0)) < 0.1 * abs(score(0, 0))
    ```
    """

    layout: str = "half"
    max_wavelength: float = 10000
    rotary_dim: int | None = None
    scale_base: float = 512
    middle: int = 0

    roles = frozenset({"rotate"})

    def __post_init__(self):
        check_layout(self)
        check_max_wavelength(self)
        checks.check_number(self, "scale_base", above=0)
        checks.check_whole_numbers(self, "middle", least=0)

    def rotate(self, x, positions=None):
        return self._rotate(x, positions, 1)

    def rotate_key(self, x, positions=None):
        return self._rotate(x, positions, -1)

    def _rotate(self, x, positions, sign):
        size = compute_rotary_size(self, x.shape[3])
        positions = expand_positions(count(positions, x), 2, 3)  # (1 or B, T, 1, 1)
        rates = scalings.unscaled(size, self.max_wavelength)
        decay = np.log((2 * np.arange(size // 2) / size + GAMMA) / (1 + GAMMA))
        growth = compute_angles(
            positions - self.middle, sign * decay[None, None, None] / self.scale_base
        )
        angle = compute_angles(positions, rates[None, None, None])
        return rotate_pairs(x, angle, self.layout, keras.ops.exp(growth))


LAYOUTS = ("half", "interleaved")


def check_layout(part):
    """Raise a ValueError if an encoding, `part`, has an unknown `layout` or an odd `rotary_dim`."""
    checks.check_choice(part, "layout", LAYOUTS)
    if part.rotary_dim is not None:
        checks.check_whole_numbers(part, "rotary_dim", least=2)
        if part.rotary_dim % 2:
            raise ValueError(
                f"{type(part).__name__}(rotary_dim={part.rotary_dim}) rotates features in pairs: "
                "rotary_dim must be even."
            )


def compute_rotary_size(part, head_size):
    """Return the number of features of a head that rotate. Raise a ValueError if it is odd.

    `part` is a rotary encoding. `head_size` is H, the result if `rotary_dim` of the encoding is
    None.
    """
    name = type(part).__name__
    size = head_size if part.rotary_dim is None else part.rotary_dim
    if size > head_size:
        raise ValueError(
            f"{name}(rotary_dim={part.rotary_dim}) cannot rotate more features than the "
            f"{head_size} that a head has."
        )
    if size % 2:
        raise ValueError(
            f"{name} rotates features in pairs, but a head has an odd number of them, {size}. "
            f"Choose an even head size, or rotate all but one with {name}(rotary_dim={size - 1})."
        )
    return size


def rotate_pairs(x, angle, layout, amplitude=None):
    """Rotate the first R features of `x` (B, T, N, H), and return the result in the dtype of `x`.

    Args:
        x: (B, T, N, H), queries or keys.
        angle: float32 (1 or B, T, 1, R/2), the angle of each pair in radians.
        layout: which features form a pair, `"half"` or `"interleaved"`.
        amplitude: factor of the rotated features, a number or a tensor like `angle`, or None for 1.
    """
    size = 2 * angle.shape[3]
    rotating, unrotated = ops.cast(x, "float32"), []
    if size < x.shape[3]:
        rotating, *unrotated = ops.split(rotating, [size], axis=3)
    cosine, sine = ops.cos(angle), ops.sin(angle)
    if amplitude is not None:
        cosine, sine = cosine * amplitude, sine * amplitude
    # (a, b) becomes (a cos - b sin, b cos + a sin), so only the first feature has a minus sign.
    cosine, sine = _expand_pairs(cosine, cosine, layout), _expand_pairs(-sine, sine, layout)
    rotated = rotating * cosine + _swap_pairs(rotating, layout) * sine
    return ops.cast(
        ops.concatenate([rotated, *unrotated], axis=3) if unrotated else rotated, x.dtype
    )


def _expand_pairs(first, second, layout):
    """Arrange values for first and for second features of pairs in the feature order of `layout`.

    `first` and `second` are (..., R/2), and the result is (..., R).
    """
    if layout == "half":
        return ops.concatenate([first, second], axis=3)
    pairs = first.shape[3]
    order = np.arange(2 * pairs).reshape(2, pairs).T.reshape(-1)
    return ops.take(ops.concatenate([first, second], axis=3), order, axis=3)


def _swap_pairs(x, layout):
    """Swap the two features of each pair in `x` (B, T, N, R)."""
    if layout == "half":
        half = x.shape[3] // 2
        # Not ops.split: GPU delegates remove a split and concat even if the parts are swapped.
        return ops.concatenate([x[:, :, :, half:], x[:, :, :, :half]], axis=3)
    heads, size = x.shape[2:]
    pairs = ops.reshape(x, (-1, heads * size // 2, 2))  # GPU delegates do not support five axes
    shape = prepend_batch(x, ops.shape(x)[1], heads, size)
    return ops.reshape(ops.flip(pairs, axis=2), shape)


def convert_layout(weights, source, target, rotary_dim=None):
    """Permute weights of query and key projections from one layout of `Rotary` to the other.

    The layouts pair different features. If a projection was trained with one layout, its outputs
    must be permuted before it is used with the other layout. The scores are then the same.

    Args:
        weights: NumPy array or tensor whose last axis is the H features of a head: a kernel
            (D, N, H), a bias (N, H), or the scale of a query or key norm (H,).
        source: layout of `weights`, `"half"` or `"interleaved"`.
        target: layout of the result, `"half"` or `"interleaved"`.
        rotary_dim: even int, the number of first features of a head that rotate. None means all.

    Returns:
        NumPy array of the same shape.

    ```python
    import numpy as np
    import keras_attention as ka

    kernel = np.arange(8).reshape(1, 1, 8)  # one head of 8 features, numbered
    half = ka.positions.convert_layout(kernel, "interleaved", "half")
    assert half.ravel().tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert np.array_equal(ka.positions.convert_layout(half, "half", "interleaved"), kernel)
    ```
    """
    for name, layout in (("source", source), ("target", target)):
        if layout not in LAYOUTS:
            raise ValueError(
                f"convert_layout({name}={layout!r}): {name} must be one of 'half', 'interleaved'."
            )
    weights = ops.convert_to_numpy(weights)
    size = weights.shape[-1] if rotary_dim is None else rotary_dim
    checks.check_whole_number("convert_layout", "rotary_dim", size, least=2)
    if size % 2 or size > weights.shape[-1]:
        raise ValueError(
            f"convert_layout(rotary_dim={size}): rotary_dim must be even and at most the "
            f"{weights.shape[-1]} features of a head."
        )
    if source == target:
        return weights
    order = np.arange(weights.shape[-1])
    order[:size] = (
        np.arange(size).reshape(-1, 2).T.reshape(-1)  # first of each pair, then second
        if target == "half"
        else np.arange(size).reshape(2, -1).T.reshape(-1)
    )
    return weights[..., order]
