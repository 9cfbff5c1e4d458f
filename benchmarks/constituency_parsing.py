"""Constituency parsing on NLTK's sample of the Penn Treebank, sentences of up to 40 words.

Trains on the files 1 to 169, chooses the epoch on 170 to 179 and tests on 180 to 199. Prints the
scores of brackets as EVALB computes them, which of the answers are trees over exactly their words,
and the processor's minutes divided by two, which is what the training takes on two cores that do
nothing else.

    python benchmarks/constituency_parsing.py TREEBANK --backup FOLDER

TREEBANK is treebank.zip of nltk_data, with treebank/combined/wsj_0001.mrg to wsj_0199.mrg. Its
licence allows research alone: no weights made of it are published.
"""

import json
import pathlib
import zipfile

from training_runs import make_parser, score_files, train

import keras_attention as ka

PARTS = {"train": range(1, 170), "dev": range(170, 180), "test": range(180, 200)}
LONGEST = 40  # words


def read_treebank(path):
    """The trees of up to 40 words, by the parts above."""
    parts = {}
    with zipfile.ZipFile(path) as archive:
        for part, numbers in PARTS.items():
            names = [f"treebank/combined/wsj_{number:04}.mrg" for number in numbers]
            texts = [archive.read(name).decode("utf-8") for name in names]
            trees = [tree for text in texts for tree in ka.data.parse_brackets(text)]
            parts[part] = [tree for tree in trees if len(tree.tokens) <= LONGEST]
    return ka.data.ConstituencyTree.collect(**parts)


def score(task, trees):
    """Scores of brackets, and the share of answers that are trees over exactly their words."""
    found = task.predict([tree.tokens for tree in trees])  # or it raises: each is a tree
    whole = sum(one.tokens == tree.tokens for one, tree in zip(found, trees, strict=True))
    return {**ka.training.score_brackets(found, trees), "well_formed": whole / len(found)}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("treebank", type=pathlib.Path)
    given = parser.parse_args()
    data = read_treebank(given.treebank)
    task = ka.tasks.ConstituencyParser.from_data(data, seed=given.seed, max_length=LONGEST)
    about = train(task, data, given)
    about |= {**score(task, data.test), **task.scores}
    if given.files:
        about |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps(about))
