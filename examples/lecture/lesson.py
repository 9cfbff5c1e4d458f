"""Shared parts of the scripts of the lecture: command line, table, figure, training and data.

The function `run(quick)` of a script measures its claim, the first sentence of its docstring, and
returns a `Result`. With `quick=True` it does so in a tiny size, for tests.
"""

import argparse
import dataclasses
import gzip
import json
import math
import os
import pathlib
import platform
import random
import re
import time
from collections.abc import Callable

import keras
import numpy as np
from matplotlib import pyplot
from rich.console import Console
from rich.table import Table

import keras_attention as ka

VERDICTS = ("holds", "holds in part", "does not hold")

# Okabe and Ito's colors, which color-blind readers can tell apart.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666"]
STYLE = {
    "axes.prop_cycle": pyplot.cycler(color=COLORS, marker=list("os^Dv<x")),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 120,
    "font.size": 11,
    "image.cmap": "Blues",
    "legend.frameon": False,
}


@dataclasses.dataclass
class Result:
    """Result of a script: its table, its figure and its finding.

    Attributes:
        rows: list of dict, the rows of the table: {column: str or number}.
        draw: function that draws on an empty `matplotlib.figure.Figure` of 8 × 4 inches.
        finding: str, one to three sentences that state the result with its numbers.
        verdict: str, one of `VERDICTS`, computed from the numbers.
        data: str, the dataset, its size and its split.
    """

    rows: list[dict]
    draw: Callable
    finding: str
    verdict: str
    data: str = "generated"


def main(run):
    """Call `run` from the command line: print the table, and write the figure and the numbers."""
    claim = run.__globals__["__doc__"].partition("\n\n")[0].replace("\n", " ")
    parser = argparse.ArgumentParser(description=claim)
    parser.add_argument("--quick", action="store_true", help="a tiny size, to test the script")
    parser.add_argument("--output", type=pathlib.Path, default="runs/lecture", metavar="FOLDER")
    arguments, started = parser.parse_args(), time.perf_counter()
    result = run(arguments.quick)
    seconds = time.perf_counter() - started
    arguments.output.mkdir(parents=True, exist_ok=True)
    picture = arguments.output / f"{pathlib.Path(run.__globals__['__file__']).stem}.png"
    draw(result).savefig(picture)
    numbers = {key: value for key, value in vars(result).items() if key != "draw"}
    numbers["machine"] = describe_machine()
    picture.with_suffix(".json").write_text(json.dumps(numbers, indent=1, default=str) + "\n")
    table, console = Table(*result.rows[0], title=claim), Console(width=100)
    for row in result.rows:
        table.add_row(*map(str, row.values()))
    console.print(table)
    console.print(f"The claim {result.verdict}. {result.finding}", highlight=False)
    print(f"{seconds:.0f} seconds. Figure: {picture}")


def describe_machine():
    """Return the number of cores and the kind of processor. Times depend on both."""
    file = pathlib.Path("/proc/cpuinfo")
    text = file.read_text() if file.exists() else platform.platform()
    model = re.search(r"model name\s*: (.+)", text) or [text, text]
    widest = [name for name in ("avx2", "avx512f", "amx_tile") if name in text][-1:]
    return ", ".join([f"{os.cpu_count()} cores", model[1], *widest])


def draw(result):
    """Draw a `Result` in the style of the lecture, and return the figure."""
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(8, 4), layout="constrained")
        result.draw(figure)
        pyplot.close(figure)
    return figure


def over_seeds(measure, quick, count=3):
    """Call `measure()` after each of `count` seeds (one if `quick`), and return a list."""
    values = []
    for seed in range(1 if quick else count):
        keras.utils.set_random_seed(seed)
        values.append(measure())
    return values


def format_spread(values, digits=1):
    """Format the mean of some numbers and their spread: `"93.1 (92.0 to 94.5)"`.

    Whole numbers have no decimals.
    """
    digits = digits if np.any(values != np.round(values)) else 0
    mean, low, high = (f"{f(values):,.{digits}f}" for f in (np.mean, np.min, np.max))
    return mean if low == high else f"{mean} ({low} to {high})"


def compare(builds, measure, inputs, targets, quick, **settings):
    """Train each model from the initial weights of three seeds, and measure it.

    TensorFlow traces a model only once, which takes longer than a short training.

    Args:
        builds: dict {name: function that returns a new model}. With `quick`, only the first two.
        measure: function of a trained model that returns numbers.
        inputs, targets, quick, settings: as in `fit`. With `quick`, only one seed.

    Returns:
        dict {name: array (number of seeds, ...)} of what `measure` returned.
    """
    measured = {}
    for name, build in list(builds.items())[: 2 if quick else None]:
        model, numbers = None, []
        for seed in range(1 if quick else 3):
            keras.utils.set_random_seed(seed)
            new = build()
            model = model or new
            model.set_weights(new.get_weights())
            for variable in model.optimizer.variables if model.compiled else ():
                if "learning_rate" not in variable.path:
                    variable.assign(keras.ops.zeros_like(variable))
            fit(model, inputs, targets, quick, **settings)
            numbers.append(measure(model))
        measured[name] = np.array(numbers)
    return measured


