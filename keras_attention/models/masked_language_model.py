"""Masked language modelling: the tokens that were taken away, from those around them."""

import functools

import keras

from keras_attention import positions
from keras_attention.blocks import SegmentEmbedding, TokenEmbedding
from keras_attention.blocks.encoder import NORMALIZATIONS
from keras_attention.blocks.feed_forward import activation_of
from keras_attention.models import ends
from keras_attention.models.stack import encoder_stack, own, positioned


def _bert(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        position="learned",
        max_length=512,
        num_segments=2,
        norm="post",
        epsilon=1e-12,
    )


SIZES = {
    # Devlin et al. (2019), section 3; with vocabulary_size=30522 the released models
    "BERT-Base": _bert(12, 12, 768),
    "BERT-Large": _bert(24, 16, 1024),
    # Turc et al. (2019), table 1, the released compact models
    "BERT-Tiny": _bert(2, 2, 128),
    "BERT-Mini": _bert(4, 4, 256),
    "BERT-Small": _bert(4, 8, 512),
    "BERT-Medium": _bert(8, 8, 512),
}


def masked_language_model(
    vocabulary_size,
    *,
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    dropout=0.1,
    attention_dropout=0.0,
    norm="post",
    normalization="layer_norm",
    activation="gelu",
    position="rotary",
    max_length=None,
    num_segments=None,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    num_blocks=None,
    epsilon=1e-6,
    name="masked_language_model",
):
    """Bidirectional encoder with logits for every place (Devlin et al., 2019, task 1 of 3.1).

    The embeddings are normalized; the head is a dense layer, the activation, a norm and inner
    products with the tokens' embeddings, plus a bias.

    Args:
        vocabulary_size: int, number of token ids; id 0 is padding and masked inside.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, the encoder's size. Published
            ones: `ka.models.sizes("masked_language_model")`.
        dropout: float, on embeddings and in every block; attention_dropout: on attention weights.
        norm, normalization, activation: as in `EncoderBlock` and `FeedForward`.
        position: a part, its name or its config; a list combines them. Those that are added go to
            the embedding, the others into every block. `"learned"` is a table of `max_length`.
        num_segments: int, kinds of segments, such as 2 for pairs of sentences, or None for none.
        score, normalizer, mask: a part, its name or its config.
        num_blocks: int, how many blocks have weights of their own: 1 shares one over all layers
            (Lan et al., 2020, *ALBERT*). None is one for each layer.
        epsilon: float, of the normalizations.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T); with `num_segments` a dict
        with `"segment_ids"` int32 (B, T) too, from 0. Output: logits (B, T, vocabulary_size),
        float32.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.masked_language_model(
        100, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, num_segments=2
    )
    pair = {"token_ids": np.array([[5, 7, 9, 0]]), "segment_ids": np.array([[0, 1, 1, 0]])}
    assert model(pair).shape == (1, 4, 100)
    assert "BERT-Base" in ka.models.sizes("masked_language_model")
    ```
    """
    make_norm = functools.partial(NORMALIZATIONS[normalization], epsilon=epsilon)
    small = functools.partial(keras.initializers.TruncatedNormal, stddev=0.02)
    tokens = inputs = keras.Input((None,), dtype="int32", name="token_ids")
    position = positioned(position, max_length)
    embedding = TokenEmbedding(
        vocabulary_size,
        hidden_dim,
        position=own(positions.for_role(position, "embed")),
        embeddings_initializer=small(),
        logit_bias=True,
        name="embedding",
    )
    x = embedding(tokens)
    if num_segments is not None:
        segments = keras.Input((None,), dtype="int32", name="segment_ids")
        inputs = {"token_ids": tokens, "segment_ids": segments}
        x = SegmentEmbedding(num_segments, small(), name="segments")(x, segments)
    x = keras.layers.Dropout(dropout, name="dropout")(make_norm(name="embedding_norm")(x))
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
        epsilon=epsilon,
    )
    x = keras.layers.Dense(hidden_dim, activation=activation_of(activation), name="transform")(x)
    x = make_norm(name="transform_norm")(x)
    return keras.Model(inputs, ends.named(embedding(x, reverse=True)), name=name)
