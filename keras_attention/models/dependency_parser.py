"""Dependency parsing: the head of every word, and its relation to it."""

import keras

from keras_attention.blocks import Biaffine
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs

SIZES = {}


def dependency_parser(
    vocabulary_size,
    num_labels,
    *,
    num_layers=3,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    embedding=None,
    encoder=None,
    arc_dim=256,
    label_dim=96,
    head_dropout=0.33,
    name="dependency_parser",
):
    """Encoder of words with a biaffine head over pairs of them (Dozat and Manning, 2017).

    The paper's encoder is `encoder=RecurrentStack(3, 800)`; by default it is a Transformer's.

    Args:
        vocabulary_size: int, number of token ids.
        num_labels: int, relations.
        num_layers, num_heads, ..., encoder: sizes and parts, as in `text_encoder`.
        arc_dim, label_dim: int, the sizes of the vectors in the two biaffine scores.
        head_dropout: float, on those vectors.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs as those of `sequence_labeler`. Outputs, a dict of
        float32: `"arc_scores"` (B, T, T + 1), how well each head fits a word, where head 0 is the
        root and head j is word j - 1, as in CoNLL-U; padding is no head. `"label_scores"`
        (B, T, T + 1, num_labels), how well each relation fits the word to that head.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.dependency_parser(
        1000, 37, num_layers=1, num_heads=2, hidden_dim=16, arc_dim=8, label_dim=4
    )
    scores = model(np.array([[5, 7, 9, 2, 0]]))
    assert scores["arc_scores"].shape == (1, 5, 6)
    assert scores["label_scores"].shape == (1, 5, 6, 37)
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(dependency_parser, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding() if embedding is None else embedding
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = encoder(x, **documents)
    head = {"dropout": head_dropout, "dtype": "float32"}
    arcs = Biaffine(arc_dim, name="arc_scores", **head)(x)
    labels = Biaffine(label_dim, num_labels, name="label_scores", **head)(x)
    outputs = {"arc_scores": arcs, "label_scores": labels}
    return keras.Model(unwrap_inputs(inputs), outputs, name=name)
