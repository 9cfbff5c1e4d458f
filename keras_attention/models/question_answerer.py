"""Question answering: where in a context the answer to a question begins and ends."""

import keras

from keras_attention.blocks import SegmentEmbedding, SpanLogits
from keras_attention.models.embeddings import spell_words
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.text_encoder import encode_text, text_encoder

MATCHES = 3  # kinds of them


def _bert(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        dropout=0.1,
        attention_dropout=0.1,
        norm="post",
        epsilon=1e-12,
        position="learned",
        max_length=512,
        normalize_embeddings=True,
    )


# Devlin et al. (2019), section 3
SIZES = {"BERT-Base": _bert(12, 12, 768), "BERT-Large": _bert(24, 16, 1024)}


@takes_keywords_of(
    text_encoder,
    without=[
        *("packed", "pooling", "end_token_id", "pooler_activation", "projection_dim"),
        "unit_length",
    ],
    num_layers=3,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    dropout=0.1,
    position="rotary",
)
def question_answerer(
    vocabulary_size,
    *,
    exact_match=False,
    no_answer=False,
    num_segments=2,
    character_vocabulary_size=None,
    word_length=16,
    character_dim=32,
    character_filters=64,
    character_widths=(2, 3, 4),
    name="question_answerer",
    **encoder,
):
    """Transformer encoder of a question and a context, which marks the answer in the context.

    (Devlin et al., 2019, section 4.2; for questions without an answer section 4.3. Chen et al.,
    2017, *Reading Wikipedia*, section 3.2, what a context has of the question.)

    A span from i to j has the logit `start_logits[i] + end_logits[j]`; `ka.data.search_span` finds
    the best one that is not too long.

    Args:
        vocabulary_size: int, number of token ids.
        exact_match: bool, whether an input tells which words are in the other text, too.
        no_answer: bool, whether the first place, such as that of a class token, may be start and
            end: then there is no answer.
        num_segments: int, kinds of segments that the model embeds; None for a model that learns
            which text a token is of by other means, such as a token between them.
        character_vocabulary_size: int, number of character ids, or None for words alone.
        word_length: int C, characters of a word that are looked at.
        character_dim, character_filters, character_widths: the sizes of `CharacterEmbedding`.
        name: str.
        encoder: keywords of `text_encoder`, which documents them, but for its pooling: tokens,
            segments, `dropout`, and with them those of `TransformerEncoder`: sizes, norms and
            parts. Published sizes: `ka.models.sizes("question_answerer")`.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"token_ids"` int32 (B, T), the question and
        then the context; `"segment_ids"` int32 (B, T), 0 in the question and in padding, 1 in the
        context; with `exact_match` `"exact_match"` int32 (B, T), 0 for words that are in one text
        only, 1 for those that the other has in another form, 2 for those that it has; with
        characters `"character_ids"` int32 (B, T, C). Outputs, a dict: `"start_logits"` and
        `"end_logits"` (B, T), float32; they are -100 in the question and in padding.

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

    def embed(embedding, ids, positions):
        others = {}
        if character_vocabulary_size is None:
            x = embedding(ids, positions=positions)
        else:
            x, others["character_ids"] = spell_words(
                embedding,
                ids,
                positions,
                character_vocabulary_size,
                word_length,
                hidden_dim=encoder["hidden_dim"],
                dropout=encoder["dropout"],
                dim=character_dim,
                filters=character_filters,
                widths=character_widths,
            )
        if exact_match:
            matches = keras.Input((None,), dtype="int32", name="exact_match")
            x = SegmentEmbedding(MATCHES, name="exact_match_embedding")(x, matches)
            others["exact_match"] = matches
        if num_segments is None:  # then they only tell which text counts
            others["segment_ids"] = keras.Input((None,), dtype="int32", name="segment_ids")
        return x, others

    inputs, x = encode_text(vocabulary_size, num_segments=num_segments, embed=embed, **encoder)
    logits = keras.layers.Dense(2, dtype="float32", name="logits")(x)
    span = SpanLogits(no_answer, dtype="float32", name="span")
    start, end = span(logits, inputs["segment_ids"])
    return keras.Model(inputs, {"start_logits": start, "end_logits": end}, name=name)
