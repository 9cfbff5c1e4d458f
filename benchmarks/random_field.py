"""Taggers with and without a conditional random field: WNUT-17, and noun phrases of a treebank.

    python benchmarks/random_field.py phrases TREEBANK

Prints entity F1 on the test split, and the share of test sentences whose predicted tags BIO
forbids, for two taggers that differ only in the last layer.

TREEBANK is treebank.zip from nltk_data, split as in constituency_parsing.py. A noun phrase is an NP
whose children are all words. With `wnut FOLDER`, the data are those of fine_tuning.py.
"""

import argparse
import pathlib
import statistics
import time

from constituency_parsing import read_treebank
from fine_tuning import read

import keras_attention as ka
from keras_attention.core.entity_tags import find_forbidden

SETTINGS = dict(
    num_layers=2,
    num_heads=4,
    hidden_dim=64,
    intermediate_dim=128,
    embedding=dict(characters=dict(filters=32, widths=(3,))),
    learning_rate=3e-3,
    jit_compile=False,
)


def tag_phrases(tree):
    """Return the BIO tags of the noun phrases in a constituency tree."""
    if all(isinstance(child.children[0], str) for child in tree.children):
        if tree.label.split("-")[0] != "NP":
            return ["O"] * len(tree.children)
        return ["I-NP" if k else "B-NP" for k in range(len(tree.children))]
    return [
        tag
        for child in tree.children
        for tag in (["O"] if isinstance(child.children[0], str) else tag_phrases(child))
    ]


def read_phrases(path):
    parts = read_treebank(path).parts
    return ka.data.Sentence.collect(
        **{part: [(t.tokens, tag_phrases(t)) for t in trees] for part, trees in parts.items()}
    )


def measure(data, crf, seed, epochs):
    """Train a tagger, and return its entity F1, its share of invalid sentences, and CPU seconds."""
    start = time.process_time()
    task = ka.tasks.SequenceLabeler.from_data(data, crf=crf, seed=seed, **SETTINGS)
    task.fit(data, epochs=epochs, seed=seed, verbose=0)
    seconds = time.process_time() - start
    predicted = task.predict([sentence.tokens for sentence in data.test])
    wrong = [find_forbidden([token.tag for token in tokens], "bio") for tokens in predicted]
    invalid = sum(k is not None for k in wrong) / len(wrong)
    return task.evaluate(data)["entity_f1"], invalid, seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=("wnut", "phrases"))
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    arguments = parser.parse_args()
    data = {"wnut": read, "phrases": read_phrases}[arguments.data](arguments.path)
    results = {"without": [], "with": []}
    for seed in arguments.seeds:
        for name, rows in results.items():
            rows.append(measure(data, name == "with", seed, arguments.epochs))
            f1, invalid, seconds = rows[-1]
            print(
                f"{name} a random field, seed {seed}: entity F1 {100 * f1:.2f} %, "
                f"{100 * invalid:.2f} % invalid, {seconds:.0f} CPU seconds",
                flush=True,
            )
    for name, rows in results.items():
        f1, invalid, seconds = (statistics.mean(column) for column in zip(*rows, strict=True))
        print(f"{name}: entity F1 {100 * f1:.2f} %, {100 * invalid:.2f} % invalid, {seconds:.0f} s")
