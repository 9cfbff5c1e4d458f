"""Masked language modelling: tokens from those on both sides."""

import keras

from keras_attention.models.head import make_transform, name_logits
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.text_encoder import make_bert


def _bert(num_layers, num_heads, hidden_dim):
    head = make_transform(hidden_dim, epsilon=1e-12)
    return make_bert(num_layers, num_heads, hidden_dim, 0.0) | {"head": head}


SIZES = {
    # Devlin et al. (2019), section 3; with vocabulary_size=30522 the released models
    "BERT-Base": lambda: _bert(12, 12, 768),
    "BERT-Large": lambda: _bert(24, 16, 1024),
    # Turc et al. (2019), table 1, the released compact models
    "BERT-Tiny": lambda: _bert(2, 2, 128),
    "BERT-Mini": lambda: _bert(4, 4, 256),
    "BERT-Small": lambda: _bert(4, 8, 512),
    "BERT-Medium": lambda: _bert(8, 8, 512),
}


def masked_language_model(
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
    head=None,
    name="masked_language_model",
):
    """Bidirectional encoder with logits for every place (Devlin et al., 2019, task 1 of 3.1).

    The embeddings are normalized; the head is a dense layer, an activation and a norm, the
    transform, and inner products with the tokens' embeddings, plus a bias.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, ..., encoder: sizes and parts, as in `text_encoder`. The embedding is
            `TextEmbedding.of_bert(num_segments=None)` where none is given, and the encoder has
            `norm="post"`. Published sizes: `ka.models.sizes("masked_language_model")`.
        head: layers before the inner products, called one after another, which end in the width of
            the embeddings; None is the transform.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"token_ids"` int32 (B, T), or a dict of what the
        `embedding` reads. Output: logits (B, T, vocabulary_size), float32.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    embedding = ka.models.TextEmbedding.of_bert(num_segments=2)
    model = ka.models.masked_language_model(100, **size, embedding=embedding)
    pair = {"token_ids": np.array([[5, 7, 9, 0]]), "segment_ids": np.array([[0, 1, 1, 0]])}
    assert model(pair).shape == (1, 4, 100)
    assert "BERT-Base" in ka.models.sizes("masked_language_model")
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(
        masked_language_model, encoder, hidden_dim, dropout, sizes | parts, norm="post"
    )
    if embedding is None:
        embedding = TextEmbedding.of_bert(num_segments=None, epsilon=1e-6)
    inputs, drawn = embedding.inputs(), keras.initializers.TruncatedNormal(stddev=0.02)
    x, documents, tokens = embedding(inputs, vocabulary_size, hidden_dim, position, dropout, drawn)
    x = encoder(x, **documents)
    for layer in make_transform(tokens.hidden_dim) if head is None else head:
        x = layer(x)
    logits = name_logits(tokens(x, reverse=True))
    return keras.Model(unwrap_inputs(inputs), logits, name=name)
