"""The vision transformer: images as sequences of patches."""

import keras

from keras_attention.blocks.pooling import get_pooling
from keras_attention.core import checks
from keras_attention.models.image_embedding import ImageEmbedding, split_position
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.transformer import TransformerEncoder


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


def _clip(patch_size, num_layers, num_heads, hidden_dim, projection_dim):
    """Radford et al. (2021), table 20, of images 224 pixels wide."""
    return dict(
        patch_size=patch_size,
        hidden_dim=hidden_dim,
        embedding=ImageEmbedding(normalization="layer_norm", epsilon=1e-5, use_bias=False),
        encoder=TransformerEncoder.of_size(
            num_layers, num_heads, hidden_dim, 4 * hidden_dim, activation="quick_gelu", epsilon=1e-5
        ),
        head=[keras.layers.Dense(projection_dim, use_bias=False, name="projection")],
    )


ENCODER_SIZES = {
    "CLIP-ViT-B/32": lambda: _clip(32, 12, 12, 768, 512),
    "CLIP-ViT-B/16": lambda: _clip(16, 12, 12, 768, 512),
    "CLIP-ViT-L/14": lambda: _clip(14, 24, 16, 1024, 768),
}
WITH_CLASS_TOKEN = ("cls", "cls_mean", "prefix")


def vision_transformer(
    image_size,
    num_classes,
    *,
    patch_size=16,
    num_channels=3,
    num_layers=12,
    num_heads=3,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.0,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="learned",
    embedding=None,
    encoder=None,
    pooling="cls",
    head=(),
    name="vision_transformer",
):
    """Vision transformer for classification (Dosovitskiy et al., 2021, figure 1).

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        num_classes: int.
        patch_size: int or (height, width), of the stem's output if the embedding has a stem.
        num_channels: int.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of the encoder, as in
            `TransformerEncoder.of_size`. `hidden_dim` is also that of the embedding.
        dropout: float, of the embedding and in the encoder.
        score, normalizer, mask: parts of the attention.
        position: `"learned"` for the paper's table, one vector for each patch and prefix token;
            `"rotary_2d"` for a `Rotary` on the grid of patches, of wavelength 100 (Heo et al.,
            2024), with which a detector learns in far fewer epochs; `"sinusoidal_2d"`,
            `"learned_2d"`, `"swin_bias"` or `"continuous_bias"`, likewise of the patches; or a
            part, its name, its config or a list. What rotates or biases goes into the attention,
            what is added into the embedding.
        embedding: `ImageEmbedding`: a convolution stem, registers, normalized pixels and more.
        encoder: what makes vectors (B, T, hidden_dim) of vectors, such as a `TransformerEncoder`,
            or any function, layer or model. The sizes but `hidden_dim`, and the parts of the
            attention, are then stated in it.
        pooling: `"cls"` puts a class token in front and reads it; `"mean"`, `"max"` and
            `"attention"` pool the patches; `"cls_mean"` reads the class token and the mean of the
            patches, `"prefix"` the class token and the registers, one after another; or a layer,
            such as `ka.blocks.AttentionPooling`.
        head: layers between the pooled vector and the logits, called one after another.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels), by
        convention scaled to [0, 1]. Output: logits (B, num_classes), float32. Published sizes:
        `ka.models.sizes("vision_transformer")`.

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
    embedding = ImageEmbedding() if embedding is None else embedding
    num_prefix_tokens = embedding.num_registers + (pooling in WITH_CLASS_TOKEN)
    grid = embedding.count_patches(image_size, patch_size)
    added, position = split_position(position, grid, num_prefix_tokens, hidden_dim / num_heads)
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(vision_transformer, encoder, hidden_dim, dropout, sizes | parts)
    images = image_input(image_size, num_channels)
    x = embedding(images, patch_size, hidden_dim, added, dropout, num_prefix_tokens)
    x = encoder(x)
    x = get_pooling(pooling, num_prefix_tokens)(x)
    for layer in head:
        x = layer(x)
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(images, logits, name=name)


def image_encoder(
    image_size,
    *,
    patch_size=16,
    num_channels=3,
    num_layers=12,
    num_heads=3,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.0,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="learned",
    embedding=None,
    encoder=None,
    pooling="cls",
    head=(),
    name="image_encoder",
):
    """A vision transformer without logits (Dosovitskiy et al., 2021): vectors of images.

    For search, or for a head of your own. With a projection as `head` it is the image tower of CLIP
    (Radford et al., 2021).

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        patch_size, num_channels, ..., encoder: as in `vision_transformer`.
        pooling: as in `vision_transformer`. None gives a vector of each patch, without a class
            token, after the registers.
        head: layers that are called on the result one after another, such as a projection, or
            `keras.layers.UnitNormalization` for cosines as inner products.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels).
        Output: `image_embedding` (B, hidden_dim), or what the pooling and the head make;
        `hidden_states` (B, T, hidden_dim) without pooling. Published sizes:
        `ka.models.sizes("image_encoder")`.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    size = dict(patch_size=2, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    head = [keras.layers.Dense(6, name="projection"), keras.layers.UnitNormalization()]
    model = ka.models.image_encoder(8, head=head, **size)
    vectors = np.array(model(np.random.rand(3, 8, 8, 3)))
    assert vectors.shape == (3, 6) and np.allclose((vectors**2).sum(1), 1.0, atol=1e-5)
    ```
    """
    embedding = ImageEmbedding() if embedding is None else embedding
    num_prefix_tokens = embedding.num_registers + (pooling in WITH_CLASS_TOKEN)
    grid = embedding.count_patches(image_size, patch_size)
    added, position = split_position(position, grid, num_prefix_tokens, hidden_dim / num_heads)
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(image_encoder, encoder, hidden_dim, dropout, sizes | parts)
    images = image_input(image_size, num_channels)
    x = embedding(images, patch_size, hidden_dim, added, dropout, num_prefix_tokens)
    x = encoder(x)
    if pooling is not None:
        x = get_pooling(pooling, num_prefix_tokens)(x)
    for layer in head:
        x = layer(x)
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "image_embedding")(x)
    return keras.Model(images, x, name=name)


def image_input(image_size, num_channels):
    """Make the input of a model of images (B, height, width, num_channels), float32."""
    size = checks.check_height_and_width("image_input", "image_size", image_size)
    num_channels = checks.check_whole_number("image_input", "num_channels", num_channels)
    return keras.Input((*size, num_channels), name="images")
