"""Constituency parsing on NLTK's sample of the Penn Treebank, sentences of up to 40 words.

    python benchmarks/constituency_parsing.py TREEBANK --backup FOLDER

Trains on files 1 to 169, chooses the epoch on 170 to 179, and tests on 180 to 199. Prints EVALB's
bracket scores, the share of valid trees, and the CPU minutes of training divided by two.

TREEBANK is treebank.zip from nltk_data, with treebank/combined/wsj_0001.mrg to wsj_0199.mrg. Its
license allows only research, so weights trained on it are not published.
"""

import json
import pathlib
import zipfile

from training_runs import make_parser, score_files, train

import keras_attention as ka

PARTS = {"train": range(1, 170), "dev": range(170, 180), "test": range(180, 200)}
LONGEST = 40  # words


def read_treebank(path):
    """Read all trees of up to 40 words, split as in `PARTS`."""
    parts = {}
    with zipfile.ZipFile(path) as archive:
        for part, numbers in PARTS.items():
            names = [f"treebank/combined/wsj_{number:04}.mrg" for number in numbers]
            texts = [archive.read(name).decode("utf-8") for name in names]
            trees = [tree for text in texts for tree in ka.data.parse_brackets(text)]
            parts[part] = [tree for tree in trees if len(tree.tokens) <= LONGEST]
    return ka.data.ConstituencyTree.collect(**parts)


def score(task, trees):
    """Compute bracket scores, and the share of predicted trees over exactly the given words."""
    predicted = task.predict([tree.tokens for tree in trees])  # raises an error for invalid trees
    whole = sum(one.tokens == tree.tokens for one, tree in zip(predicted, trees, strict=True))
    return {**ka.training.score_brackets(predicted, trees), "well_formed": whole / len(predicted)}


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("treebank", type=pathlib.Path)
    arguments = parser.parse_args()
    data = read_treebank(arguments.treebank)
    task = ka.tasks.ConstituencyParser.from_data(data, seed=arguments.seed, max_length=LONGEST)
    report = train(task, data, arguments)
    report |= {**score(task, data.test), **task.scores}
    if arguments.files:
        report |= score_files(task, lambda task: score(task, data.test))
    print(json.dumps(report))
