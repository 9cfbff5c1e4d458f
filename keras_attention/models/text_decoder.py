"""The side of an encoder-decoder that writes, beside an encoder of anything: sounds, pictures."""

import keras

from keras_attention.blocks import TokenEmbedding
from keras_attention.models.head import name_logits, token_logits


def build_text_decoder(
    vocabulary_size, decoder, encoded, *, scale_embeddings, tie_embeddings, padding_id
):
    """The functional model `"decoder"`, from `{"target_ids", "encoded"}` to logits (B, U, V).

    Args:
        vocabulary_size: int V.
        decoder: `TransformerDecoder`.
        encoded: what the encoder returns (B, S, E), symbolic.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim.
        tie_embeddings: bool, whether logits are inner products with the tokens' embeddings.
        padding_id: int, the id that is no token; or None.
    """
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    encoded = keras.Input(encoded.shape[1:], dtype=encoded.dtype, name="encoded")
    embedding = TokenEmbedding(
        vocabulary_size,
        decoder.hidden_dim,
        position=decoder.embedding_position(),
        scale=scale_embeddings,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=decoder.hidden_dim**-0.5),
        padding_id=padding_id,
        padding=decoder.padding,
        name="embedding",
    )
    x = keras.layers.Dropout(decoder.dropout, name="dropout")(embedding(target_ids))
    x = decoder(x, encoded, name="decoder_block")
    logits = token_logits(x, embedding, tie_embeddings)
    return keras.Model({"target_ids": target_ids, "encoded": encoded}, logits, name="decoder")


def join(encoder, decoder):
    """(the inputs of both, a dict; what the encoder returns; the logits), all symbolic.

    Args:
        encoder: functional model of a dict of inputs.
        decoder: that of `build_text_decoder`.
    """
    decoder.supports_masking = True  # or it warns that the mask of what is encoded is lost
    inputs = {
        key: keras.Input(x.shape[1:], dtype=x.dtype, name=key) for key, x in encoder.input.items()
    }
    encoded = encoder(inputs)
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    logits = name_logits(decoder({"target_ids": target_ids, "encoded": encoded}))
    return {**inputs, "target_ids": target_ids}, encoded, logits
