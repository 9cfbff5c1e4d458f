"""`join_towers`: joins an image encoder and a text encoder to one model that compares them."""

from keras_attention.core.lazy import blocks, keras

TEMPERATURE = 0.07  # initial value in CLIP


def join_towers(image_encoder, text_encoder, *, temperature=TEMPERATURE, bias=None):
    """Return a model that compares every image of a batch with every text.

    Args:
        image_encoder: functional `keras.Model` from images (B, H, W, C) to vectors (B, D).
        text_encoder: functional `keras.Model` from token ids (B, T) to vectors (B, D).
        temperature, bias: as in `ka.blocks.ContrastiveLogits`.

    Returns:
        A functional `keras.Model` from a dict of `"images"` and `"token_ids"` to logits: a row for
        each image and a column for each text.
    """
    image, text = image_encoder.input, text_encoder.input
    inputs = {
        "images": keras.Input(image.shape[1:], dtype=image.dtype, name="images"),
        "token_ids": keras.Input(text.shape[1:], dtype=text.dtype, name="token_ids"),
    }
    vectors = image_encoder(inputs["images"]), text_encoder(inputs["token_ids"])
    logits = blocks.ContrastiveLogits(temperature, bias=bias, dtype="float32", name="logits")
    return keras.Model(inputs, logits(*vectors), name="image_text_matcher")
