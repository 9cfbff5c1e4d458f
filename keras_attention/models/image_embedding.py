"""`ImageEmbedding`: the first layers of image models, which embed patches of the images."""

import dataclasses
import functools
import math

import keras

from keras_attention import positions
from keras_attention.blocks import ConvolutionStem, PatchEmbedding
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core import checks

# Names of positions on the grid of patches. Heo et al. (2024) use the wavelength 100.
ON_GRID = {"rotary_2d": functools.partial(positions.Rotary, max_wavelength=100)} | {
    name: positions.NAMES[name]
    for name in ("sinusoidal_2d", "learned_2d", "swin_bias", "continuous_bias")
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageEmbedding:
    """Settings of the first layers of image models, which cut images into patches and embed them.

    Pass the settings as `embedding=` to a function that builds a model, such as
    `ka.models.image_encoder`. That function calls it with the sizes, dropout and position of the
    model. You may instead pass an object of your own class, which needs `count_patches`, `__call__`
    and `num_registers`.

    Args:
        stem_filters: tuple of ints, the filters of a `ConvolutionStem`, convolutions that make the
            images smaller before they are cut (Xiao et al., 2021). Empty for no stem.
        stem_strides: tuple of ints, one stride for each layer of the stem. None uses 2 everywhere.
        num_registers: int, number of registers, learned tokens after the class token (Darcet et
            al., 2024). Their outputs are discarded, except with the pooling `"prefix"`.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`, applied to the sum of
            patches and positions (Radford et al., 2021, *CLIP*). None for no norm.
        epsilon: float, the epsilon of this norm.
        use_bias: bool, whether the projection of the patches has a bias.
        pixel_mean, pixel_std: tuples of floats, one for each channel. The model subtracts the mean
            from its images and divides by the standard deviation, so the inputs can stay between
            0 and 1. None is 0 for the mean and 1 for the standard deviation.

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
        """Return how many patches an image has, as (rows, columns), at least (1, 1).

        `image_size` is an int or (height, width) in pixels. `patch_size` is an int or (height,
        width) in pixels of the stem's output. The stem is an optional stack of convolutions.
        """
        rows, columns = checks.check_height_and_width("ImageEmbedding", "image_size", image_size)
        for stride in self._strides():
            rows, columns = math.ceil(rows / stride), math.ceil(columns / stride)
        height, width = checks.check_height_and_width("ImageEmbedding", "patch_size", patch_size)
        return max(1, rows // height), max(1, columns // width)

    def measure_patch(self, patch_size):
        """Return the size of a patch in pixels of the image, as (height, width).

        `patch_size` is an int or (height, width) in pixels of the stem's output, which is smaller
        than the image.
        """
        pixels = math.prod(self._strides())
        sides = checks.check_height_and_width("ImageEmbedding", "patch_size", patch_size)
        return tuple(pixels * side for side in sides)

    def __call__(
        self, images, patch_size, hidden_dim, position=None, dropout=0.0, num_prefix_tokens=0
    ):
        """Embed images (B, height, width, channels) as (B, prefix tokens + patches, hidden_dim).

        Args:
            images: symbolic tensor, float32.
            patch_size: int or (height, width), in pixels of the stem's output (without a stem, of
                the images).
            hidden_dim: int, the size of the vectors.
            position: a position layer whose vectors are added to the patches, `"learned"`, or None.
            dropout: float, the dropout rate for the sum.
            num_prefix_tokens: int, number of learned tokens before the patches: class token and
                registers.
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
        """Make the layer that subtracts `pixel_mean` from images and divides by `pixel_std`.

        `num_channels` is the number of channels of the images.
        """
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
    """Split the positions of an image model: some go into the embedding, others into attention.

    Args:
        position: a position, its name, its config, or a list of these. Two-dimensional positions,
            such as `"rotary_2d"`, use `grid` for the row and column of a patch. `"learned"` is one
            vector for each token.
        grid: (rows, columns) of patches.
        num_prefix_tokens: int, number of tokens before the patches.
        key_dim: float, the size of a head.

    Returns:
        A tuple of two: a position that is added to embeddings, and a position that rotates queries
        and keys or biases scores. Each can be None. `"learned"` is returned unchanged as the first.
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
                f"position={position!r} rotates halves of a head for rows and columns, but heads "
                f"have hidden_dim / num_heads = {key_dim:g} features: expected a multiple of 4. "
                "Change hidden_dim or num_heads, or use another position, such as 'learned'."
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
