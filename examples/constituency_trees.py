"""Predict the constituency tree of a sentence as a sequence of labels, and draw its attention.

    python examples/constituency_trees.py [--train FILE --test FILE]

FILE contains bracketed trees, like the .mrg files of the Penn Treebank. Without it, trees are
generated from a small grammar. The model always predicts a valid tree over exactly the words of the
sentence. The following command trains the same model, exports it and writes a model card:
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
    """Generate a random tree from the grammar, with `label` at its root."""
    if label in WORDS:
        return ka.data.ConstituencyTree(label, (generator.choice(WORDS[label]),))
    rule = generator.choice(GRAMMAR[label][: 2 if depth > 4 else None])
    children = tuple(grow(child, generator, depth + 1) for child in rule)
    return ka.data.ConstituencyTree(label, children)


def read(train, test):
    """Read trees from files, or generate them from the grammar if `train` is None."""
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
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    data = read(arguments.train, arguments.test)
    size = {} if arguments.train else dict(num_layers=1, num_decoder_layers=1, hidden_dim=96)
    task = ka.tasks.ConstituencyParser.from_data(data, **size)
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    print(task.predict([arguments.sentence])[0])
    task.attention(arguments.sentence, path=arguments.attention)
