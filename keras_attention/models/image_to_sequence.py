"""Pictures to tokens by an encoder and a decoder: captions, or objects written as tokens."""

import keras

from keras_attention import positions
from keras_attention.models.image_embedding import ImageEmbedding, split_position
from keras_attention.models.stack_choice import check_unused
from keras_attention.models.text_decoder import build_text_decoder, join
from keras_attention.models.text_embedding import TextEmbedding
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder
from keras_attention.models.vision_transformer import image_input


def _pix2seq():
    """Chen et al. (2022), section 4.1, with learned convolutions in place of the ResNet-50."""
    return dict(
        num_layers=6,
        num_heads=8,
        hidden_dim=256,
        intermediate_dim=1024,
        patch_size=1,
        embedding=ImageEmbedding(stem_filters=(64, 128, 256, 512, 512)),
    )


SIZES = {"Pix2Seq": _pix2seq}


def image_to_sequence(
    image_size,
    vocabulary_size,
    *,
    patch_size=16,
    num_channels=3,
    num_layers=6,
    num_decoder_layers=None,
    num_heads=4,
    hidden_dim=256,
    intermediate_dim=1024,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="learned",
    decoder_position="sinusoidal",
    embedding=None,
    target_embedding=None,
    encoder=None,
    decoder=None,
    tie_embeddings=True,
    name="image_to_sequence",
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
        patch_size, num_channels, num_layers, ..., dropout: as in `vision_transformer`, sizes of
            encoder and decoder.
        num_decoder_layers: int, if it differs from `num_layers`.
        score, normalizer: parts of the attention. mask: of the encoder's attention.
        position: of the encoder, as in `vision_transformer`.
        decoder_position: a part, its name, its config or a list, of the decoder.
        embedding: `ImageEmbedding`: a convolution stem, registers, normalized pixels and more.
        target_embedding: `TextEmbedding` of the target. Tokens are multiplied by √hidden_dim,
            unless it says otherwise.
        encoder, decoder: a `TransformerEncoder` and a `TransformerDecoder`, or any functions of x,
            and of x and the encoded image. Sizes and parts are then stated in them.
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings, or have a matrix of their own.
        name: str.

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
    embedding = ImageEmbedding() if embedding is None else embedding
    grid = embedding.count_patches(image_size, patch_size)
    added, position = split_position(
        position, grid, embedding.num_registers, hidden_dim / num_heads
    )
    decoder_position = positions.get(decoder_position)
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim)
    sizes |= dict(score=score, normalizer=normalizer)
    own = dict(mask=mask, position=position)
    check_unused(image_to_sequence, "encoder", encoder, **own)
    check_unused(image_to_sequence, "decoder", encoder and decoder, **sizes)
    check_unused(image_to_sequence, "decoder", decoder, num_decoder_layers=num_decoder_layers)
    sizes |= dict(hidden_dim=hidden_dim, dropout=dropout)
    if encoder is None:
        encoder = TransformerEncoder.of_size(num_layers, **sizes, **own)
    if decoder is None:
        decoder = TransformerDecoder.of_size(
            num_decoder_layers or num_layers,
            position=positions.for_role(decoder_position, "rotate", "bias"),
            **sizes,
        )
    target_embedding = TextEmbedding() if target_embedding is None else target_embedding

    images = image_input(image_size, num_channels)
    x = embedding(images, patch_size, hidden_dim, added, dropout, embedding.num_registers)
    x = encoder(x)
    encoder_model = keras.Model({"images": images}, x, name="encoder")

    decoder_model = build_text_decoder(
        *(vocabulary_size, hidden_dim, dropout, decoder_position),
        *(target_embedding, decoder, x, tie_embeddings),
    )
    inputs, _, logits = join(encoder_model, decoder_model)
    return keras.Model(inputs, logits, name=name)
