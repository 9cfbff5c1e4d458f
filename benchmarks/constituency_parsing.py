"""Constituency parsing on NLTK's sample of the Penn Treebank, sentences of up to 40 words.

Trains on the files 1 to 169, chooses the epoch on 170 to 179 and tests on 180 to 199. Prints the
scores of brackets as EVALB computes them, which of the answers are trees over exactly their words,
and the processor's minutes divided by two, which is what the training takes on two cores that do
nothing else.

    python benchmarks/constituency_parsing.py TREEBANK --backup FOLDER

TREEBANK is treebank.zip of nltk_data, with treebank/combined/wsj_0001.mrg to wsj_0199.mrg. Its
licence allows research alone: no weights made of it are published.
"""

import argparse
import json
import pathlib
import sys
import time
import zipfile

import keras

import keras_attention as ka
from keras_attention.data.files import read_json, write_json

PARTS = {"train": range(1, 170), "dev": range(170, 180), "test": range(180, 200)}
LONGEST = 40  # words


class Measure(keras.callbacks.Callback):
    """Notes the processor's seconds of each epoch, across stops, and stops after some minutes."""

    def __init__(self, path, pause):
        super().__init__()
        self.path, self.end = path, None if pause is None else time.perf_counter() + 60 * pause
        self.seconds = read_json(path) if path.exists() else {}

    def on_epoch_begin(self, epoch, logs=None):
        self.started = time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds[str(epoch)] = time.process_time() - self.started
        write_json(self.path, self.seconds)
        if self.end is not None and time.perf_counter() > self.end:
            raise KeyboardInterrupt


def read_treebank(path):
    """The trees of up to 40 words, by the parts above."""
    parts = {}
    with zipfile.ZipFile(path) as archive:
        for part, numbers in PARTS.items():
            names = [f"treebank/combined/wsj_{number:04}.mrg" for number in numbers]
            texts = [archive.read(name).decode("utf-8") for name in names]
            trees = [tree for text in texts for tree in ka.data.parse_brackets(text)]
            parts[part] = [tree for tree in trees if len(tree.tokens) <= LONGEST]
    return ka.data.ConstituencyTrees.from_lists(**parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=pathlib.Path)
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    given = parser.parse_args()
    data = read_treebank(given.treebank)
    names = ("epochs", "learning_rate", "batch_size")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    task = ka.tasks.ConstituencyParser.from_data(data, seed=given.seed, max_length=LONGEST)
    measure = Measure(given.backup.with_suffix(".cpu.json"), given.pause)
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], seed=given.seed, **options)
    except Exception as error:
        if type(error).__name__ != "Interrupted":
            raise
        sys.exit(str(error))
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    found = task.predict([tree.tokens for tree in data.test])  # or it raises: each is a tree
    whole = sum(one.tokens == tree.tokens for one, tree in zip(found, data.test, strict=True))
    scores = ka.training.score_brackets(found, data.test)
    minutes = sum(measure.seconds.values()) / 60 / 2
    about = {"parameters": task.model.count_params(), "two_cores": round(minutes, 2), **options}
    print(json.dumps({**about, **scores, "well_formed": whole / len(found), **task.scores}))
