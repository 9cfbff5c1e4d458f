"""`causal_language_model`: builds a model that predicts each token from the earlier tokens."""

import dataclasses

import keras

from keras_attention import positions
from keras_attention.models.head import token_logits
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.transformer import TransformerEncoder


def _gpt_2(num_layers, num_heads, hidden_dim):
    return dict(
        hidden_dim=hidden_dim,
        dropout=0.1,
        position=positions.Learned(1024),
        encoder=TransformerEncoder.of_size(
            num_layers,
            num_heads,
            hidden_dim,
            4 * hidden_dim,
            dropout=0.1,
            activation="gelu_tanh",
            epsilon=1e-5,
        ),
    )


SIZES = {
    # Radford et al. (2019), table 2. The released models have vocabulary_size=50257.
    "GPT-2": lambda: _gpt_2(12, 12, 768),
    "GPT-2-medium": lambda: _gpt_2(24, 16, 1024),
    "GPT-2-large": lambda: _gpt_2(36, 20, 1280),
    "GPT-2-XL": lambda: _gpt_2(48, 25, 1600),
}


def causal_language_model(
    vocabulary_size,
    *,
    num_layers=6,
    num_heads=6,
    hidden_dim=384,
    intermediate_dim=1536,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    embedding=None,
    encoder=None,
    tie_embeddings=True,
    name="causal_language_model",
):
    """Build a model that predicts each token from the earlier tokens, for generating text.

    The model is a decoder-only Transformer, such as GPT-2 (Radford et al., 2019, section 2.3).

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, ..., encoder: sizes and parts of the model, explained in
            `text_encoder`. If the encoder is a `TransformerEncoder`, it gets a causal mask. Any
            other encoder must hide later tokens itself. `ka.models.sizes("causal_language_model")`
            lists published sizes.
        mask: a mask that further limits which earlier tokens a token may attend to, such as
            `Window(128)`. None allows all earlier tokens.
        tie_embeddings: bool, whether the logits are inner products with the token embeddings (Press
            and Wolf, 2017). False uses a separate matrix.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Output: logits of the next token (B, T, vocabulary_size), float32. A
        model whose embedding has `packed=True`, which puts several documents into a row, is for
        training only. To generate, copy its weights to a model built without `packed`.

    ```python
    import numpy as np
    import keras_attention as ka

    encoder = ka.models.TransformerEncoder(
        1,
        attention=ka.attention.MultiHeadAttention(4, 4, num_key_value_heads=2, position="rotary"),
        feed_forward=ka.blocks.FeedForward(32, "swiglu"),
    )
    model = ka.models.causal_language_model(100, hidden_dim=16, encoder=encoder)
    ids = np.array([[5, 7, 9, 4]])
    assert model(ids).shape == (1, 4, 100)
    assert "GPT-2" in ka.models.sizes("causal_language_model")
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(causal_language_model, encoder, hidden_dim, dropout, sizes | parts)
    if isinstance(encoder, TransformerEncoder):
        encoder = dataclasses.replace(encoder, causal=True)
    embedding = TextEmbedding() if embedding is None else embedding
    inputs, initial = embedding.inputs(), keras.initializers.RandomNormal(stddev=0.02)
    x, documents, tokens = embedding(
        inputs, vocabulary_size, hidden_dim, position, dropout, initial
    )
    x = encoder(x, **documents)
    logits = token_logits(x, tokens, tie_embeddings)
    return keras.Model(unwrap_inputs(inputs), logits, name=name)
