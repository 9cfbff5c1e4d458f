"""Text classification: one label or several for a whole text."""

import keras

from keras_attention.blocks import PathDropout, Pooling, TokenDropout, TokenEmbedding
from keras_attention.core.checks import check_whole_number
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.text_encoder import encode_text, text_encoder


def _bert(num_layers, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=hidden_dim // 64,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        dropout=0.1,
        attention_dropout=0.1,
        norm="post",
        pooling="cls",
    )


SIZES = {
    # Vaswani et al. (2017), table 3, the base and big encoders
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
    # The encoders of Devlin et al. (2019), section 3, and of Turc et al. (2019), table 1
    "BERT-Tiny": _bert(2, 128),
    "BERT-Mini": _bert(4, 256),
    "BERT-Small": _bert(4, 512),
    "BERT-Medium": _bert(8, 512),
    "BERT-Base": _bert(12, 768),
    "BERT-Large": _bert(24, 1024),
}


@takes_keywords_of(
    text_encoder,
    without=["packed"],
    num_layers=2,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    dropout=0.1,
    position="rotary",
)
def text_classifier(
    vocabulary_size,
    num_classes,
    *,
    pooling="mean",
    bag_of_words=None,
    name="text_classifier",
    **encoder,
):
    """Transformer encoder with a label for the whole text, as for sentiment, topic or intent.

    (Vaswani et al., 2017, the encoder; Devlin et al., 2019, figure 4b, the class token.)

    The logits are one number for each class, and the loss says what they mean. Exactly one label
    for each text: `keras.losses.SparseCategoricalCrossentropy(from_logits=True)` with labels (B,),
    and a softmax makes probabilities of them. Any number of labels, none included:
    `keras.losses.BinaryCrossentropy(from_logits=True)` with zeros and ones (B, num_classes), and a
    sigmoid does.

    Args:
        vocabulary_size: int, number of token ids.
        num_classes: int.
        pooling: as in `text_encoder`, but None.
        bag_of_words: int, the width of a second vector beside the pooled one: a sum of word vectors
            that knows nothing of their order (Joulin et al., 2017, *fastText*). It is quick to
            learn, above all from long texts and with many classes. `PathDropout` joins both. None
            leaves it out.
        name: str.
        encoder: keywords of `text_encoder`, which documents them: tokens, segments, `dropout` (here
            of the pooled vector too), and with them those of `TransformerEncoder`: sizes, norms and
            parts. Published sizes: `ka.models.sizes("text_classifier")`.

    Returns:
        A functional `keras.Model`. Inputs as of `text_encoder`: `"token_ids"` int32 (B, T). Output:
        logits (B, num_classes), float32.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    texts = np.array([[5, 8, 2, 0], [7, 2, 9, 4]])

    sentiment = ka.models.text_classifier(10, 2, pooling="attention", **size)
    sentiment.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert sentiment.compute_loss(texts, np.array([0, 1]), sentiment(texts)) > 0  # as `fit` does

    topics = ka.models.text_classifier(10, 3, **size)  # a text may have several, or none
    topics.compile(
        "adam",
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    assert topics.compute_loss(texts, np.array([[1, 0, 1], [0, 0, 0]]), topics(texts)) > 0
    probabilities = keras.ops.sigmoid(topics(texts))
    assert probabilities.shape == (2, 3)
    ```
    """
    if pooling is None:
        raise ValueError(f"pooling=None: {name} has a label for each text, of one pooled vector.")
    inputs, x = encode_text(vocabulary_size, pooling=pooling, **encoder)
    x = keras.layers.Dropout(encoder["dropout"], name="pooled_dropout")(x)
    if bag_of_words is not None:
        ids = inputs["token_ids"] if isinstance(inputs, dict) else inputs
        bag = _sum_words(ids, vocabulary_size, bag_of_words, encoder)
        x = PathDropout(name="paths")([x, bag])
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(inputs, logits, name=name)


def _sum_words(ids, vocabulary_size, hidden_dim, encoder):
    """Word vectors of a table of their own, summed: (B, hidden_dim).

    Args:
        encoder: keywords of `text_encoder`, of which the ids and the dropout are the same here.
    """
    hidden_dim = check_whole_number("text_classifier", "bag_of_words", hidden_dim)
    padding_id = encoder.get("padding_id", 0)
    if rate := encoder.get("token_dropout"):
        unknown = encoder.get("unknown_id", 1)
        ids = TokenDropout(rate, unknown, padding_id=padding_id, name="bag_token_dropout")(ids)
    words = TokenEmbedding(
        vocabulary_size, hidden_dim, padding_id=padding_id, name="bag_embedding"
    )(ids)
    bag = Pooling("root_sum", name="bag_of_words")(words)
    return keras.layers.Dropout(encoder["dropout"], name="bag_dropout")(bag)
