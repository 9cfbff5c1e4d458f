"""Train a task in a run that can be interrupted and resumed, for scripts that test it afterwards.

The scripts print the CPU minutes of training divided by two.
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
    """Records the CPU seconds of each epoch in a file, and interrupts training after some minutes.

    A resumed run continues the file. If `pause` is None, training is not interrupted.
    """

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


def make_parser(description, **types):
    """Return a parser for the options that all scripts share.

    Args:
        description: str. Only its first line is used.
        **types: name=type of additional numbers of the recipe.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--minutes", type=float, help="limit of the training time")
    for name, kind in (NUMBERS | types).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    parser.set_defaults(numbers=("minutes", *NUMBERS, *types))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    parser.add_argument("--files", action="store_true", help="score its LiteRT files, too")
    return parser


def train(task, data, arguments, **options):
    """Fit a task with the options in `arguments`, and save it.

    Returns:
        dict for the printed line: number of parameters, minutes on two cores, and the options.
    """
    numbers = {name: getattr(arguments, name) for name in arguments.numbers}
    options |= {name: value for name, value in numbers.items() if value is not None}
    measure = ProcessorTime(arguments.backup.with_suffix(".cpu.json"), arguments.pause)
    try:
        task.fit(
            data, backup_dir=arguments.backup, callbacks=[measure], seed=arguments.seed, **options
        )
    except KeyboardInterrupt:
        sys.exit(f"interrupted; the epochs are kept in {arguments.backup}: run the command again.")
    if arguments.save is not None:
        task.save_to_preset(arguments.save, overwrite=True)
    minutes = round(sum(measure.seconds.values()) / 60 / 2, 2)
    return {"parameters": task.model.count_params(), "two_cores": minutes, **options}


def score_files(task, score, examples=None):
    """Export a task to LiteRT in float32 and with int8 weights, and score both files.

    Args:
        task: the task.
        score: function of a task. It is called with a task that runs a file.
        examples: raw examples to compare the files with the model on. None generates inputs.

    Returns:
        dict, "litert" and "litert-int8" -> result of `score`.
    """
    with tempfile.TemporaryDirectory() as folder:
        preset = pathlib.Path(folder, "preset")
        task.save_to_preset(preset)
        task.export(preset / LITERT, calibration=examples)
        task.export(preset / LITERT_INT8, quantization="int8_weights", calibration=examples)
        return {kind: score(ka.tasks.from_preset(preset, kind)) for kind in FILES}
