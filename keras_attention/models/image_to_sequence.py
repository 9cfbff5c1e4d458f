"""Pictures to tokens by an encoder and a decoder: captions, or objects written as tokens."""

import dataclasses

import keras

from keras_attention.models.keywords import get_position, takes_keywords_of
from keras_attention.models.stack_keywords import DecoderKeywords, EncoderKeywords
from keras_attention.models.text_decoder import build_text_decoder, join
from keras_attention.models.vision_transformer import encode_image

SIZES = {
    # Chen et al. (2022), section 4.1, with learned convolutions of its stride for the ResNet-50
    "Pix2Seq": dict(
        num_layers=6,
        num_decoder_layers=6,
        num_heads=8,
        hidden_dim=256,
        intermediate_dim=1024,
        stem_filters=(64, 128, 256, 512, 512),
        patch_size=1,
    ),
}
OF_ENCODER = {"mask", "layer_masks", "layer_positions", "num_blocks", "first_norm"}


@takes_keywords_of(
    encode_image,
    without=["owner", "each_layer", "pooling", "normalize_pooled"],
    patch_size=16,
    num_layers=6,
    num_heads=4,
    hidden_dim=256,
    intermediate_dim=1024,
    dropout=0.1,
)
def image_to_sequence(
    image_size,
    vocabulary_size,
    *,
    num_decoder_layers=None,
    decoder_position="sinusoidal",
    max_length=None,
    cross_position=None,
    scale_embeddings=True,
    tie_embeddings=True,
    target_padding_id=0,
    name="image_to_sequence",
    **encoder,
):
    """From a picture to a sequence of tokens: patches in, text out.

    A vision transformer beside a decoder (Li et al., 2023, *TrOCR*, figure 1; Dosovitskiy et al.,
    2021, for the encoder). What is written is a caption, or objects: four tokens for the sides of a
    box and one for its class, which makes detection a task of language (Chen et al., 2022,
    *Pix2Seq*, section 2). It generates with a cache: `ka.generation.generate` takes
    `{"images": ...}`, and exported files hold the whole loop.

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        vocabulary_size: int V, number of target ids.
        num_decoder_layers: int, if it differs from `num_layers`.
        decoder_position: `position` of the decoder. `"learned"` is a table of `max_length`.
        max_length: int, how many positions `decoder_position="learned"` has.
        cross_position: a position that rotates or biases in cross-attention, or None.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim.
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings, or have a matrix of their own.
        target_padding_id: int, the target id that is no token; None where every id is one.
        name: str.
        encoder: `patch_size`, `num_channels`, `position`, `stem_filters`, `num_registers` and the
            other keywords of `vision_transformer` before its pooling; and those of
            `TransformerEncoder`, which documents them, for encoder and decoder. `mask`,
            `layer_masks`, `layer_positions`, `num_blocks` and `first_norm` are the encoder's
            alone. Published sizes: `ka.models.sizes("image_to_sequence")`.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"images"` float32 (B, height, width,
        num_channels), by convention scaled to [0, 1], and `"target_ids"` int32 (B, U), which begin
        with a start token of your own. Output: logits (B, U, V), float32, at each place those of
        the target token that follows.
        It consists of two functional models, available by `get_layer`: `"encoder"`, from images to
        `encoded` (B, P, D), a vector of each patch, and `"decoder"`, from
        `{"target_ids", "encoded"}` to logits.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.image_to_sequence((16, 24), 30, patch_size=8, **size)
    images = np.ones((2, 16, 24, 3), "float32")
    assert model({"images": images, "target_ids": np.array([[1, 4], [1, 5]])}).shape == (2, 2, 30)
    ids = ka.generation.generate(model, {"images": images}, 4, start_token_id=1)
    assert ids.shape == (2, 4)
    ```
    """
    images, x = encode_image(image_size, pooling=None, owner="image_to_sequence", **encoder)
    encoder_model = keras.Model({"images": images}, x, name="encoder")
    known = {field.name for field in dataclasses.fields(EncoderKeywords)} - OF_ENCODER
    decoder = DecoderKeywords(
        **{key: value for key, value in encoder.items() if key in known}
        | {
            "num_layers": num_decoder_layers or encoder["num_layers"],
            "position": get_position(decoder_position, max_length),
            "cross_position": cross_position,
        }
    )
    decoder_model = build_text_decoder(
        vocabulary_size,
        decoder,
        encoder_model.output,
        scale_embeddings=scale_embeddings,
        tie_embeddings=tie_embeddings,
        padding_id=target_padding_id,
    )
    inputs, _, logits = join(encoder_model, decoder_model)
    return keras.Model(inputs, logits, name=name)
