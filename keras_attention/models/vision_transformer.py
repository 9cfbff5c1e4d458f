"""The vision transformer: images as sequences of patches."""

import functools

import keras

from keras_attention import positions
from keras_attention.blocks import ConvolutionStem, PatchEmbedding, Pooling
from keras_attention.core import checks
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import EncoderKeywords


def _size(patch_size, hidden_dim, num_layers, num_heads):
    return dict(
        patch_size=patch_size,
        hidden_dim=hidden_dim,
        num_layers=num_layers,
        num_heads=num_heads,
        intermediate_dim=4 * hidden_dim,
    )


SIZES = {
    # Dosovitskiy et al. (2021), table 1; Ti and S as Steiner et al. (2022), table 2
    "ViT-Ti/16": _size(16, 192, 12, 3),
    "ViT-S/16": _size(16, 384, 12, 6),
    "ViT-S/32": _size(32, 384, 12, 6),
    "ViT-B/16": _size(16, 768, 12, 12),
    "ViT-B/32": _size(32, 768, 12, 12),
    "ViT-L/16": _size(16, 1024, 24, 16),
    # Touvron et al. (2021), table 1
    "DeiT-Ti": _size(16, 192, 12, 3),
    "DeiT-S": _size(16, 384, 12, 6),
    "DeiT-B": _size(16, 768, 12, 12),
}


def _clip(patch_size, hidden_dim, num_layers, num_heads, projection_dim):
    """Radford et al. (2021), table 20, of images 224 pixels wide."""
    return dict(
        _size(patch_size, hidden_dim, num_layers, num_heads),
        activation="quick_gelu",
        normalize_embeddings=True,
        patch_bias=False,
        projection_dim=projection_dim,
        epsilon=1e-5,
    )


ENCODER_SIZES = {
    "CLIP-ViT-B/32": _clip(32, 768, 12, 12, 512),
    "CLIP-ViT-B/16": _clip(16, 768, 12, 12, 512),
    "CLIP-ViT-L/14": _clip(14, 1024, 24, 16, 768),
}
WITH_CLASS_TOKEN = ("cls", "cls_mean", "prefix")
# Positions by name that are of the grid of patches; Heo et al. (2024) choose that wavelength.
ON_GRID = {"rotary_2d": functools.partial(positions.Rotary, max_wavelength=100)} | {
    name: positions.NAMES[name]
    for name in ("sinusoidal_2d", "learned_2d", "swin_bias", "continuous_bias")
}


