"""Dependency parsing on Universal Dependencies: labeled and unlabeled attachment scores.

    python benchmarks/dependency_parsing.py DATA --backup FOLDER

Trains on the official train split, and chooses the epoch on dev. Prints the scores of the CoNLL
2018 shared task on the test split, and the CPU minutes of training divided by two.

DATA is a folder with one file per split, such as en_ewt-ud-train.conllu. Files may be gzipped.
"""

import json
import pathlib

from training_runs import make_parser, score_files, train

import keras_attention as ka


def find_part(folder, part):
    """Return the path of a split's file. There must be exactly one."""
    (path,) = folder.glob(f"*-ud-{part}.conllu*")
    return path


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("data", type=pathlib.Path)
    arguments = parser.parse_args()
    parts = {part: find_part(arguments.data, part) for part in ("train", "dev", "test")}
    data = ka.data.from_conllu_trees(**parts)
    task = ka.tasks.DependencyParser.from_data(data, seed=arguments.seed)
    report = train(task, data, arguments)
    report |= {**task.evaluate(data.test), **task.scores}
    if arguments.files:
        report |= score_files(task, lambda task: task.evaluate(data.test))
    print(json.dumps(report))
