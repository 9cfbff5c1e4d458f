"""The vision transformer: images as sequences of patches."""

import keras

from keras_attention import checks
from keras_attention.blocks import ConvolutionStem, PatchEmbedding, Pooling
from keras_attention.models.transformer import TransformerEncoder, takes_keywords_of


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


@takes_keywords_of(
    TransformerEncoder,
    without=["max_length"],
    num_layers=12,
    num_heads=3,
    hidden_dim=192,
    intermediate_dim=768,
)
def vision_transformer(
    image_size,
    num_classes,
    *,
    patch_size=16,
    num_channels=3,
    position="learned",
    pooling="cls",
    num_registers=0,
    stem_filters=None,
    stem_strides=None,
    name="vision_transformer",
    **encoder,
):
    """Vision transformer for classification (Dosovitskiy et al., 2021, figure 1).

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        num_classes: int.
        patch_size: int or (height, width); of the stem's output when there is a stem.
        num_channels: int.
        position: `"learned"` for the paper's table, one vector for each patch and prefix token; or
            as in `TransformerEncoder`.
        pooling: `"cls"` puts a class token in front and reads it; `"mean"`, `"max"` and
            `"attention"` pool the patches.
        num_registers: int, learned tokens that are thrown away (Darcet et al., 2024).
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
    learned = position == "learned"
    encoder = TransformerEncoder(position=None if learned else position, **encoder)
    size = checks.check_height_and_width("vision_transformer", "image_size", image_size)
    num_channels = checks.check_whole_number("vision_transformer", "num_channels", num_channels)
    num_prefix_tokens = num_registers + (pooling == "cls")
    images = x = keras.Input((*size, num_channels), name="images")
    if stem_filters:
        strides = stem_strides or (2,) * len(stem_filters)
        x = ConvolutionStem(stem_filters, strides, name="stem")(x)
    x = PatchEmbedding(
        encoder.hidden_dim,
        patch_size,
        num_prefix_tokens=num_prefix_tokens,
        position="learned" if learned else encoder.embedding_position(),
        dropout=encoder.dropout,
        name="patches",
    )(x)
    x = encoder(x)
    x = Pooling(pooling, num_prefix_tokens=num_prefix_tokens, name="pooling")(x)
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(images, logits, name=name)
