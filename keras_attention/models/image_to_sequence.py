"""`image_to_sequence`: builds a model that generates tokens from images, such as captions."""

import keras

from keras_attention import positions
from keras_attention.models.image_embedding import ImageEmbedding, split_position
from keras_attention.models.seq2seq_transformer import build_decoder, join
from keras_attention.models.stack_choice import check_unused
from keras_attention.models.text_embedding import TextEmbedding
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder
from keras_attention.models.vision_transformer import image_input


def _pix2seq():
    """Return a dict of arguments of `image_to_sequence` that build Pix2Seq (Chen et al., 2022).

    A stem of convolutions makes the images smaller first.
    """
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
    """Build a vision transformer with a decoder that generates tokens from an image.

    The tokens can be a caption. They can be the text written in the image (Li et al., 2023,
    *TrOCR*). Or they can list objects, with four tokens for a box and one for its class (Chen et
    al., 2022, *Pix2Seq*, section 2). To generate, call `ka.generation.generate` with the prompt
    `{"images": ...}`.

    Args:
        image_size: int or (height, width) in pixels, a multiple of the patch size.
        vocabulary_size: int V, number of target ids.
        patch_size, num_channels, num_layers, ..., dropout: sizes of the images and the encoder,
            explained in `vision_transformer`. The decoder has the same sizes, and as many layers
            unless `num_decoder_layers` is given.
        score, normalizer: how encoder and decoder compute attention scores and turn them into
            weights, explained in `MultiHeadAttention`.
        mask: the mask of the encoder's attention, one of `keras_attention.masks` or its name.
        position, embedding, encoder: how the encoder encodes positions, embeds patches and encodes
            them, explained in `vision_transformer`.
        num_decoder_layers, decoder_position, target_embedding, decoder, tie_embeddings: the size
            and the parts of the decoder, explained in `seq2seq_transformer`. Its source is the
            encoded image.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"images"` float32 (B, height, width,
        num_channels), by convention from 0 to 1, and `"target_ids"` int32 (B, T), which begin with
        a start token. Output: logits of the next target token (B, T, vocabulary_size), float32.
        `get_layer` returns the model's two functional models: `"encoder"`, from images to `encoded`
        (B, patches, D), one vector for each patch, and `"decoder"`, from `{"target_ids",
        "encoded"}` to logits.

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
    rotation = positions.for_role(decoder_position, "rotate", "bias")
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim)
    sizes |= dict(score=score, normalizer=normalizer)
    own = dict(mask=mask, position=position)
    check_unused(image_to_sequence, "encoder", encoder, **own)
    check_unused(image_to_sequence, "decoder", encoder and decoder, **sizes)
    changed = dict(num_decoder_layers=num_decoder_layers, decoder_position=rotation)
    check_unused(image_to_sequence, "decoder", decoder, **changed)
    sizes |= dict(hidden_dim=hidden_dim, dropout=dropout)
    if encoder is None:
        encoder = TransformerEncoder.of_size(num_layers, **sizes, **own)
    if decoder is None:
        decoder = TransformerDecoder.of_size(
            num_decoder_layers or num_layers,
            position=rotation,
            **sizes,
        )
    target_embedding = TextEmbedding() if target_embedding is None else target_embedding

    images = image_input(image_size, num_channels)
    x = embedding(images, patch_size, hidden_dim, added, dropout, embedding.num_registers)
    x = encoder(x)
    encoder_model = keras.Model({"images": images}, x, name="encoder")

    decoder_model = build_decoder(
        *(vocabulary_size, hidden_dim, dropout, decoder_position),
        *(target_embedding, decoder, x, tie_embeddings),
        keras.initializers.RandomNormal(stddev=hidden_dim**-0.5),
    )
    inputs, _, logits = join(encoder_model, decoder_model)
    return keras.Model(inputs, logits, name=name)
