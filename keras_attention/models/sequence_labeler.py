"""Sequence labeling: a label for every token."""

import keras

from keras_attention.blocks import CharacterEmbedding, TokenDropout, TokenEmbedding, WordEmbedding
from keras_attention.blocks.packed_documents import document_inputs, name_inputs
from keras_attention.models.transformer import TransformerEncoder, takes_keywords_of

SIZES = {
    # Vaswani et al. (2017), table 3, the base and big encoders
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
}


@takes_keywords_of(
    TransformerEncoder,
    num_layers=3,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    position="rotary",
)
def sequence_labeler(
    vocabulary_size,
    num_labels,
    *,
    token_dropout=0.0,
    scale_embeddings=False,
    character_vocabulary_size=None,
    word_length=16,
    character_dim=32,
    character_filters=64,
    character_widths=(2, 3, 4),
    packed=False,
    padding_id=0,
    unknown_id=1,
    name="sequence_labeler",
    **encoder,
):
    """Transformer encoder with a label for every token, as for tags and entities.

    (Vaswani et al., 2017, the encoder; Ma and Hovy, 2016, characters beside words.)

    Args:
        vocabulary_size: int, number of token ids.
        num_labels: int.
        token_dropout: float, the share of tokens that become unknown in training.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (Vaswani et al., 2017,
            section 3.4): without it they start small beside `"sinusoidal"` positions.
        character_vocabulary_size: int, number of character ids, or None for words alone.
        word_length: int C, characters of a word that are looked at.
        character_dim, character_filters, character_widths: the sizes of `CharacterEmbedding`.
        packed: bool, whether rows hold several documents each: a second input tells them apart, so
            that tokens see their own document alone and count from its first token.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        unknown_id: int, the id of unknown words, for `token_dropout`.
        name: str.
        encoder: keywords of `TransformerEncoder`, which documents them: sizes, `dropout` (here of
            embeddings too), norms, and the parts `score`, `normalizer`, `mask` and `position`.
            Published sizes: `ka.models.sizes("sequence_labeler")`.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); with characters a dict with
        `"character_ids"` int32 (B, T, C) too, and packed one with `"document_ids"` int32 (B, T),
        the number of each token's document, 1, 2, ..., and 0 for padding. Output: logits
        (B, T, num_labels), float32.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.sequence_labeler(
        1000,
        17,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        position=["alibi", "relative_bias"],
        character_vocabulary_size=80,
    )
    words = {"token_ids": np.ones((2, 5), "int32"), "character_ids": np.ones((2, 5, 16), "int32")}
    assert model(words).shape == (2, 5, 17)
    ```
    """
    encoder = TransformerEncoder(**encoder)
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    inputs, documents = document_inputs(packed)
    positions = documents.get("positions")
    x = tokens
    if token_dropout:
        x = TokenDropout(token_dropout, unknown_id, padding_id=padding_id, name="token_dropout")(x)
    embedding = TokenEmbedding(
        vocabulary_size,
        encoder.hidden_dim,
        position=encoder.embedding_position(),
        scale=scale_embeddings,
        padding_id=padding_id,
        name="embedding",
    )
    if character_vocabulary_size is None:
        x = embedding(x, positions=positions)
    else:
        characters = keras.Input((None, word_length), dtype="int32", name="character_ids")
        inputs = {"character_ids": characters, **inputs}
        spelling = CharacterEmbedding(
            character_vocabulary_size,
            character_dim,
            filters=character_filters,
            widths=character_widths,
            dropout=encoder.dropout,
            name="characters",
        )
        words = WordEmbedding(embedding, spelling, encoder.hidden_dim, name="words")
        x = words(x, characters, positions=positions)
    x = keras.layers.Dropout(encoder.dropout, name="dropout")(x)
    x = encoder(x, **documents)
    logits = keras.layers.Dense(num_labels, dtype="float32", name="logits")(x)
    return keras.Model(name_inputs(tokens, **inputs), logits, name=name)
