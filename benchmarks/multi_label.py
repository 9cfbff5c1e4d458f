"""Emotions of comments (GoEmotions, Demszky et al., 2020): trained, and tested on official parts.

Prints macro, micro and sample F1 with thresholds from the development part, and the processor's
minutes divided by two, which is what the training takes on two cores that do nothing else.

    python benchmarks/multi_label.py [--checkpoint CHECKPOINT] --backup FOLDER

CHECKPOINT is a folder of Hugging Face's files, or an id; without one the model is trained from
scratch. With --pause the run stops after so many minutes, and the same command goes on.
"""

import argparse
import json
import pathlib
import sys

import keras
from question_answering import Measure

import keras_attention as ka

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint")
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--data-dir", type=pathlib.Path, help="where TFDS keeps its data")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--balance", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    given = parser.parse_args()
    data = ka.data.from_tfds("goemotions", data_dir=given.data_dir)
    names = ("epochs", "learning_rate", "batch_size", "balance")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    keras.utils.set_random_seed(given.seed)
    if given.checkpoint:
        task = ka.tasks.MultiLabelClassifier.from_preset(given.checkpoint)
    else:
        task = ka.tasks.MultiLabelClassifier.from_data(data, seed=given.seed)
    measure = Measure(given.backup.with_suffix(".cpu.json"), given.pause)
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], seed=given.seed, **options)
    except Exception as error:
        if type(error).__name__ != "Interrupted":
            raise
        sys.exit(str(error))
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    minutes = sum(measure.seconds.values()) / 60 / 2
    about = {"parameters": task.model.count_params(), "two_cores": round(minutes, 2), **options}
    print(json.dumps({**about, **task.evaluate(data), **task.scores}), flush=True)
