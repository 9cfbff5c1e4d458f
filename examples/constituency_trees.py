"""Writes the tree of a sentence as a sequence of labels, and draws what each label looked at.

    python examples/constituency_trees.py [--train FILE --test FILE]

FILE holds trees in brackets, as the Penn Treebank's .mrg; without one they are made of a small
grammar. Whatever the model has learnt, what it writes is a tree over exactly the words of the
sentence. The way with exports and a model card is
`keras-attention train constituency_parser --train FILE --output DIR`.
"""

import argparse
import random

import keras_attention as ka

GRAMMAR = {
    "S": [["NP", "VP", "."]],
    "NP": [["DT", "NN"], ["DT", "NN"], ["DT", "JJ", "NN"], ["NP", "PP"]],
    "VP": [["VBD", "NP"], ["VBD"], ["VBD", "NP", "PP"]],
    "PP": [["IN", "NP"]],
}
WORDS = {
    "DT": ["the", "a"],
    "NN": ["cat", "dog", "house", "telescope", "park"],
    "JJ": ["old", "big"],
    "VBD": ["saw", "slept", "liked"],
    "IN": ["in", "with", "near"],
    ".": ["."],
}


def grow(label, generator, depth=0):
    """A tree of the grammar."""
    if label in WORDS:
        return ka.data.ConstituencyTree(label, (generator.choice(WORDS[label]),))
    rule = generator.choice(GRAMMAR[label][: 2 if depth > 4 else None])
    children = tuple(grow(child, generator, depth + 1) for child in rule)
    return ka.data.ConstituencyTree(label, children)


def read(train, test):
    """Trees of files, or of the grammar."""
    if train is not None:
        return ka.data.from_bracketed_files(train=train, test=test)
    generator = random.Random(0)
    trees = [grow("S", generator) for _ in range(1500)]
    return ka.data.ConstituencyTree.collect(trees[:1200], trees[1200:1300], trees[1300:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--sentence", default="the old cat saw a dog in the park .")
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    data = read(given.train, given.test)
    size = {} if given.train else dict(num_layers=1, num_decoder_layers=1, hidden_dim=96)
    task = ka.tasks.ConstituencyParser.from_data(data, **size)
    task.fit(data, epochs=given.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    print(task.predict([given.sentence])[0])
    task.attention(given.sentence, path=given.attention)
