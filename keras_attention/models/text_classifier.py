"""`text_classifier`: builds a model that predicts one or several labels for a whole text."""

import dataclasses

import keras

from keras_attention.blocks import PathDropout, Pooling, TokenDropout, TokenEmbedding
from keras_attention.core.checks import check_whole_number
from keras_attention.models.sequence_labeler import BASE, BIG
from keras_attention.models.stack_choice import choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs
from keras_attention.models.text_encoder import pool_text
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
    """Build a Transformer encoder that labels a whole text, for example with its topic or intent.

    The encoder follows Vaswani et al. (2017), or with a class token Devlin et al. (2019). If each
    text has one label, train with labels (B,) and the loss
    `keras.losses.SparseCategoricalCrossentropy(from_logits=True)`. Probabilities are the softmax of
    the logits. If a text can have any number of labels, train with zeros and ones (B, num_classes)
    and `keras.losses.BinaryCrossentropy(from_logits=True)`. Probabilities are the sigmoid of the
    logits.

    Args:
        vocabulary_size: int, number of token ids.
        num_classes: int, number of classes.
        num_layers, num_heads, ..., pooling: sizes and parts of the encoder, explained in
            `text_encoder`. `dropout` is also applied to the pooled vector. `pooling` must not be
            None. `ka.models.sizes("text_classifier")` lists published sizes.
        head: list of layers between the pooled vector and the logits, called one after another,
            such as BERT's pooler `keras.layers.Dense(hidden_dim, "tanh")`.
        bag_of_words: int, the width of a second vector for each text, a sum of word vectors that
            ignores their order (Joulin et al., 2017, *fastText*). It learns fast from long text and
            with many classes. `PathDropout` concatenates it with the pooled vector, and in training
            drops one of the two. None leaves it out.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input: `"token_ids"` int32 (B, T), or a dict if the `embedding`
        has further inputs. Output: logits (B, num_classes), float32.

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
    ```
    """
    if pooling is None:
        raise ValueError("pooling=None: text_classifier needs one vector. Give a pooling.")
    sizes = dict(num_layers=num_layers, num_heads=num_heads, intermediate_dim=intermediate_dim)
    parts = dict(score=score, normalizer=normalizer, mask=mask, position=position)
    encoder = choose_encoder(text_classifier, encoder, hidden_dim, dropout, sizes | parts)
    embedding = TextEmbedding() if embedding is None else embedding
    if pooling == "cls":
        embedding = dataclasses.replace(embedding, class_token=True)
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    x = pool_text(encoder(x, **documents), pooling, inputs)
    for layer in head:
        x = layer(x)
    x = keras.layers.Dropout(dropout, name="pooled_dropout")(x)
    if bag_of_words is not None:
        bag = _sum_words(inputs["token_ids"], vocabulary_size, bag_of_words, embedding, dropout)
        x = PathDropout(name="paths")([x, bag])
    logits = keras.layers.Dense(num_classes, dtype="float32", name="logits")(x)
    return keras.Model(unwrap_inputs(inputs), logits, name=name)


def _sum_words(ids, vocabulary_size, hidden_dim, embedding, dropout):
    """Embed ids (B, T) with a new table, and return a sum of vectors for each row, (B, hidden_dim).

    The sum is divided by the square root of the number of tokens. `embedding` is the model's
    `TextEmbedding`, which says which id is padding and how many tokens are replaced in training.
    `dropout` is the dropout rate for the sum.
    """
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
