"""`find_padding`: the padding id of a model, which its embedding owns."""

from keras_attention.blocks.token_embedding import TokenDropout, TokenEmbedding
from keras_attention.core.padding import Padding


def find_padding(layers):
    """Return the `Padding` of the first of `layers` that embeds token ids, or of id 0.

    The embedding owns the padding id of a model. A `TokenDropout` in front of it has the same one.
    """
    for layer in layers:
        if isinstance(layer, TokenEmbedding):
            return Padding(layer.padding_id, layer.padding != "none")
        if isinstance(layer, TokenDropout):
            return Padding(layer.padding_id)
    return Padding()
