"""Finds which word depends on which, and how, and draws how likely each is the head of each.

    python examples/dependency_trees.py [--train FILE --test FILE]

FILE is CoNLL-U, as Universal Dependencies publishes it; without one sentences are made of a small
grammar. What is answered is always a tree. The way with exports and a model card is
`keras-attention train dependency_parser --dataset universal_dependencies/en_ewt --output DIR`.
"""

import argparse
import random

import keras_attention as ka

WORDS = {
    "det": ["the", "a"],
    "noun": ["cat", "dog", "house", "telescope", "park"],
    "amod": ["old", "big"],
    "verb": ["saw", "liked"],
    "case": ["in", "with", "near"],
}


def say_noun(generator, words, relation, head, preposition=None):
    """Adds the words of a noun and what depends on it, as [word, head, relation]; its number."""
    left = [] if preposition is None else [("case", preposition)]
    left.append(("det", generator.choice(WORDS["det"])))
    if generator.random() < 0.3:
        left.append(("amod", generator.choice(WORDS["amod"])))
    number = len(words) + len(left) + 1
    words += [[word, number, kind] for kind, word in left]
    words.append([generator.choice(WORDS["noun"]), head, relation])
    return number


def make_tree(generator):
    """A sentence of a subject, a verb and an object, which something may be said of."""
    words = []
    subject = say_noun(generator, words, "nsubj", None)
    verb = len(words) + 1
    words[subject - 1][1] = verb
    words.append([generator.choice(WORDS["verb"]), 0, "root"])
    thing = say_noun(generator, words, "obj", verb)
    if generator.random() < 0.6:
        preposition = generator.choice(WORDS["case"])
        place = preposition == "in"  # where it happens; the others say which thing
        relation, head = ("obl", verb) if place else ("nmod", thing)
        say_noun(generator, words, relation, head, preposition)
    return ka.data.DependencyTree(*zip(*words, strict=True))


def read(train, test):
    """Trees of files, or of the grammar."""
    if train is not None:
        return ka.data.from_conllu_trees(train=train, test=test)
    generator = random.Random(0)
    trees = [make_tree(generator) for _ in range(1500)]
    return ka.data.DependencyTree.collect(trees[:1200], trees[1200:1300], trees[1300:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--sentence", default="the old cat saw a dog in the park")
    parser.add_argument("--attention", default="attention.png", help="picture to write")
    given = parser.parse_args()
    data = read(given.train, given.test)
    size = {} if given.train else dict(num_layers=1, hidden_dim=64, embedding={"embedding_dim": 32})
    task = ka.tasks.DependencyParser.from_data(data, **size)
    task.fit(data, epochs=given.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    for word in task.predict([given.sentence])[0]:
        print(word)
    task.attention(given.sentence, path=given.attention)