@takes_keywords_of(
    EncoderKeywords,
    without=["max_length", "padding"],
    num_layers=12,
    num_heads=3,
    hidden_dim=192,
    intermediate_dim=768,
)
def encode_image(
    image_size,
    *,
    patch_size=16,
    num_channels=3,
    position="learned",
    pooling="cls",
    num_registers=0,
    normalize_embeddings=False,
    normalize_pooled=False,
    patch_bias=True,
    stem_filters=None,
    stem_strides=None,
    pixel_mean=None,
    pixel_std=None,
    owner="vision_transformer",
    each_layer=False,
    **encoder,
):
    """The input of a `vision_transformer` and its pooled output (B, D), both symbolic.

    Args: as there, and `owner`, what errors call the builder. With `each_layer`, and without
    pooling, the output is a list with that of each layer.
    """
    learned = position == "learned"
    if normalize_pooled and pooling is None:
        raise ValueError(
            f"{owner}(normalize_pooled=True, pooling=None): the norm is of a pooled vector. Name a "
            "pooling, or leave normalize_pooled out."
        )
    if normalize_pooled:
        encoder["final_norm"] = False  # it follows the pooling
    size = checks.check_height_and_width(owner, "image_size", image_size)
    num_channels = checks.check_whole_number(owner, "num_channels", num_channels)
    num_prefix_tokens = num_registers + (pooling in WITH_CLASS_TOKEN)
    images = x = keras.Input((*size, num_channels), name="images")
    if pixel_mean is not None or pixel_std is not None:
        x = _normalize_pixels(owner, num_channels, pixel_mean, pixel_std)(x)
    if stem_filters:
        strides = stem_strides or (2,) * len(stem_filters)
        x = ConvolutionStem(stem_filters, strides, name="stem")(x)
    sides = checks.check_height_and_width(owner, "patch_size", patch_size)
    grid = tuple(max(1, n // side) for n, side in zip(x.shape[1:3], sides, strict=True))
    place = grid, num_prefix_tokens, owner
    if encoder.get("layer_positions") is not None:
        encoder["layer_positions"] = _place_on_grid(encoder["layer_positions"], *place)
    position = None if learned else _place_on_grid(position, *place)
    encoder = EncoderKeywords(position=position, **encoder)
    _check_head_size(encoder, owner)
    x = PatchEmbedding(
        encoder.hidden_dim,
        patch_size,
        num_prefix_tokens=num_prefix_tokens,
        position="learned" if learned else encoder.embedding_position(),
        dropout=encoder.dropout,
        use_bias=patch_bias,
        name="patches",
    )(x)
    if normalize_embeddings:
        x = encoder.make_normalization("embedding_norm")(x)
    x = encoder(x, each_layer=each_layer)
    if pooling == "map":
        x = encoder.make_pooling("pooling", num_prefix_tokens)(x)
    elif pooling is not None:
        x = Pooling(pooling, num_prefix_tokens=num_prefix_tokens, name="pooling")(x)
    if normalize_pooled:
        x = encoder.make_normalization("final_norm")(x)
    return images, x


def _place_on_grid(position, grid, prefix, owner):
    """`position` with the names of positions on a grid replaced by those of the image's patches."""
    if isinstance(position, list | tuple):
        return [_place_on_grid(one, grid, prefix, owner) for one in position]
    if not isinstance(position, str):
        return position
    if position in ON_GRID:
        return ON_GRID[position](grid=grid, prefix=prefix)
    names = [*ON_GRID, *(name for name in positions.NAMES if name not in ON_GRID)]
    if position not in {*names, *(kind.__name__ for kind in positions.NAMES.values())}:
        raise ValueError(f"{owner}(position={position!r}): expected one of {', '.join(names)}.")
    return position


def _check_head_size(encoder, owner):
    """Refuses heads of which rows and columns cannot rotate halves."""
    given = [encoder.position, *(encoder.layer_positions or ())]
    rotating = [positions.for_role(position, "rotate") for position in given]
    parts = [part for position in rotating for part in getattr(position, "parts", [position])]
    if encoder.key_dim % 4 and any(
        isinstance(part, positions.Rotary) and part.grid and part.rotary_dim is None
        for part in parts
    ):
        raise ValueError(
            f"{owner}(hidden_dim={encoder.hidden_dim}, num_heads={encoder.num_heads}) has heads of "
            f"{encoder.key_dim}, and position='rotary_2d' needs heads that 4 divides. Change one, "
            "or take another position, such as 'learned'."
        )


def _normalize_pixels(owner, num_channels, mean, std):
    """The layer, without weights, that takes a mean from each channel and divides it."""
    mean = (0.0,) * num_channels if mean is None else tuple(map(float, mean))
    std = (1.0,) * num_channels if std is None else tuple(map(float, std))
    for name, values in (("pixel_mean", mean), ("pixel_std", std)):
        if len(values) != num_channels:
            raise ValueError(
                f"{owner}({name}={values}): expected {num_channels} numbers, one for each channel."
            )
    if min(std) <= 0:
        raise ValueError(f"{owner}(pixel_std={std}): expected numbers above 0.")
    variance = [deviation**2 for deviation in std]
    return keras.layers.Normalization(mean=mean, variance=variance, name="normalization")


@takes_keywords_of(encode_image, without=["owner", "each_layer"])
def vision_transformer(
    image_size, num_classes, *, pooling="cls", name="vision_transformer", **encoder
):
    """Vision transformer for classification (Dosovitskiy et al., 2021, figure 1).

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        num_classes: int.
        patch_size: int or (height, width); of the stem's output when there is a stem.
        num_channels: int.
        position: `"learned"` for the paper's table, one vector for each patch and prefix token;
            `"rotary_2d"` for a `Rotary` on the grid of patches, of wavelength 100 (Heo et al.,
            2024), with which a detector learns in far fewer epochs; `"sinusoidal_2d"`,
            `"learned_2d"`, `"swin_bias"` or `"continuous_bias"`, likewise of the patches; or as in
            `TransformerEncoder`.
        pooling: `"cls"` puts a class token in front and reads it; `"mean"`, `"max"` and
            `"attention"` pool the patches, and `"map"` by an `AttentionPooling` with heads and a
            feed-forward network as in the blocks (Zhai et al., 2022); `"cls_mean"` reads the class
            token and the mean of the patches, `"prefix"` the class token and the registers, one
            after another.
        num_registers: int, learned tokens after the class token that are thrown away (Darcet et
            al., 2024), unless the pooling is `"prefix"`.
        normalize_embeddings: bool, whether a norm precedes the blocks (Radford et al., 2021,
            *CLIP*). normalize_pooled: bool, whether the norm that ends the stack follows the
            pooling, in place of preceding it (He et al., 2022, *MAE*, of a mean of the patches).
        patch_bias: bool, whether the projection of patches has a bias.
        pixel_mean, pixel_std: floats, one for each channel: the model itself takes the mean from
            its pixels and divides by the deviation, so that images stay from 0 to 1; None for not.
        stem_filters: tuple, a `ConvolutionStem` of these filters before the patches (Xiao et al.,
            2021); stem_strides: tuple, as many strides, all 2 by default.
        name: str.
        encoder: keywords of `TransformerEncoder`, which documents them: sizes, `dropout` (here of
            embeddings too), norms, and the parts `score`, `normalizer` and `mask`. Published
            sizes: `ka.models.sizes("vision_transformer")`.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels), by
        convention scaled to [0, 1]. Output: logits (B, num_classes), float32.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.vision_transformer(
        8,
        10,
        patch_size=2,
        num_channels=1,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
    )
    assert model(np.ones((3, 8, 8, 1))).shape == (3, 10)
    assert "DeiT-S" in ka.models.sizes("vision_transformer")
    ```
    """
    if pooling is None:
        raise ValueError("pooling=None gives no vector to classify: use image_encoder for tokens.")
    images, x = encode_image(image_size, pooling=pooling, **encoder)
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(images, logits, name=name)


@takes_keywords_of(encode_image, without=["owner", "each_layer"])
def image_encoder(
    image_size,
    *,
    pooling="cls",
    projection_dim=None,
    unit_length=False,
    name="image_encoder",
    **encoder,
):
    """A vision transformer without a head (Dosovitskiy et al., 2021): vectors of images.

    For search, or for a head of your own; with `projection_dim` the image tower of CLIP (Radford et
    al., 2021).

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        pooling: as in `vision_transformer`; None gives a vector of each patch, without a class
            token, after the registers.
        projection_dim: int, the size of the vectors, by a linear layer without bias; or None.
        unit_length: bool, whether they get the length 1, so that inner products are cosines.
        name: str.
        encoder: keywords of `vision_transformer`, which documents them, and of
            `TransformerEncoder`. Published sizes: `ka.models.sizes("image_encoder")`.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels).
        Output: `image_embedding` (B, hidden_dim), or (B, projection_dim), or what the pooling
        makes; `hidden_states` (B, T, hidden_dim) without pooling.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(patch_size=2, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.image_encoder(8, projection_dim=6, unit_length=True, **size)
    vectors = np.array(model(np.random.rand(3, 8, 8, 3)))
    assert vectors.shape == (3, 6) and np.allclose((vectors**2).sum(1), 1.0, atol=1e-5)
    ```
    """
    if pooling is None and (projection_dim is not None or unit_length):
        raise ValueError("projection_dim= and unit_length= are for one vector: give pooling= too.")
    images, x = encode_image(image_size, pooling=pooling, owner="image_encoder", **encoder)
    if projection_dim is not None:
        x = keras.layers.Dense(projection_dim, use_bias=False, name="projection")(x)
    if unit_length:
        x = keras.layers.UnitNormalization(name="unit_length")(x)
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "image_embedding")(x)
    return keras.Model(images, x, name=name)
