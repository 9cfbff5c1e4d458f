"""Dependency parsing of Universal Dependencies: labelled and unlabelled attachment.

Trains on the official train part, chooses the epoch on dev and prints the scores of test, by the
definitions of the CoNLL 2018 shared task, and the processor's minutes divided by two, which is what
the training takes on two cores that do nothing else.

    python benchmarks/dependency_parsing.py DATA --backup FOLDER

DATA is a folder with one file for each part, such as en_ewt-ud-train.conllu, perhaps gzipped.
"""

import json
import pathlib

from training_runs import make_parser, score_files, train

import keras_attention as ka


def find_part(folder, part):
    """The file of a part; there is one."""
    (path,) = folder.glob(f"*-ud-{part}.conllu*")
    return path


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("data", type=pathlib.Path)
    given = parser.parse_args()
    parts = {part: find_part(given.data, part) for part in ("train", "dev", "test")}
    data = ka.data.from_conllu_trees(**parts)
    task = ka.tasks.DependencyParser.from_data(data, seed=given.seed)
    about = train(task, data, given)
    about |= {**task.evaluate(data.test), **task.scores}
    if given.files:
        about |= score_files(task, lambda task: task.evaluate(data.test))
    print(json.dumps(about))
