"""`ImageEmbedding`: the patches of an image and their first vectors, as a part of builders."""

import dataclasses
import functools
import math

import keras

from keras_attention import positions
from keras_attention.blocks import ConvolutionStem, PatchEmbedding
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks

# Positions on the grid of patches, by name. Heo et al. (2024) choose this wavelength.
ON_GRID = {"rotary_2d": functools.partial(positions.Rotary, max_wavelength=100)} | {
    name: positions.NAMES[name]
    for name in ("sinusoidal_2d", "learned_2d", "swin_bias", "continuous_bias")
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageEmbedding:
    """What builders of images do before their encoder: they cut patches and embed them.

    The sizes, the dropout and the position are those of the builder, which calls the part. An
    embedding of your own has the same two methods, and `num_registers`.

    Args:
        stem_filters: tuple of ints, the filters of a `ConvolutionStem` in front of the patches
            (Xiao et al., 2021), or an empty one for none.
        stem_strides: tuple of as many ints, None for strides of 2.
        num_registers: int, learned tokens after the class token that are thrown away (Darcet et
            al., 2024).
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`, of the sum of patches
            and positions (Radford et al., 2021, *CLIP*), or None for none. epsilon: float, of it.
        use_bias: bool, whether the projection of the patches has a bias.
        pixel_mean, pixel_std: tuples of floats, one for each channel. The model subtracts the mean
            from its pixels and divides by the deviation, so that images stay from 0 to 1. None for
            0 and 1.

    Example:

    ```python
    import keras
    import keras_attention as ka

    embedding = ka.models.ImageEmbedding(stem_filters=(8, 16), num_registers=2)
    assert embedding.count_patches((32, 16), patch_size=2) == (4, 2)
    x = embedding(keras.Input((32, 16, 3)), 2, 12, num_prefix_tokens=2)
    assert x.shape == (None, 2 + 4 * 2, 12)
    ```
    """

    stem_filters: tuple = ()
    stem_strides: tuple | None = None
    num_registers: int = 0
    normalization: str | None = None
    epsilon: float = 1e-6
    use_bias: bool = True
    pixel_mean: tuple | None = None
    pixel_std: tuple | None = None

    def count_patches(self, image_size, patch_size):
        """Return (rows, columns) of the patches of an image, at least one of each."""
        rows, columns = checks.check_height_and_width("ImageEmbedding", "image_size", image_size)
        for stride in self._strides():
            rows, columns = math.ceil(rows / stride), math.ceil(columns / stride)
        height, width = checks.check_height_and_width("ImageEmbedding", "patch_size", patch_size)
        return max(1, rows // height), max(1, columns // width)

    def measure_patch(self, patch_size):
        """Return (height, width) of a patch in pixels of the image."""
        pixels = math.prod(self._strides())
        sides = checks.check_height_and_width("ImageEmbedding", "patch_size", patch_size)
        return tuple(pixels * side for side in sides)

    def __call__(
        self, images, patch_size, hidden_dim, position=None, dropout=0.0, num_prefix_tokens=0
    ):
        """Embed images.

        Args:
            images: (B, height, width, channels), symbolic. patch_size: int or (height, width), of
                the stem's output if there is a stem. hidden_dim: int D.
            position: a part that is added to the tokens, `"learned"`, or None.
            dropout: float, of the sum.
            num_prefix_tokens: int, learned tokens in front: registers, and a class token.

        Returns (B, num_prefix_tokens + rows · columns, D).
        """
        x = images
        if self.pixel_mean is not None or self.pixel_std is not None:
            x = self._make_normalization(images.shape[-1])(x)
        if self.stem_filters:
            x = ConvolutionStem(self.stem_filters, self._strides(), name="stem")(x)
        x = PatchEmbedding(
            hidden_dim,
            patch_size,
            num_prefix_tokens=num_prefix_tokens,
            position=copy_part(position),
            dropout=dropout,
            use_bias=self.use_bias,
            name="patches",
        )(x)
        if self.normalization is not None:
            make = NORMALIZATIONS[self.normalization]
            x = make(epsilon=self.epsilon, name="embedding_norm")(x)
        return x

    def _strides(self):
        if self.stem_strides is None or not self.stem_filters:
            return (2,) * len(self.stem_filters)
        return self.stem_strides

    def _make_normalization(self, num_channels):
        """The layer, without weights, that subtracts the mean of each channel and divides it."""
        mean, std = (
            tuple(map(float, (default,) * num_channels if values is None else values))
            for values, default in ((self.pixel_mean, 0.0), (self.pixel_std, 1.0))
        )
        for name, values in (("pixel_mean", mean), ("pixel_std", std)):
            if len(values) != num_channels:
                raise ValueError(
                    f"ImageEmbedding({name}={values}): expected {num_channels} numbers, one for "
                    "each channel."
                )
        if min(std) <= 0:
            raise ValueError(f"ImageEmbedding(pixel_std={std}): expected numbers above 0.")
        variance = [deviation**2 for deviation in std]
        return keras.layers.Normalization(mean=mean, variance=variance, name="normalization")


def split_position(position, grid, num_prefix_tokens, key_dim):
    """Split a position of images into what is added to the patches and what attention uses.

    Args:
        position: a part, its name, its config, or a list. Names of positions on a grid, such as
            `"rotary_2d"`, are those of the image's patches. `"learned"` is one vector for each
            token.
        grid: (rows, columns) of patches. num_prefix_tokens: int, tokens in front of them.
        key_dim: float, the size of a head.

    Returns:
        The position that is added, `"learned"` included, or None; and the one that rotates or
        biases, or None.
    """
    if position == "learned":
        return position, None
    position = positions.get(_place_on_grid(position, grid, num_prefix_tokens))
    rotating = positions.for_role(position, "rotate")
    parts = rotating.parts if isinstance(rotating, positions.CombinedPositions) else [rotating]
    for part in parts:
        on_grid = isinstance(part, positions.Rotary) and part.grid is not None
        if on_grid and part.rotary_dim is None and key_dim % 4:
            raise ValueError(
                f"position={position!r} rotates halves of a head for rows and columns, and heads "
                f"have hidden_dim / num_heads = {key_dim:g} features: expected a number that 4 "
                "divides. Change one of them, or take another position, such as 'learned'."
            )
    return positions.for_role(position, "embed"), positions.for_role(position, "rotate", "bias")


def _place_on_grid(position, grid, prefix):
    if isinstance(position, list | tuple):
        return [_place_on_grid(one, grid, prefix) for one in position]
    if not isinstance(position, str):
        return position
    if position in ON_GRID:
        return ON_GRID[position](grid=grid, prefix=prefix)
    names = [*ON_GRID, *(name for name in positions.NAMES if name not in ON_GRID)]
    if position not in {*names, *(kind.__name__ for kind in positions.NAMES.values())}:
        raise ValueError(f"position={position!r}: expected one of {', '.join(names)}.")
    return position
