"""Sequence labeling: a label for every token."""

import keras

from keras_attention.models.embeddings import spell_words
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.text_encoder import encode_text, text_encoder

SIZES = {
    # Vaswani et al. (2017), table 3, the base and big encoders
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
}


@takes_keywords_of(
    text_encoder,
    without=["pooling", "pooler_activation", "projection_dim", "unit_length", "name"],
    num_layers=3,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    position="rotary",
)
def encode_words(
    vocabulary_size,
    *,
    character_vocabulary_size=None,
    word_length=16,
    character_dim=32,
    character_filters=64,
    character_widths=(2, 3, 4),
    **encoder,
):
    """The inputs of a `sequence_labeler`, and its symbolic vectors of tokens (B, T, D).

    Args: as there.
    """

    def embed(embedding, ids, positions):
        x, characters = spell_words(
            embedding,
            ids,
            positions,
            character_vocabulary_size,
            word_length,
            hidden_dim=encoder["hidden_dim"],
            dropout=encoder["dropout"],
            dim=character_dim,
            filters=character_filters,
            widths=character_widths,
        )
        return x, {"character_ids": characters}

    has_characters = character_vocabulary_size is not None
    return encode_text(vocabulary_size, embed=embed if has_characters else None, **encoder)


@takes_keywords_of(encode_words)
def sequence_labeler(
    vocabulary_size,
    num_labels,
    *,
    name="sequence_labeler",
    **encoder,
):
    """Transformer encoder with a label for every token, as for tags and entities.

    (Vaswani et al., 2017, the encoder; Ma and Hovy, 2016, characters beside words.)

    Args:
        vocabulary_size: int, number of token ids.
        num_labels: int.
        character_vocabulary_size: int, number of character ids, or None for words alone.
        word_length: int C, characters of a word that are looked at.
        character_dim, character_filters, character_widths: the sizes of `CharacterEmbedding`.
        name: str.
        encoder: keywords of `text_encoder`, which documents them, but for its pooling: tokens,
            segments, `dropout`, and with them those of `TransformerEncoder`: sizes, norms and
            parts. Published sizes: `ka.models.sizes("sequence_labeler")`.

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
    inputs, x = encode_words(vocabulary_size, **encoder)
    logits = keras.layers.Dense(num_labels, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name=name)
