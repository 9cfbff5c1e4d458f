"""Question answering: where in a context the answer to a question begins and ends."""

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
    """Transformer encoder of a question and a context, which marks the answer in the context.

    (Devlin et al., 2019, section 4.2; for questions without an answer section 4.3.)

    A span from i to j has the logit `start_logits[i] + end_logits[j]`; `ka.data.search_span` finds
    the best one that is not too long.

    Args:
        vocabulary_size: int, number of token ids.
        num_layers, num_heads, ..., encoder: sizes and parts, as in `text_encoder`. The embedding is
            `TextEmbedding(num_segments=2)` where none is given. One without segments is for a model
            that learns which text a token is of by other means, such as a token between them.
            Published sizes: `ka.models.sizes("question_answerer")`.
        no_answer: bool, whether the first place, such as that of a class token, may be start and
            end: then there is no answer.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"token_ids"` int32 (B, T), the question and
        then the context; `"segment_ids"` int32 (B, T), 0 in the question and in padding, 1 in the
        context; and what else the `embedding` reads, such as `"exact_match"` int32 (B, T), 0 for
        words that are in one text only, 1 for those that the other has in another form, 2 for those
        that it has. Outputs, a dict: `"start_logits"` and `"end_logits"` (B, T), float32; they are
        -100 in the question and in padding.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.question_answerer(
        1000, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32
    )
    found = model(
        {"token_ids": np.array([[5, 8, 2, 7, 9, 4]]), "segment_ids": np.array([[0, 0, 0, 1, 1, 1]])}
    )
    assert found["start_logits"].shape == found["end_logits"].shape == (1, 6)
    assert np.array(found["start_logits"])[0, :3].tolist() == [-100, -100, -100]
    ```
    """
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(question_answerer, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding(num_segments=2) if embedding is None else embedding
    inputs = embedding.inputs()
    if "segment_ids" not in inputs:  # then they only tell which text counts
        inputs["segment_ids"] = keras.Input((None,), dtype="int32", name="segment_ids")
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = encoder(x, **documents)
    logits = keras.layers.Dense(2, dtype="float32", name="logits")(x)
    span = SpanLogits(no_answer, dtype="float32", name="span")
    start, end = span(logits, inputs["segment_ids"])
    return keras.Model(inputs, {"start_logits": start, "end_logits": end}, name=name)
