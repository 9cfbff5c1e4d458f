"""`dependency_parser`: builds a model that predicts the head of every word, and their relation."""

import keras

from keras_attention.blocks import Biaffine
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs


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
    """Build a model that scores, for every word, each other word as its syntactic head.

    The model also scores the relation between the two words. An encoder reads the sentence, and
    biaffine layers score the pairs (Dozat and Manning, 2017). The encoder of the paper is
    `RecurrentStack(3, 800)`.

    Args:
        vocabulary_size: int, number of token ids.
        num_labels: int, number of relations, such as subject and object.
        num_layers, num_heads, ..., encoder: sizes and parts of the encoder, explained in
            `text_encoder`.
        arc_dim: int, the size of the vectors from which heads are predicted.
        label_dim: int, the size of the vectors from which relations are predicted.
        head_dropout: float, the dropout rate for these vectors.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Outputs, a dict of float32:

        - `"arc_scores"` (B, T, T + 1), for each word and head. Head 0 is the root, and head j is
          the word at index j - 1, as in CoNLL-U files. Padding has very low scores as a head.
        - `"label_scores"` (B, T, T + 1, num_labels), for each word, head and relation.

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
