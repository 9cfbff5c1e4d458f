"""Trains a task as `fit` does, for a script that then tests it: it can stop, and go on.

The minutes that a script prints are the processor's divided by two, which is what the training
takes on two cores that do nothing else.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import keras

import keras_attention as ka
from keras_attention.files.io import read_json, write_json
from keras_attention.tasks.folders import LITERT, LITERT_INT8

NUMBERS = {"epochs": int, "learning_rate": float, "batch_size": int}
FILES = "litert", "litert-int8"


class ProcessorTime(keras.callbacks.Callback):
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


def make_parser(description, **others):
    """A parser of the options of a run.

    Args:
        description: str, of which the first line counts.
        others: types of further numbers of the recipe, by their names.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--minutes", type=float, help="of training, in which the rate falls")
    for name, kind in (NUMBERS | others).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    parser.set_defaults(numbers=("minutes", *NUMBERS, *others))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    parser.add_argument("--files", action="store_true", help="score its LiteRT files, too")
    return parser


def train(task, data, given, **options):
    """Fits a task with the numbers that are `given`, and saves it where they say.

    Returns:
        dict for the printed line: parameters, minutes of two cores, and the numbers.
    """
    numbers = {name: getattr(given, name) for name in given.numbers}
    options |= {name: value for name, value in numbers.items() if value is not None}
    measure = ProcessorTime(given.backup.with_suffix(".cpu.json"), given.pause)
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], seed=given.seed, **options)
    except KeyboardInterrupt:
        sys.exit(f"interrupted; the epochs are kept in {given.backup}: run the command again.")
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    minutes = round(sum(measure.seconds.values()) / 60 / 2, 2)
    return {"parameters": task.model.count_params(), "two_cores": minutes, **options}


def score_files(task, score, examples=None):
    """What `score`, a function of a task, says of its LiteRT files: in float32, in int8 weights.

    They are compared with the model on raw `examples`, or on what the task makes up.
    """
    with tempfile.TemporaryDirectory() as folder:
        preset = pathlib.Path(folder, "preset")
        task.save_to_preset(preset)
        task.export(preset / LITERT, calibration=examples)
        task.export(preset / LITERT_INT8, quantization="int8_weights", calibration=examples)
        return {kind: score(ka.tasks.from_preset(preset, kind)) for kind in FILES}
