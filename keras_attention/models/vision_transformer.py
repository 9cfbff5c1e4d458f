"""`vision_transformer` and `image_encoder`: build models that read images as patches."""

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
    # Dosovitskiy et al. (2021), table 1. Ti and S are from Steiner et al. (2022), table 2.
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
    """Return a dict of arguments of `image_encoder` for CLIP (Radford et al., 2021, table 20)."""
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
    """Build a vision transformer that classifies images (Dosovitskiy et al., 2021, figure 1).

    `ka.models.sizes("vision_transformer")` lists published sizes.

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        num_classes: int, number of classes.
        patch_size: int or (height, width) in pixels. With a convolution stem in the embedding, it
            counts pixels of the stem's output.
        num_channels: int, number of channels of the images.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of the encoder.
            `hidden_dim` is the width of its vectors and of the embedding, `intermediate_dim` the
            width inside the feed-forward networks.
        dropout: float, the dropout rate for the embedding and inside the encoder.
        score, normalizer, mask: how attention scores are computed, how they become weights, and
            which tokens may attend to which. The choices are explained in `MultiHeadAttention`.
        position: a position, its name, its config or a list of these. `"learned"` is a learned
            vector for each token, as in the paper. `"rotary_2d"` is `Rotary(max_wavelength=100)`
            with the row and the column of each patch (Heo et al., 2024), which speeds up the
            training of detectors. `"sinusoidal_2d"`, `"learned_2d"`, `"swin_bias"` and
            `"continuous_bias"` also use rows and columns. Positions that rotate queries and keys or
            bias scores go into the attention, others into the embedding.
        embedding: an `ImageEmbedding`, to set a convolution stem, registers and more. None is
            `ImageEmbedding()`.
        encoder: a `TransformerEncoder`, or any function, layer or model from (B, T, hidden_dim) to
            the same shape. With it, leave out `num_layers`, `num_heads`, `intermediate_dim`,
            `score`, `normalizer`, `mask`, and a `position` for the attention. None makes a
            `TransformerEncoder` from these arguments.
        pooling: how the vectors become one. `"cls"` takes the vector of a class token. `"mean"`,
            `"max"` or `"attention"` pool the patches. `"cls_mean"` concatenates the class token and
            the mean of the patches, `"prefix"` the class token and the registers. Or a layer, such
            as `ka.blocks.AttentionPooling`.
        head: list of layers between the pooled vector and the logits, called one after another.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels), by
        convention from 0 to 1. Output: logits (B, num_classes), float32.

    Raises:
        ValueError: `pooling` is None, sizes do not fit together, or an argument has no effect
            beside an `encoder`.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(patch_size=2, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.vision_transformer(8, 10, **size)
    assert model(np.ones((3, 8, 8, 3))).shape == (3, 10)
    assert "DeiT-S" in ka.models.sizes("vision_transformer")
    ```
    """
    if pooling is None:
        raise ValueError("pooling=None gives no vector to classify. Use image_encoder instead.")
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    images = image_input(image_size, num_channels)
    x = _encode_images(
        *(vision_transformer, images, embedding, encoder, patch_size, hidden_dim, dropout),
        *(sizes | parts, pooling, head),
    )
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
    """Build a vision transformer that computes one vector for each image, without logits.

    Use the vectors for search, or add your own layers. The model follows Dosovitskiy et al. (2021).
    With a projection as `head` it is the image encoder of CLIP (Radford et al., 2021).
    `ka.models.sizes("image_encoder")` lists published sizes.

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        patch_size, num_channels, ..., encoder: sizes and parts of the model, explained in
            `vision_transformer`.
        pooling: how the vectors become one, with the choices of `vision_transformer`. None returns
            a vector for each register and patch.
        head: list of layers that are called on the result one after another. Examples are a
            projection, or `keras.layers.UnitNormalization`, so that inner products are cosines.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels).
        Output: `image_embedding` (B, hidden_dim), or without pooling `hidden_states`
        (B, T, hidden_dim). Pooling and head may change the last axis.

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
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    images = image_input(image_size, num_channels)
    x = _encode_images(
        *(image_encoder, images, embedding, encoder, patch_size, hidden_dim, dropout),
        *(sizes | parts, pooling, head),
    )
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "image_embedding")(x)
    return keras.Model(images, x, name=name)


def _encode_images(
    builder, images, embedding, encoder, patch_size, hidden_dim, dropout, settings, pooling, head
):
    """Embed, encode and pool symbolic `images`, and return the output of the last layer of `head`.

    `builder` is `vision_transformer` or `image_encoder`, for errors. `settings` is a dict of its
    arguments for a new encoder, such as `num_heads`. The others are explained in
    `vision_transformer`.
    """
    embedding = ImageEmbedding() if embedding is None else embedding
    num_prefix_tokens = embedding.num_registers + (pooling in WITH_CLASS_TOKEN)
    grid = embedding.count_patches(images.shape[1:3], patch_size)
    key_dim = hidden_dim / settings["num_heads"]
    added, position = split_position(settings["position"], grid, num_prefix_tokens, key_dim)
    settings = settings | {"position": position}
    encoder = choose_encoder(builder, encoder, hidden_dim, dropout, settings)
    x = embedding(images, patch_size, hidden_dim, added, dropout, num_prefix_tokens)
    x = encoder(x)
    if pooling is not None:
        x = get_pooling(pooling, num_prefix_tokens)(x)
    for layer in head:
        x = layer(x)
    return x


def image_input(image_size, num_channels):
    """Make the symbolic input of an image model, (B, height, width, num_channels), float32."""
    size = checks.check_height_and_width("image_input", "image_size", image_size)
    num_channels = checks.check_whole_number("image_input", "num_channels", num_channels)
    return keras.Input((*size, num_channels), name="images")
