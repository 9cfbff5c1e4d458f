"""Detection of blood cells: trained on the official training part of TFDS's `bccd`, tested on test.

Prints COCO's mean average precision, by its own tools, of the test part; and the processor's
minutes divided by two, which is what the training takes on two cores that do nothing else. The
development part chooses the epoch.

    python benchmarks/blood_cells.py [--queries 60] --backup FOLDER --save PRESET
"""

import argparse
import json
import pathlib
import sys
import time

import keras

import keras_attention as ka
from keras_attention.data.files import read_json, write_json


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


def score(task, examples):
    """COCO's scores of a part, with those of each class."""
    found = [task.predict([example], threshold=0.0)[0] for example in examples]
    wanted = [example.objects() for example in examples]
    scores = ka.training.score_boxes(wanted, found, labels=task.preprocessor.labels.names)
    by_label = {name: [round(x, 4) for x in both] for name, both in scores.pop("by_label").items()}
    return {name: round(value, 4) for name, value in scores.items()} | {"by_label": by_label}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=pathlib.Path, help="where TFDS keeps its data")
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--queries", type=int, help="learned ones, in place of the grid's")
    parser.add_argument("--auxiliary", action="store_true", help="losses of every layer")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, help="of training, in which the rate falls")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--image-size", type=int, help="pixels of the longer side")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    parser.add_argument("--untested", action="store_true", help="score the development part only")
    given = parser.parse_args()
    data = ka.data.from_tfds_boxes("bccd", data_dir=given.data_dir, image_size=given.image_size)
    names = ("epochs", "minutes", "learning_rate", "batch_size")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    model = {"auxiliary": given.auxiliary, "seed": given.seed}
    model |= {} if given.queries is None else {"queries": given.queries}
    task = ka.tasks.ObjectDetector.from_data(data, **model)
    measure = Measure(given.backup.with_suffix(".cpu.json"), given.pause)
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], seed=given.seed, **options)
    except Exception as error:
        if type(error).__name__ != "Interrupted":
            raise
        sys.exit(str(error))
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    scores = {"dev": score(task, data.dev)}
    if not given.untested:
        scores["test"] = score(task, data.test)
    minutes = sum(measure.seconds.values()) / 60 / 2
    about = {"parameters": task.model.count_params(), "two_cores": round(minutes, 2), **options}
    print(json.dumps({**about, **scores, "chosen": task.scores}), flush=True)
