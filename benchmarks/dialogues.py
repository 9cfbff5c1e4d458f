"""A chatbot on the self-dialogue corpus (Fainberg et al., 2018): perplexity, and what it replies.

Prints the perplexity of a subword on the development part, with the contexts that belong to the
replies and with others (shuffled with a seed), distinct n-grams of 1,000 drawn replies, the share
of the commonest of them, and the processor's minutes of training divided by two, which is what it
takes on two cores that do nothing else.

    python benchmarks/dialogues.py DATA [--language-model] --backup FOLDER

DATA is a folder with train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz.
"""

import argparse
import json
import pathlib
import random
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


def shuffle_contexts(pairs, seed=0):
    """The replies, each with the context of another one."""
    sources = [pair.source for pair in pairs]
    random.Random(seed).shuffle(sources)
    return [ka.data.Pair(source, pair.target) for source, pair in zip(sources, pairs, strict=True)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--backup", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--turns", type=int, default=3, help="of a context")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, help="minutes; the same command then goes on")
    parser.add_argument("--save", type=pathlib.Path, help="folder for the preset")
    given = parser.parse_args()
    paths = {part: given.data / f"{part}.jsonl.gz" for part in ("train", "dev", "test")}
    dialogues = ka.data.from_dialogue_files(**paths)
    names = ("learning_rate", "batch_size")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    model = {"seed": given.seed, "dropout": given.dropout, "vocabulary_size": 4000}
    if given.language_model:
        data = dialogues.corpus
        task = ka.tasks.CausalLM.from_data(
            data, tokens="subwords", max_length=96, mask=None, num_layers=4, **model
        )
        options["steps"] = 2000
    else:
        data = dialogues.pairs(given.turns)
        task = ka.tasks.Seq2SeqLM.from_data(data, **model)
    measure = Measure(given.backup.with_suffix(".cpu.json"), given.pause)
    options |= {"epochs": given.epochs, "seed": given.seed}
    try:
        task.fit(data, backup_dir=given.backup, callbacks=[measure], **options)
    except Exception as error:
        if type(error).__name__ != "Interrupted":
            raise
        sys.exit(str(error))
    if given.save is not None:
        task.save_to_preset(given.save, overwrite=True)
    minutes = sum(measure.seconds.values()) / 60 / 2
    found = {"parameters": task.model.count_params(), "two_cores": round(minutes, 2)}
    found["dev"] = task.evaluate(data.dev)
    if not given.language_model:
        shuffled = task.evaluate(shuffle_contexts(data.dev))["perplexity"]
        found["shuffled"] = shuffled
        found["shuffled_costs"] = round(shuffled / found["dev"]["perplexity"] - 1, 4)
    print(json.dumps({**found, **task.scores}))
