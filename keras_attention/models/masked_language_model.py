"""`masked_language_model`: builds a model that predicts masked tokens from both sides."""

import keras

from keras_attention.models.head import make_transform, name_logits
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.text_encoder import make_bert


def _bert(num_layers, num_heads, hidden_dim):
    head = make_transform(hidden_dim, epsilon=1e-12)
    return make_bert(num_layers, num_heads, hidden_dim, 0.0) | {"head": head}


SIZES = {
    # Devlin et al. (2019), section 3. The released models have vocabulary_size=30522.
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
    """Build a model that predicts masked tokens from both sides (Devlin et al., 2019, section 3.1).

    Use it to pretrain an encoder on text without labels. The logits are inner products with the
    token embeddings, plus a bias.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, ..., encoder: sizes and parts of the encoder, explained in
            `text_encoder`. The default embedding is BERT's embedding without segments,
            `TextEmbedding.of_bert(num_segments=None)`, and the encoder normalizes after each
            residual sum (`norm="post"`). `ka.models.sizes("masked_language_model")` lists published
            sizes.
        head: list of layers between the encoder and the inner products, called one after another.
            The output of the last layer must be as wide as the token embeddings. None is a dense
            layer with GELU, and a norm.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Output: logits (B, T, vocabulary_size), float32.

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
    inputs, initial = embedding.inputs(), keras.initializers.TruncatedNormal(stddev=0.02)
    x, documents, tokens = embedding(
        inputs, vocabulary_size, hidden_dim, position, dropout, initial
    )
    x = encoder(x, **documents)
    for layer in make_transform(tokens.hidden_dim) if head is None else head:
        x = layer(x)
    logits = name_logits(tokens(x, reverse=True))
    return keras.Model(unwrap_inputs(inputs), logits, name=name)
