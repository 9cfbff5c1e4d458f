"""Language modelling: each token from those before it."""

import keras

from keras_attention import positions
from keras_attention.blocks import TokenEmbedding
from keras_attention.models import ends
from keras_attention.models.stack import encoder_stack, own, positioned


def _gpt_2(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        position="learned",
        max_length=1024,
        activation="gelu_tanh",
        epsilon=1e-5,
    )


SIZES = {
    # Radford et al. (2019), table 2; with vocabulary_size=50257 the released models
    "GPT-2": _gpt_2(12, 12, 768),
    "GPT-2-medium": _gpt_2(24, 16, 1024),
    "GPT-2-large": _gpt_2(36, 20, 1280),
    "GPT-2-XL": _gpt_2(48, 25, 1600),
}


def causal_language_model(
    vocabulary_size,
    *,
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    num_key_value_heads=None,
    dropout=0.1,
    attention_dropout=0.0,
    norm="pre",
    normalization="layer_norm",
    activation="gelu",
    position="rotary",
    max_length=None,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    num_blocks=None,
    use_bias=True,
    tie_embeddings=True,
    epsilon=1e-6,
    name="causal_language_model",
):
    """Decoder-only Transformer: logits of the next token (Radford et al., 2019, section 2.3).

    Args:
        vocabulary_size: int, number of token ids; id 0 is padding and masked inside.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, the decoder's size. Published
            ones: `ka.models.sizes("causal_language_model")`.
        num_key_value_heads: int that divides `num_heads`, or None for as many (Ainslie et al.,
            2023): the cache of a decoding model shrinks with it.
        dropout: float, on embeddings and in every block; attention_dropout: on attention weights.
        norm, normalization, activation: as in `EncoderBlock` and `FeedForward`.
        position: a part, its name or its config; a list combines them. Those that are added go to
            the embedding, the others into every block. `"learned"` is a table of `max_length`.
        score, normalizer: a part, its name or its config.
        mask: what the tokens may attend to of those before them, such as `Window(128)`, or None
            for all: nobody sees the future, whatever it allows.
        num_blocks: int, how many blocks have weights of their own: 1 shares one over all layers
            (Lan et al., 2020, *ALBERT*). None is one for each layer.
        use_bias: bool, whether projections in the blocks have a bias.
        tie_embeddings: bool, whether the logits are inner products with the tokens' embeddings
            (Press and Wolf, 2017), or have a matrix of their own.
        epsilon: float, of the normalizations.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T). Output: logits (B, T,
        vocabulary_size), float32, at each place those of the token that follows.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.causal_language_model(
        100,
        num_layers=1,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=32,
        num_key_value_heads=2,
        mask=ka.masks.Window(3),
    )
    ids = np.array([[5, 7, 9, 4]])
    assert model(ids).shape == (1, 4, 100)
    assert "GPT-2" in ka.models.sizes("causal_language_model")
    ```
    """
    tokens = keras.Input((None,), dtype="int32", name="token_ids")
    position = positioned(position, max_length)
    embedding = TokenEmbedding(
        vocabulary_size,
        hidden_dim,
        position=own(positions.for_role(position, "embed")),
        embeddings_initializer=keras.initializers.RandomNormal(stddev=0.02),
        name="embedding",
    )
    x = keras.layers.Dropout(dropout, name="dropout")(embedding(tokens))
    x = encoder_stack(
        x,
        num_layers=num_layers,
        num_heads=num_heads,
        intermediate_dim=intermediate_dim,
        num_key_value_heads=num_key_value_heads,
        num_blocks=num_blocks,
        dropout=dropout,
        attention_dropout=attention_dropout,
        norm=norm,
        normalization=normalization,
        activation=activation,
        use_bias=use_bias,
        position=position,
        score=score,
        normalizer=normalizer,
        mask=ends.causal(mask),
        epsilon=epsilon,
    )
    return keras.Model(tokens, ends.logits(x, embedding, tie_embeddings), name=name)
