"""`text_encoder`: builds a model that computes a vector for each token, or one for each text."""

import dataclasses

import keras

from keras_attention import positions
from keras_attention.blocks import FirstOf
from keras_attention.blocks.pooling import get_pooling
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.transformer import TransformerEncoder


def make_bert(num_layers, num_heads, hidden_dim, attention_dropout=0.1):
    """Return a dict of arguments of a text model that build BERT (Devlin et al., 2019).

    `num_layers` is the number of layers, and `num_heads` the number of attention heads. The
    feed-forward layers have the size 4 · `hidden_dim`. `attention_dropout` is the dropout rate of
    attention weights.
    """
    return dict(
        hidden_dim=hidden_dim,
        dropout=0.1,
        position=positions.Learned(512),
        embedding=TextEmbedding.of_bert(),
        encoder=TransformerEncoder.of_size(
            num_layers,
            num_heads,
            hidden_dim,
            4 * hidden_dim,
            dropout=0.1,
            attention_dropout=attention_dropout,
            norm="post",
            epsilon=1e-12,
        ),
    )


# Wang et al. (2020), table 1, as sentence encoders (Reimers and Gurevych, 2019)
SIZES = {
    "MiniLM-L6": lambda: make_bert(6, 12, 384, 0.0) | {"pooling": "mean"},
    "MiniLM-L12": lambda: make_bert(12, 12, 384, 0.0) | {"pooling": "mean"},
}


def text_encoder(
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
    pooling=None,
    head=(),
    name="text_encoder",
):
    """Build a Transformer encoder that computes vectors for tokens, or one vector for each text.

    Use the vectors for search and clustering (Reimers and Gurevych, 2019), or add your own layers.
    The encoder follows Vaswani et al. (2017).

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of the encoder.
            `hidden_dim` is the width of its vectors and of the embedding, `intermediate_dim` the
            width inside the feed-forward networks.
        dropout: float, the dropout rate for the embedding and inside the encoder.
        score, normalizer, mask: how attention scores are computed, how they become weights, and
            which tokens may attend to which. The choices are explained in `MultiHeadAttention`.
        position: a position, its name, its config or a list of these. Positions that rotate queries
            and keys or bias scores go into the attention, others into the embedding.
        embedding: a `TextEmbedding`, to set segments, characters, packed documents and more. None
            is `TextEmbedding()`.
        encoder: a `TransformerEncoder`, `ConformerEncoder` or `RecurrentStack`, or any function,
            layer or model from (B, T, hidden_dim) to the same shape. With it, leave out
            `num_layers`, `num_heads`, `intermediate_dim`, `score`, `normalizer`, `mask`, and a
            `position` for the attention. None makes a `TransformerEncoder` from these arguments.
        pooling: how the vectors of the tokens become one: a mode of `ka.blocks.Pooling`, such as
            `"mean"`, `"attention"` or `"last"`, `"first"` for the first token, `"cls"` for a new
            class token before the text, or a layer, such as `ka.blocks.AttentionPooling`. None
            keeps a vector for each token.
        head: list of layers that are called on the result one after another, such as a projection.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Output: `hidden_states` (B, T, hidden_dim), or with `pooling`
        `text_embedding` (B, hidden_dim). A head may change the last axis.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    texts = np.array([[5, 8, 2, 0], [7, 2, 9, 4]])
    assert ka.models.text_encoder(10, **size)(texts).shape == (2, 4, 16)
    head = [keras.layers.Dense(6, name="projection"), keras.layers.UnitNormalization()]
    assert ka.models.text_encoder(10, pooling="mean", head=head, **size)(texts).shape == (2, 6)
    assert ka.models.sizes("text_encoder")["MiniLM-L6"]["hidden_dim"] == 384
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(text_encoder, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding() if embedding is None else embedding
    if pooling == "cls":
        embedding = dataclasses.replace(embedding, class_token=True)
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = encoder(x, **documents)
    if pooling is not None:
        x = pool_text(x, pooling, inputs)
    for layer in head:
        x = layer(x)
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "text_embedding")(x)
    return keras.Model(unwrap_inputs(inputs), x, name=name)


def pool_text(x, pooling, inputs):
    """Pool x (B, T, D) to one vector (B, D) for each row.

    Args:
        x: symbolic tensor.
        pooling: how the vectors become one, with the choices of `text_encoder` except None. `"cls"`
            takes the first vector, so the caller sets `class_token` of the embedding.
        inputs: dict of the embedding's inputs. `"document_ids"` raise an error, because a row of
            packed documents has no single vector.
    """
    if "document_ids" in inputs:
        raise ValueError(
            f"pooling={pooling!r} makes one vector of a row, but packed=True puts several "
            "documents in a row. Leave out pooling or packed."
        )
    pool = get_pooling(pooling)
    return pool(x, inputs["token_ids"]) if isinstance(pool, FirstOf) else pool(x)
