"""Sequence labeling: a label for every token."""

import keras

from keras_attention import positions
from keras_attention.blocks import CharacterEmbedding, TokenDropout, TokenEmbedding, WordEmbedding
from keras_attention.models.stack import encoder_stack, own

SIZES = {
    # Vaswani et al. (2017), table 3, the base and big encoders
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
}


def sequence_labeler(
    vocabulary_size,
    num_labels,
    *,
    num_layers=3,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    attention_dropout=0.0,
    token_dropout=0.0,
    norm="pre",
    normalization="layer_norm",
    activation="gelu",
    position="rotary",
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    num_blocks=None,
    scale_embeddings=False,
    character_vocabulary_size=None,
    word_length=16,
    character_dim=32,
    character_filters=64,
    character_widths=(2, 3, 4),
    name="sequence_labeler",
):
    """Transformer encoder with a label for every token, as for tags and entities.

    (Vaswani et al., 2017, the encoder; Ma and Hovy, 2016, characters beside words.)

    Args:
        vocabulary_size: int, number of token ids; id 0 is padding and masked inside, id 1 unknown.
        num_labels: int.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, the encoder's size.
        dropout: float, on embeddings and in every block; attention_dropout: on attention weights.
        token_dropout: float, the share of tokens that become unknown in training.
        norm: as in `EncoderBlock`: `"pre"`, `"post"`, `"sandwich"`, `"deep_norm"`, `"rezero"`,
            `"resi_dual"`. normalization: `"layer_norm"` or `"rms_norm"`.
        activation: of the feed-forward networks, gates included.
        position, score, normalizer, mask: a part, its name or its config; a list of positions
            combines them. Those that are added go to the embedding, the others into every block.
        num_blocks: int, how many blocks have weights of their own: 1 shares one over all layers
            (Lan et al., 2020, *ALBERT*). None is one for each layer.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (Vaswani et al., 2017,
            section 3.4): without it they start small beside `"sinusoidal"` positions.
        character_vocabulary_size: int, number of character ids, or None for words alone.
        word_length: int C, characters of a word that are looked at.
        character_dim, character_filters, character_widths: the sizes of `CharacterEmbedding`.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); with characters a dict with
        `"character_ids"` int32 (B, T, C) too. Output: logits (B, T, num_labels), float32.

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
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    inputs = tokens
    position = positions.get(position)
    x = TokenDropout(token_dropout, name="token_dropout")(tokens) if token_dropout else tokens
    embedding = TokenEmbedding(
        vocabulary_size,
        hidden_dim,
        position=own(positions.for_role(position, "embed")),
        scale=scale_embeddings,
        name="embedding",
    )
    if character_vocabulary_size is None:
        x = embedding(x)
    else:
        characters = keras.Input((None, word_length), dtype="int32", name="character_ids")
        inputs = {"token_ids": tokens, "character_ids": characters}
        spelling = CharacterEmbedding(
            character_vocabulary_size,
            character_dim,
            filters=character_filters,
            widths=character_widths,
            dropout=dropout,
            name="characters",
        )
        x = WordEmbedding(embedding, spelling, hidden_dim, name="words")(x, characters)
    x = keras.layers.Dropout(dropout, name="dropout")(x)
    x = encoder_stack(
        x,
        num_layers=num_layers,
        num_heads=num_heads,
        intermediate_dim=intermediate_dim,
        num_blocks=num_blocks,
        dropout=dropout,
        attention_dropout=attention_dropout,
        norm=norm,
        normalization=normalization,
        activation=activation,
        position=position,
        score=score,
        normalizer=normalizer,
        mask=mask,
    )
    logits = keras.layers.Dense(num_labels, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name=name)
