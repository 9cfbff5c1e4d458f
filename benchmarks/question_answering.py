"""Question answering on QAMR (Michael et al., 2018): trained on its dev file, tested on test.

Prints exact match and F1, against the best of the three answers that people gave, as the script of
SQuAD does it, and against the writer's own; and the processor's minutes divided by two, which is
what the training takes on two cores that do nothing else.

    python benchmarks/question_answering.py DATA [--checkpoint CHECKPOINT] --backup FOLDER

DATA is a folder with dev.tsv, test.tsv and wiki-sentences.tsv. CHECKPOINT is a folder of Hugging
Face's files, or an id; without one the model is trained from scratch.
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--checkpoint")
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minutes", type=float, help="of training, in which the rate falls")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    given = parser.parse_args()
    data = ka.data.from_question_files(
        train=given.data / "dev.tsv", test=given.data / "test.tsv", seed=given.seed
    )
    names = ("epochs", "minutes", "learning_rate", "batch_size")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    keras.utils.set_random_seed(given.seed)
    if given.checkpoint:
        task = ka.tasks.QuestionAnswerer.from_preset(given.checkpoint)
    else:
        task = ka.tasks.QuestionAnswerer.from_data(data, seed=given.seed)
    measure = Measure(given.backup.with_suffix(".cpu.json"), given.pause)
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], seed=given.seed, **options)
    except Exception as error:
        if type(error).__name__ != "Interrupted":
            raise
        sys.exit(str(error))
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    found = [answer.answer for answer in task.predict(data.test)]
    every = [[answer.text for answer in question.answers] for question in data.test]
    scores = ka.training.score_answers(found, every, version="1.1")
    of_writer = ka.training.score_answers(found, [one[:1] for one in every], version="1.1")
    minutes = sum(measure.seconds.values()) / 60 / 2
    about = {"parameters": task.model.count_params(), "two_cores": round(minutes, 2), **options}
    print(json.dumps({**about, **scores, "writer": of_writer, **task.scores}), flush=True)
