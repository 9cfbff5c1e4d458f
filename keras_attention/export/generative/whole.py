"""A model on whole sequences, without a cache: what every way of decoding must equal."""

import keras
import numpy as np

from keras_attention.export import endpoint as endpoints


def logits(decoder, tokens, source=None):
    """The logits (B, T, V), an array, of ids (B, T) that are padded on the right, if at all.

    Args:
        source: dict of arrays, the encoder's inputs; None for a language model.
    """
    with keras.device("cpu:0"):
        given = decoder.model(_inputs(decoder, tokens, source or {}), training=False)
    return np.array(keras.tree.flatten(given)[0], "float32")


def _inputs(decoder, tokens, source):
    """What the model takes: the encoder's inputs by name, and the ids as the one that is left."""
    by_name = {name: source.get(name, tokens) for name in endpoints.names(decoder.model)}
    return endpoints.pack(decoder.model, by_name)


def split(decoder, batch):
    """A batch for the model as its target ids and the encoder's inputs (None without one)."""
    if not decoder.has_source:
        return next(iter(batch.values())), None
    names = endpoints.names(decoder.encoder)
    (target,) = (array for name, array in batch.items() if name not in names)
    return target, {name: batch[name] for name in names}
