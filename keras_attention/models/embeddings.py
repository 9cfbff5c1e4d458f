"""`embed_tokens` and `spell_words`: what builders of text do before their stack of blocks."""

import keras

from keras_attention.blocks import (
    CharacterEmbedding,
    SegmentEmbedding,
    TokenEmbedding,
    WordEmbedding,
)
from keras_attention.blocks.packed_documents import document_inputs, name_inputs


def embed_tokens(
    stack,
    vocabulary_size,
    *,
    before_tokens=None,
    embed=None,
    num_segments=None,
    embedding_dim=None,
    normalize_embeddings=False,
    packed=False,
    initializer="uniform",
    after_tokens=None,
    **embedding,
):
    """Token embeddings with positions, segments and a norm, projected to the width of `stack`.

    Args:
        stack: `TransformerEncoder`.
        before_tokens: a function of the ids, before they are embedded, or None.
        embed: a function of the `TokenEmbedding`, ids and positions (or None) that gives x and a
            dict of more inputs, in the place of the embedding alone; or None.
        num_segments, embedding_dim, normalize_embeddings, packed: as in `text_encoder`.
        initializer: a Keras initializer, of tokens and segments.
        after_tokens: a function of the embedded tokens, before segments and norm, or None.
        embedding: more keywords of `TokenEmbedding`.

    Returns:
        x (B, T, D), symbolic; the inputs of the model, a tensor or a dict; the `TokenEmbedding`;
        and the call arguments of a stack for packed documents, a dict.
    """
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    layer = TokenEmbedding(
        vocabulary_size,
        embedding_dim or stack.hidden_dim,
        position=stack.embedding_position(),
        embeddings_initializer=initializer,
        padding=stack.padding,
        name="embedding",
        **embedding,
    )
    inputs, documents = document_inputs(packed)
    x, positions = ids, documents.get("positions")
    if before_tokens is not None:
        x = before_tokens(x)
    if embed is None:
        x = layer(x, positions=positions)
    else:
        x, others = embed(layer, x, positions)
        inputs = {**others, **inputs}
    if after_tokens is not None:
        x = after_tokens(x)
    if num_segments is not None:
        segments = keras.Input((None,), dtype="int32", name="segment_ids")
        inputs = {"segment_ids": segments, **inputs}
        x = SegmentEmbedding(num_segments, _copy(initializer), name="segments")(x, segments)
    if normalize_embeddings:
        x = stack.make_normalization("embedding_norm")(x)
    x = keras.layers.Dropout(stack.dropout, name="dropout")(x)
    if x.shape[-1] != stack.hidden_dim:
        x = keras.layers.Dense(stack.hidden_dim, name="embedding_projection")(x)
    return x, name_inputs(ids, **inputs), layer, documents


def spell_words(
    embedding, ids, positions, vocabulary_size, word_length, *, hidden_dim, dropout, **characters
):
    """Words embedded with their spelling (B, T, hidden_dim), and the input of their characters.

    Args:
        embedding: `TokenEmbedding`. ids: symbolic ids (B, T). positions: of them, or None.
        vocabulary_size: int, number of character ids. word_length: int C, characters of a word.
        hidden_dim: int. dropout: float, of the spelling.
        characters: `filters` and `widths` of `CharacterEmbedding`, and its `hidden_dim` as `dim`.
    """
    letters = keras.Input((None, word_length), dtype="int32", name="character_ids")
    spelling = CharacterEmbedding(
        vocabulary_size,
        characters.pop("dim"),
        dropout=dropout,
        name="characters",
        **characters,
    )
    words = WordEmbedding(embedding, spelling, hidden_dim, name="words")
    return words(ids, letters, positions=positions), letters


def _copy(initializer):
    initializer = keras.initializers.get(initializer)
    return initializer.__class__.from_config(initializer.get_config())