def tabulate(title, measured, columns, digits=1):
    """Return the rows of a table: the mean and the spread over seeds of some numbers.

    `title` is that of the first column, with the names in `measured`, a dict that `compare`
    returns. `columns` is a dict {index of a number: title of its column}.
    """
    return [
        {title: name} | {column: format_spread(x[:, i], digits) for i, column in columns.items()}
        for name, x in measured.items()
    ]


def judge(*parts):
    """Return the verdict on a claim from the truth of each of its parts."""
    return VERDICTS[0 if all(parts) else 1 if any(parts) else 2]


def clock(functions, rounds, timer="perf_counter"):
    """Return the times of functions in milliseconds: (rounds, number of functions).

    The functions take turns, so that other programs slow down all of them. Two more rounds in the
    beginning do not count, since TensorFlow traces functions in them. `timer="process_time"` counts
    the time of all processors, which depends less on other programs.
    """
    read = getattr(time, timer)
    times = np.zeros((rounds + 2, len(functions)))
    for index in np.ndindex(times.shape):
        started = read()
        functions[index[1]]()
        times[index] = 1000 * (read() - started)
    return times[2:]


def fit(model, x, y, quick, learning_rate=1e-3, decay=False, loss=None, **options):
    """Compile a model with Adam, unless it is compiled, and train it. With `quick`, one step.

    Args:
        model, x, y, options: as in `keras.Model.fit`, by default 10 epochs with batches of 64.
        decay: bool, whether the learning rate falls to 0, by half a cosine.
        loss: Keras loss. None uses cross-entropy over logits with integer targets.
    """
    options = {"epochs": 10, "batch_size": 64} | options
    if decay:
        steps = options["epochs"] * math.ceil(len(y) / options["batch_size"])
        learning_rate = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    loss = loss or keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if not model.compiled:
        model.compile(keras.optimizers.Adam(learning_rate), loss, run_eagerly=quick)
    if quick:
        x, y = keras.tree.map_structure(lambda array: array[:8], (x, y))
        options |= {"epochs": 1, "batch_size": 8}
    model.fit(x, y, verbose=0, **options)


def read_images():
    """Read Fashion-MNIST, reduced to 14 × 14 pixels, or the 8 × 8 digits of scikit-learn.

    Returns:
        The pairs of images (B, height, width, 1) and labels (B,) to train and to test, and the name
        of the dataset. Fashion-MNIST needs the environment variable `KERAS_ATTENTION_DATA`.
    """
    if "KERAS_ATTENTION_DATA" not in os.environ:
        from sklearn import datasets

        images, labels = datasets.load_digits(return_X_y=True)
        images = images.reshape(-1, 8, 8, 1) / 16
        return (images[:1300], labels[:1300]), (images[1300:], labels[1300:]), "digits"
    folder, pairs = f"{os.environ['KERAS_ATTENTION_DATA']}/images-fashion-mnist", []
    for part in "train", "t10k":
        names = f"{folder}/{part}-images-idx3-ubyte.gz", f"{folder}/{part}-labels-idx1-ubyte.gz"
        images, labels = (np.frombuffer(gzip.open(name).read(), "uint8") for name in names)
        pixels = images[16:].reshape(-1, 14, 2, 14, 2, 1).mean(axis=(2, 4)) / 255
        pairs.append((pixels.astype("float32"), labels[8:].astype("int32")))
    return *pairs, "Fashion-MNIST"


LETTERS, DIGITS = 8, 4


def make_facts(count, seed, questions=1):
    """Generate lists of facts, such as C2: letter C has digit 2, and questions about each list.

    Returns:
        Four int arrays. The first has the ids of the facts (count, LETTERS), one for each letter.
        The others (count, questions) have the id of the letter in question, its digit and the index
        of its fact. Ids begin with 1, since 0 is padding.
    """
    draw = np.random.default_rng(seed)
    letters = draw.permuted(np.tile(np.arange(LETTERS), (count, 1)), axis=1)
    digits = draw.integers(DIGITS, size=letters.shape)
    index = draw.integers(LETTERS, size=(count, questions))
    letter, digit = (np.take_along_axis(values, index, axis=1) for values in (letters, digits))
    return letters * DIGITS + digits + 1, letter + 1, digit, index


def build_recall(**parts):
    """Build a model that answers questions of `make_facts` by one attention layer with one head.

    Args:
        parts: `score` or `normalizer`, as in `ka.attention.MultiHeadAttention`.

    Returns:
        A functional model, [facts, letters] to logits of digits (B, 1, DIGITS). Its attention layer
        is called "attention".
    """
    facts = keras.Input((LETTERS,), dtype="int32", name="facts")
    letter = keras.Input((1,), dtype="int32", name="letter")
    value = ka.blocks.TokenEmbedding(LETTERS * DIGITS + 1, 32)(facts)
    query = ka.blocks.TokenEmbedding(LETTERS + 1, 32)(letter)
    x = ka.attention.MultiHeadAttention(1, 32, name="attention", **parts)(query, value)
    return keras.Model([facts, letter], keras.layers.Dense(DIGITS)(x))


