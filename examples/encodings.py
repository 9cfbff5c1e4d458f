"""One-hot words beside learned embeddings, and numbers for positions beside sinusoids.

    python examples/encodings.py [--epochs N] [--output encodings.png]

The ideas that lectures begin with, trained beside what took their place, on one task: the parts of
speech of short made-up sentences, in which a word's class hangs on the words before it and on where
in the sentence it stands. A table says how many weights each has and how many words of sentences,
as long as those it learnt from and longer, it gets right. The picture shows the neighbours of a
word in the learned table, where one-hot vectors are all as far apart, and how far apart positions
are. A one-hot vector times a matrix is a row of that matrix: the example checks that both give the
same numbers.
"""

import argparse
import random

import keras
import numpy as np
from keras import ops
from matplotlib import pyplot
from rich.console import Console
from rich.table import Table

import keras_attention as ka

WIDTH, SHORT, LONG = 32, 12, 24
KINDS = {
    "animal": "cat dog horse bird mouse fish lion sheep".split(),
    "thing": "table lamp house chair book door cup street".split(),
    "act": "saw found liked heard met drew missed knew".split(),
    "trait": "big small old red quiet warm strange young".split(),
    "other": "the a this that every".split(),
}
WORDS = ["<pad>", *(word for words in KINDS.values() for word in words)]
LABELS = ["other", "animal", "thing", "act", "trait", "first third", "last third"]


def make_sentence(draw, length):
    """Words and labels: the kind of the word before, or in which third an `act` stands."""
    words, labels, before = [], [], "other"
    for place in range(length):
        kind = draw.choice(sorted(KINDS))
        words.append(draw.choice(KINDS[kind]))
        early, late = place < length // 3, place >= length - length // 3
        label = before if kind != "act" or not (early or late) else LABELS[5 + late]
        labels.append(LABELS.index(label))
        before = kind
    return [WORDS.index(word) for word in words], labels


def make_sentences(count, lengths, seed):
    """Ids and labels (count, T), padded with 0 and -1."""
    draw, longest = random.Random(seed), max(lengths)
    ids = np.zeros((count, longest), "int32")
    labels = np.full((count, longest), -1, "int32")
    for row in range(count):
        length = draw.choice(lengths)
        ids[row, :length], labels[row, :length] = make_sentence(draw, length)
    return ids, labels


class OneHot(keras.layers.Layer):
    """Ids (B, T) to vectors (B, T, V) with a single 1, as wide as there are words."""

    def call(self, ids):
        return ops.one_hot(ids, len(WORDS))

    def compute_mask(self, ids, mask=None):
        return ops.not_equal(ids, 0)


def build(words, position):
    """A labeler whose words are `"one-hot"`, `"one-hot, projected"` or `"embedding"`."""
    ids = keras.Input((None,), dtype="int32")
    if words == "embedding":
        x = ka.blocks.TokenEmbedding(len(WORDS), WIDTH, name="words")(ids)
    else:
        x = OneHot()(ids)
    if words == "one-hot, projected":
        x = keras.layers.Dense(WIDTH, use_bias=False, name="words")(x)
    width = x.shape[-1] + x.shape[-1] % 2
    if width != x.shape[-1]:
        x = keras.layers.Dense(width, name="even")(x)
    x = AddPosition(position)(x)
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(2, WIDTH // 2),
        ka.blocks.FeedForward(2 * WIDTH),
        name="block",
    )
    logits = keras.layers.Dense(len(LABELS), name="logits")(block(x))
    return keras.Model(ids, logits)


class AddPosition(keras.layers.Layer):
    """Adds a part of `ka.positions` to vectors, or nothing."""

    def __init__(self, position, **kwargs):
        super().__init__(**kwargs)
        self.position, self.supports_masking = ka.positions.get(position), True

    def call(self, x):
        return x if self.position is None else self.position.embed(x)


POSITIONS = {
    "none": None,
    "index": ka.positions.Scalar(scaled=False),
    "index, scaled to 0..1": ka.positions.Scalar(),
    "sinusoids": ka.positions.Sinusoidal(),
}
MODELS = [
    ("one-hot", "sinusoids"),
    ("one-hot, projected", "sinusoids"),
    *(("embedding", position) for position in POSITIONS),
]


def check_rows():
    """A one-hot vector times a matrix, and the row of a table: the same numbers."""
    table = np.random.default_rng(0).normal(size=(len(WORDS), WIDTH)).astype("float32")
    ids = np.arange(1, len(WORDS))[None]
    embedding = ka.blocks.TokenEmbedding(len(WORDS), WIDTH)
    embedding(ids)
    embedding.set_weights([table])
    product = np.asarray(OneHot()(ids)) @ table
    assert np.array_equal(product, np.asarray(embedding(ids)))


def measure_distances(vectors):
    """Euclidean distances (n, n) of vectors (n, D)."""
    return np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)


def compute_cosines(vectors):
    """Cosines (n, n) of vectors (n, D)."""
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def draw(table, word, path):
    """The picture: neighbours of a word, and distances between positions."""
    figure, axes = pyplot.subplots(1, 4, figsize=(15, 4), layout="constrained")
    cosines = compute_cosines(table[1:])[WORDS.index(word) - 1]
    order = np.argsort(-cosines)[:13][::-1]
    names = [WORDS[1 + i] for i in order]
    axes[0].barh(names, cosines[order])
    axes[0].set_title(f"learned: nearest to “{word}” (cosine)\none-hot: 0 to every other word")
    places = np.zeros((1, LONG, WIDTH), "float32")
    for axis, (name, position) in zip(axes[1:], list(POSITIONS.items())[1:], strict=True):
        vectors = np.asarray(position.embed(places))[0]
        image = axis.imshow(measure_distances(vectors), cmap="Blues")
        axis.set_title(f"{name}: distance of positions")
        figure.colorbar(image, ax=axis, shrink=0.7)
    figure.savefig(path)


def count_right(model, ids, labels):
    predicted = np.argmax(model.predict(ids, verbose=0), axis=-1)
    return float((predicted == labels)[labels >= 0].mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--word", default="cat", choices=WORDS[1:], metavar="WORD")
    parser.add_argument("--output", default="encodings.png", help="picture to write")
    given = parser.parse_args()
    check_rows()
    train = make_sentences(given.sentences, range(4, SHORT + 1), seed=0)
    tests = {
        "as long": make_sentences(1000, range(4, SHORT + 1), seed=1),
        "longer": make_sentences(1000, range(SHORT + 4, LONG + 1), seed=2),
    }
    shown = Table("words", "positions", "weights", *tests, title="words that are labelled right")
    for words, position in MODELS:
        keras.utils.set_random_seed(0)
        model = build(words, POSITIONS[position])
        model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy())
        model.optimizer.learning_rate = 3e-3
        model.fit(*train, batch_size=64, epochs=given.epochs, verbose=0)
        shares = [f"{100 * count_right(model, *test):.1f} %" for test in tests.values()]
        shown.add_row(words, position, f"{model.count_params():,}", *shares)
    Console(width=100).print(shown)
    table = model.get_layer("words").get_weights()[0]  # of the last: embeddings and sinusoids
    draw(table, given.word, given.output)
