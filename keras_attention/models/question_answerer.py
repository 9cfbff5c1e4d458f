"""`question_answerer`: builds a model that finds the start and end of an answer in a text."""

import keras

from keras_attention.blocks import SpanLogits
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding
from keras_attention.models.text_encoder import make_bert

# Devlin et al. (2019), section 3
SIZES = {"BERT-Base": lambda: make_bert(12, 12, 768), "BERT-Large": lambda: make_bert(24, 16, 1024)}


def question_answerer(
    vocabulary_size,
    *,
    num_layers=3,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    embedding=None,
    encoder=None,
    no_answer=False,
    name="question_answerer",
):
    """Build an encoder that reads a question and a context, and marks the answer in the context.

    The model follows Devlin et al. (2019, section 4.2, and 4.3 for questions without an answer).
    The logit of the span from i to j is `start_logits[i] + end_logits[j]`. `ka.data.search_span`
    finds the best span up to a maximum length.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, ..., encoder: sizes and parts of the encoder, explained in
            `text_encoder`. The default embedding is `TextEmbedding(num_segments=2)`. If your
            embedding has no segments, put a separator token between question and context.
            `ka.models.sizes("question_answerer")` lists published sizes.
        no_answer: bool, whether some questions have no answer. The model then predicts the first
            token as start and end.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict:

        - `"token_ids"` int32 (B, T), the question followed by the context.
        - `"segment_ids"` int32 (B, T), 0 in the question and in padding, 1 in the context.
        - other inputs of the `embedding`, such as `"exact_match"` int32 (B, T).

        Outputs, a dict: `"start_logits"` and `"end_logits"` (B, T), float32. They are -100 in the
        question and in padding.

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.question_answerer(
        1000, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32
    )
    logits = model(
        {"token_ids": np.array([[5, 8, 2, 7, 9, 4]]), "segment_ids": np.array([[0, 0, 0, 1, 1, 1]])}
    )
    assert logits["start_logits"].shape == logits["end_logits"].shape == (1, 6)
    assert np.array(logits["start_logits"])[0, :3].tolist() == [-100, -100, -100]
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(question_answerer, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding(num_segments=2) if embedding is None else embedding
    inputs = embedding.inputs()
    if "segment_ids" not in inputs:  # only for `SpanLogits`
        inputs["segment_ids"] = keras.Input((None,), dtype="int32", name="segment_ids")
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = encoder(x, **documents)
    logits = keras.layers.Dense(2, dtype="float32", name="logits")(x)
    span = SpanLogits(no_answer, dtype="float32", name="span")
    start, end = span(logits, inputs["segment_ids"])
    return keras.Model(inputs, {"start_logits": start, "end_logits": end}, name=name)
