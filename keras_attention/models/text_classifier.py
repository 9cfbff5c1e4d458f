"""Text classification: one label or several for a whole text."""

import dataclasses

import keras

from keras_attention.blocks import FirstOf, PathDropout, Pooling, TokenDropout, TokenEmbedding
from keras_attention.blocks.pooling import get_pooling
from keras_attention.core.checks import check_whole_number
from keras_attention.models.sequence_labeler import BASE, BIG
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.text_encoder import check_one_text
from keras_attention.models.transformer import TransformerEncoder


def _bert(num_layers, hidden_dim):
    return dict(
        hidden_dim=hidden_dim,
        dropout=0.1,
        encoder=TransformerEncoder.of_size(
            num_layers,
            hidden_dim // 64,
            hidden_dim,
            4 * hidden_dim,
            dropout=0.1,
            attention_dropout=0.1,
            position="rotary",
            norm="post",
        ),
        pooling="cls",
    )


SIZES = {
    "base": BASE,
    "big": BIG,
    # The encoders of Devlin et al. (2019), section 3, and of Turc et al. (2019), table 1
    "BERT-Tiny": lambda: _bert(2, 128),
    "BERT-Mini": lambda: _bert(4, 256),
    "BERT-Small": lambda: _bert(4, 512),
    "BERT-Medium": lambda: _bert(8, 512),
    "BERT-Base": lambda: _bert(12, 768),
    "BERT-Large": lambda: _bert(24, 1024),
}


def text_classifier(
    vocabulary_size,
    num_classes,
    *,
    num_layers=2,
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
    pooling="mean",
    head=(),
    bag_of_words=None,
    name="text_classifier",
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
        num_layers, num_heads, ..., pooling: sizes and parts, as in `text_encoder`. `dropout` is
            also that of the pooled vector, and `pooling` is not None. Published sizes:
            `ka.models.sizes("text_classifier")`.
        head: layers between the pooled vector and the logits, called one after another, such as
            BERT's pooler `keras.layers.Dense(hidden_dim, "tanh")`.
        bag_of_words: int, the width of a second vector beside the pooled one: a sum of word vectors
            that knows nothing of their order (Joulin et al., 2017, *fastText*). It is quick to
            learn, above all from long texts and with many classes. `PathDropout` joins both. None
            leaves it out.
        name: str.

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
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(text_classifier, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding() if embedding is None else embedding
    if pooling == "cls":
        embedding = dataclasses.replace(embedding, class_token=True)
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    check_one_text(pooling, documents)
    x = encoder(x)
    pool = get_pooling(pooling)
    x = pool(x, inputs["token_ids"]) if isinstance(pool, FirstOf) else pool(x)
    for layer in head:
        x = layer(x)
    x = keras.layers.Dropout(dropout, name="pooled_dropout")(x)
    if bag_of_words is not None:
        bag = _sum_words(inputs["token_ids"], vocabulary_size, bag_of_words, embedding, dropout)
        x = PathDropout(name="paths")([x, bag])
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(unwrap_inputs(inputs), logits, name=name)


def _sum_words(ids, vocabulary_size, hidden_dim, embedding, dropout):
    """Word vectors of a table of their own, summed: (B, hidden_dim)."""
    hidden_dim = check_whole_number("text_classifier", "bag_of_words", hidden_dim)
    padding_id = embedding.padding_id
    if embedding.token_dropout:
        settings = {"padding_id": padding_id, "name": "bag_token_dropout"}
        ids = TokenDropout(embedding.token_dropout, embedding.unknown_id, **settings)(ids)
    words = TokenEmbedding(
        vocabulary_size, hidden_dim, padding_id=padding_id, name="bag_embedding"
    )(ids)
    bag = Pooling("root_sum", name="bag_of_words")(words)
    return keras.layers.Dropout(dropout, name="bag_dropout")(bag)
