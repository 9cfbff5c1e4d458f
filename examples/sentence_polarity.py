"""Classify sentences as positive or negative, with attention, convolution and recurrence.

    python examples/sentence_polarity.py [--seeds 3] [--models Transformer CNN] [--made-up]

A Transformer, a convolutional network (Kim, 2014) and a bidirectional GRU of the same size are
trained on 8,530 sentences of movie reviews (Pang and Lee, 2005) with the same recipe. A table lists
their accuracy, size and training time. The dataset is read from the folder that
KERAS_ATTENTION_DATA names, or downloaded. With `--made-up` sentences are generated instead. To
train the default classifier, export it and write a model card, run `keras-attention train
text_classifier --dataset sentence_polarity`.
"""

import argparse
import os
import pathlib
import random
import time

import keras
import numpy as np
from rich.console import Console
from rich.table import Table

import keras_attention as ka

WIDTH, DROPOUT, WORD_DROPOUT = 64, 0.5, 0.3


def transformer(vocabulary_size):
    return ka.models.text_classifier(
        vocabulary_size,
        2,
        num_layers=1,
        num_heads=4,
        hidden_dim=WIDTH,
        intermediate_dim=2 * WIDTH,
        dropout=DROPOUT,
        embedding=ka.models.TextEmbedding(token_dropout=WORD_DROPOUT),
        pooling="mean",
    )


def convolutional(vocabulary_size, filters=43, widths=(3, 4, 5)):
    """Build the network of Kim (2014), figure 1: convolutions over words, and max pooling."""
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenDropout(WORD_DROPOUT)(tokens)
    x = keras.layers.Embedding(vocabulary_size, WIDTH)(x)
    x = keras.layers.Dropout(DROPOUT)(x)
    features = [
        keras.layers.Conv1D(filters, width, padding="same", activation="relu")(x)
        for width in widths
    ]
    x = keras.layers.Concatenate()([keras.layers.GlobalMaxPooling1D()(each) for each in features])
    x = keras.layers.Dropout(DROPOUT)(x)
    return keras.Model(tokens, keras.layers.Dense(2)(x), name="convolutional")


def recurrent(vocabulary_size, units=48):
    """Build a bidirectional GRU with max pooling over all words."""
    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenDropout(WORD_DROPOUT)(tokens)
    x = keras.layers.Embedding(vocabulary_size, WIDTH, mask_zero=True)(x)
    x = keras.layers.Dropout(DROPOUT)(x)
    x = keras.layers.Bidirectional(keras.layers.GRU(units, return_sequences=True))(x)
    x = ka.blocks.Pooling("max")(x)
    x = keras.layers.Dropout(DROPOUT)(x)
    return keras.Model(tokens, keras.layers.Dense(2)(x), name="recurrent")


MODELS = {"Transformer": transformer, "CNN": convolutional, "RNN": recurrent}


def load(made_up):
    if made_up:
        return make_texts()
    root = os.environ.get("KERAS_ATTENTION_DATA")
    return ka.data.sentence_polarity(
        pathlib.Path(root) / "sentiment-sentence-polarity" if root else None
    )


def make_texts(count=600, seed=0):
    """Generate sentences such as "a dull film , never a warm one ."

    Their label is the polarity of the first adjective.
    """
    draw = random.Random(seed).choice
    words = {
        "positive": ["warm", "clever", "moving", "rich"],
        "negative": ["dull", "long", "empty", "loud"],
    }

    def sentence(label, other):
        subject = draw(["film", "story", "cast", "play"])
        return f"a {draw(words[label])} {subject} , never a {draw(words[other])} one ."

    pairs = [("positive", "negative"), ("negative", "positive")] * (count // 2)
    texts = [ka.data.Text(sentence(*pair), pair[0]) for pair in pairs]
    test, dev = count // 5, count // 10
    return ka.data.Text.collect(texts[test + dev :], texts[test : test + dev], texts[:test])


def train(model, texts, words, epochs, seed):
    """Train a model, and return the training time in seconds."""
    batches = ka.data.batches(texts.train, words, 64, shuffle=True, seed=seed)
    steps = len(batches) * epochs
    model.compile(
        keras.optimizers.AdamW(
            ka.training.warmup_cosine(2e-3, steps // 10, steps),
            weight_decay=0.05,
            global_clipnorm=1.0,
        ),
        ka.training.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1),
        metrics=["accuracy"],
        jit_compile=False,  # XLA takes four times as long on a CPU
    )
    dev = ka.data.batches(texts.dev, words, 256)
    start = time.perf_counter()
    model.fit(batches, validation_data=dev, epochs=epochs, shuffle=False, verbose=2)
    return time.perf_counter() - start


def measure(name, texts, words, epochs, seeds):
    """Train a model with each seed, and return the last model and a row of the table."""
    scores, seconds = [], []
    test = ka.data.batches(texts.test, words, 256)
    for seed in range(seeds):
        keras.utils.set_random_seed(seed)
        model = MODELS[name](len(words.tokenizer))
        seconds.append(train(model, texts, words, epochs, seed))
        scores.append(model.evaluate(test, verbose=0)[1])
        print(f"{name}, seed {seed}: test accuracy {100 * scores[-1]:.2f} %, {seconds[-1]:.0f} s")
    table = len(words.tokenizer) * WIDTH
    return model, [
        name,
        f"{100 * np.mean(scores):.2f} %",
        f"{model.count_params():,}",
        f"{model.count_params() - table:,}",
        f"{np.mean(seconds):.0f} s",
    ]


def main(texts, models, epochs, seeds):
    print(texts)
    words = ka.data.TextPreprocessor.build(texts.train, texts.labels, min_count=2, lowercase=True)
    table = Table("", "test accuracy", "parameters", "without the embeddings", "training")
    for name in models:
        model, row = measure(name, texts, words, epochs, seeds)
        table.add_row(*row)
    Console().print(table)
    example = "a warm and clever film , never a dull one ."
    shares = np.asarray(keras.ops.softmax(model(words([example]))))[0]
    print(
        f"{name}: {example!r} is {words.labels.names[shares.argmax()]}, {100 * shares.max():.0f} %"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--made-up", action="store_true")
    arguments = parser.parse_args()
    main(load(arguments.made_up), arguments.models, arguments.epochs, arguments.seeds)