WORDS = {
    "determiner": "the a this that every some".split(),
    "animal": "cat dog horse bird mouse fish lion sheep".split(),
    "act": "saw found liked heard met drew missed knew".split(),
    "thing": "table lamp house chair book door cup street".split(),
    "good": "kind bright clean sweet warm proud brave calm".split(),
    "bad": "cruel dark dirty bitter cold sad rude weak".split(),
}
VOCABULARY = ["<pad>", *(word for words in WORDS.values() for word in words)]


def make_questions(count, seed):
    """Generate texts of 8 words (ids 1 to 24) of 3 kinds, for three tasks: tags, class and span.

    A tag is the kind of a word and that of the word before. The class is whether kind 0 has more
    words than kind 1. The span is from the first to the last word of kind 0.

    Returns four pairs (inputs, targets): for one model that is asked one of three questions (ids 25
    to 27) and answers by tags (28 to 36), a class (37 or 38) or two words, and for a model of each
    task. Its start token is 39. Targets of -1 do not count.
    """
    ids = np.random.default_rng(seed).integers(1, 25, size=(count, 8))
    kinds, zero, answers = ids % 3, ids % 3 == 0, np.full((3, count, 8), -1)
    tags, more = 3 * np.roll(kinds, 1, axis=1) + kinds, zero.sum(axis=1) > (kinds == 1).sum(axis=1)
    ends = np.stack([zero.argmax(axis=1), 7 - zero[:, ::-1].argmax(axis=1)], axis=1)
    answers[0], answers[1, :, 0] = 28 + tags, 37 + more
    answers[2, :, :2] = np.take_along_axis(ids, ends, axis=1)
    answers = answers.reshape(-1, 8)
    asked = {"source_ids": np.concatenate([np.insert(ids, 0, 25 + i, axis=1) for i in range(3)])}
    asked["target_ids"] = np.insert(np.maximum(answers[:, :-1], 0), 0, 39, axis=1)
    text = {"token_ids": ids, "segment_ids": np.ones_like(ids)}
    return (asked, answers), (ids, tags), (ids, more), (text, ends)


def make_sentences(count, seed):
    """Generate sentences of 6 to 9 words, such as "the cat saw a bright table".

    The adjectives of a sentence are all good or all bad. The last of them describe the thing.

    Returns:
        Three int arrays: word ids (count, 9), padded with 0, the kinds of the words (count, 9),
        padded with -1, and whether the adjectives are good (count,).
    """
    draw = np.random.default_rng(seed)
    good, before, after = draw.integers((2, 3, 2), size=(count, 3)).T
    ids, kinds = np.zeros((count, 9), "int32"), np.full((count, 9), -1)
    starts = np.cumsum([1, *map(len, WORDS.values())])
    for row in range(count):
        traits = np.full(3, 5 - good[row])
        words = [0, *traits[: before[row]], 1, 2, 0, *traits[: 1 + after[row]], 3]
        kinds[row, : len(words)] = words
        ids[row, : len(words)] = draw.integers(starts[words], starts[np.add(words, 1)])
    return ids, kinds, good


TREES = {  # relations and heads of generated sentences
    "det nsubj root det amod obj": (2, 3, 0, 6, 6, 3),
    "nsubj case det nmod root obj": (5, 4, 4, 1, 0, 5),
    "det amod nsubj root obj case det nmod": (3, 3, 4, 0, 4, 8, 8, 5),
}


def read_trees(train, test):
    """Read sentences of English EWT with syntax trees, or generate some without the dataset.

    `train` and `test` are the numbers of sentences, of at most 20 words each. Return two lists of
    `ka.data.DependencyTree`, and the name of the dataset.
    """
    if folder := os.environ.get("KERAS_ATTENTION_DATA"):
        file = f"{folder}/tfds-universal-dependencies/en_ewt-ud-{{}}.conllu.gz"
        parts = (ka.data.read_conllu_trees(file.format(part)) for part in ("train", "test"))
        parts = ([tree for tree in trees if len(tree.tokens) <= 20] for trees in parts)
        return next(parts)[:train], next(parts)[:test], f"English EWT, {train:,} + {test} sentences"
    draw, nouns, trees = random.Random(0), WORDS["animal"], []
    words = {"det": ["a"], "amod": WORDS["good"], "root": WORDS["act"], "case": ["in"]}
    for relations in draw.choices(list(TREES), k=train + test):
        names = relations.split()
        tokens = [draw.choice(words.get(name, nouns)) for name in names]
        trees.append(ka.data.DependencyTree(tokens, TREES[relations], names))
    return trees[:train], trees[train:], "generated"
