"""Text encoders without a head: a vector for each token, or one for each text."""

import dataclasses

import keras

from keras_attention import positions
from keras_attention.blocks import FirstOf
from keras_attention.blocks.pooling import get_pooling
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.transformer import TransformerEncoder


def make_bert(num_layers, num_heads, hidden_dim, attention_dropout=0.1):
    """Make the keywords of a builder for the encoder of BERT (Devlin et al., 2019, section 3)."""
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
    """Transformer encoder of texts without a head: token vectors, or one vector for a text.

    (Vaswani et al., 2017, the encoder; Reimers and Gurevych, 2019, vectors of sentences.) For
    search, clustering, or a head of your own.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of the encoder, as in
            `TransformerEncoder.of_size`. `hidden_dim` is also that of the embedding.
        dropout: float, of the embedding and in the encoder.
        score, normalizer, mask: parts of the attention.
        position: a part, its name, its config or a list. What rotates or biases goes into the
            attention, what is added into the embedding.
        embedding: `TextEmbedding`: segments, characters, packed documents, padding and more.
        encoder: what makes vectors (B, T, hidden_dim) of vectors: a `TransformerEncoder`,
            `ConformerEncoder` or `RecurrentStack`, or any function, layer or model. The sizes but
            `hidden_dim`, and the parts of the attention, are then stated in it.
        pooling: what makes one vector of a text, None for a vector of each token: a mode of
            `ka.blocks.Pooling`, such as `"mean"`, `"attention"` or `"last"`; `"first"`, the first
            token; `"cls"`, a class token that is put in front; or a layer, such as
            `ka.blocks.AttentionPooling` or `ka.blocks.FirstOf` of an end token.
        head: layers that are called on the result one after another, such as a projection.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T), or a dict of what the
        `embedding` reads. Output: `hidden_states` (B, T, hidden_dim); with `pooling`
        `text_embedding` (B, hidden_dim), or what the head makes of it.

    Example:

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
        check_one_text(pooling, documents)
        pool = get_pooling(pooling)
        x = pool(x, inputs["token_ids"]) if isinstance(pool, FirstOf) else pool(x)
    for layer in head:
        x = layer(x)
    x = keras.layers.Identity(name="hidden_states" if pooling is None else "text_embedding")(x)
    return keras.Model(unwrap_inputs(inputs), x, name=name)


def check_one_text(pooling, documents):
    """Refuse to pool rows of packed documents."""
    if documents:
        raise ValueError(
            f"pooling={pooling!r} makes one vector of a row, and the embedding says packed=True, "
            "several documents in a row: leave one of them out."
        )
