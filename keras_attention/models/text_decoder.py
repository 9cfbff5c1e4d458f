"""The side of an encoder-decoder that writes, and `join`, which joins it with the other."""

import keras

from keras_attention.models.head import name_logits, token_logits
from keras_attention.models.stack_choice import name_blocks


def build_text_decoder(
    vocabulary_size, hidden_dim, dropout, position, embedding, decoder, encoded, tie_embeddings
):
    """Build the functional model `"decoder"`, from `{"target_ids", "encoded"}` to logits (B, U, V).

    Args:
        vocabulary_size: int V. hidden_dim: int, of the embedding. dropout: float, of it.
        position: of the builder; what is added to tokens is added here.
        embedding: `TextEmbedding`. decoder: `TransformerDecoder`, or a function of two tensors.
        encoded: what the encoder returns (B, S, E), symbolic.
        tie_embeddings: bool, whether logits are inner products with the tokens' embeddings.
    """
    target = embedding.inputs("target")
    encoded = keras.Input(encoded.shape[1:], dtype=encoded.dtype, name="encoded")
    start = dict(scale=True, initializer=keras.initializers.RandomNormal(stddev=hidden_dim**-0.5))
    x, _, tokens = embedding(target, vocabulary_size, hidden_dim, position, dropout, **start)
    x = name_blocks(decoder, "decoder_block")(x, encoded)
    logits = token_logits(x, tokens, tie_embeddings)
    inputs = [*target.values(), encoded]
    return keras.Model({x.name: x for x in inputs}, logits, name="decoder")


def join(encoder, decoder):
    """Run a decoder on what an encoder returns.

    Args:
        encoder: functional model with one output.
        decoder: functional model of a dict of inputs, `"encoded"` among them.

    Returns:
        The inputs of both sides, a dict by their names; what the encoder returns; and the logits.
        All are symbolic.
    """
    decoder.supports_masking = True  # or it warns that the mask of what is encoded is lost
    inputs = {
        x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=x.name)
        for x in (*encoder.inputs, *decoder.inputs)
        if x.name != "encoded"
    }
    encoded = encoder(keras.tree.map_structure(lambda x: inputs[x.name], encoder.input))
    known = {**inputs, "encoded": encoded}
    logits = name_logits(decoder({name: known[name] for name in decoder.input}))
    return inputs, encoded, logits
