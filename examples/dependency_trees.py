"""Predict the head of each word and its relation, and draw the probability of each head.

    python examples/dependency_trees.py [--train FILE --test FILE]

FILE is in CoNLL-U format, as in Universal Dependencies. Without it, sentences are generated from a
small grammar. The predicted heads always form a tree. The following command trains a model on
English EWT, exports it and writes a model card:
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


def add_noun(generator, words, relation, head, preposition=None):
    """Append a noun and its dependents to `words` as [word, head, relation].

    Return the number of the noun, counted from 1.
    """
    left = [] if preposition is None else [("case", preposition)]
    left.append(("det", generator.choice(WORDS["det"])))
    if generator.random() < 0.3:
        left.append(("amod", generator.choice(WORDS["amod"])))
    number = len(words) + len(left) + 1
    words += [[word, number, kind] for kind, word in left]
    words.append([generator.choice(WORDS["noun"]), head, relation])
    return number


def make_tree(generator):
    """Generate a tree with a subject, a verb, an object, and sometimes a prepositional phrase."""
    words = []
    subject = add_noun(generator, words, "nsubj", None)
    verb = len(words) + 1
    words[subject - 1][1] = verb
    words.append([generator.choice(WORDS["verb"]), 0, "root"])
    object_number = add_noun(generator, words, "obj", verb)
    if generator.random() < 0.6:
        preposition = generator.choice(WORDS["case"])
        # A phrase with "in" depends on the verb, others depend on the object.
        relation, head = ("obl", verb) if preposition == "in" else ("nmod", object_number)
        add_noun(generator, words, relation, head, preposition)
    return ka.data.DependencyTree(*zip(*words, strict=True))


def read(train, test):
    """Read trees from files, or generate them from the grammar if `train` is None."""
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
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    data = read(arguments.train, arguments.test)
    size = (
        {}
        if arguments.train
        else dict(num_layers=1, hidden_dim=64, embedding={"embedding_dim": 32})
    )
    task = ka.tasks.DependencyParser.from_data(data, **size)
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    for word in task.predict([arguments.sentence])[0]:
        print(word)
    task.attention(arguments.sentence, path=arguments.attention)
