"""What the builders of models that write have in common: what is seen, and what comes out."""

import keras

from keras_attention import masks


def causal(mask=None):
    """`mask` and no sight of the future: the mask of a decoder."""
    mask = masks.get(mask)
    return masks.Causal() if mask in (None, masks.Causal()) else masks.Causal() & mask


def logits(x, embedding, tied):
    """(B, T, D) to logits (B, T, vocabulary_size), by the embedding's table or a matrix of its own.

    They are float32, whatever the policy.
    """
    if tied:
        return named(embedding(x, reverse=True))
    size = embedding.vocabulary_size
    return keras.layers.Dense(size, use_bias=False, dtype="float32", name="logits")(x)


def named(logits):
    """The tensor as an output that is called `logits`, in files as well."""
    return keras.layers.Identity(dtype="float32", name="logits")(logits)


def join(encoder, decoder, name):
    """The model of `{"source_ids", "target_ids"}` that runs `decoder` on what `encoder` returns."""
    decoder.supports_masking = True  # called alone it would warn that the source's mask is lost
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    output = decoder({"target_ids": target_ids, "encoded": encoder(source_ids)})
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    return keras.Model(inputs, named(output), name=name)
