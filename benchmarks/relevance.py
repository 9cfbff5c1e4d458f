"""Attention explained: does a prediction fail sooner without the inputs that are named first?

    python benchmarks/relevance.py [--examples 200] [--seed 0] [--data-dir FOLDER]

For three trained models and examples of their test data, prints the mean probability of the
predicted class after the first tenth, fifth, ... of the inputs is deleted, in the order of
`ka.visualization.relevance` (of the class's logit), of `ka.visualization.rollout` and at random.
Less is better. A deleted token becomes padding, and a deleted patch of an image becomes black. The
last column is the mean over all shares, with the difference to relevance and its standard error.

The models are `emotions` (the most probable emotion of a comment), `pos-tagger-en-ewt` (the tag of
the longest word of a sentence) and `digits-vit` (the digit). FOLDER (or the environment variable
KERAS_ATTENTION_DATA) holds `multilabel-goemotions` and `tfds-universal-dependencies`.
"""

import argparse
import csv
import os
import pathlib

import keras
import numpy as np

import keras_attention as ka
from keras_attention.cli import sources

SHARES = (0.1, 0.2, 0.3, 0.5)
ORDERS = ("relevance", "rollout", "chance")
PRESETS = pathlib.Path(__file__).parent.parent / "saved_models"


class Comments:
    """The most probable emotion of each comment of GoEmotions."""

    activation = staticmethod(keras.ops.sigmoid)

    def __init__(self, data, count):
        task = ka.tasks.from_preset(PRESETS / "emotions")
        path = data / "multilabel-goemotions" / "test.tsv"
        with open(path, encoding="utf-8", newline="") as file:
            texts = [text for text, *_ in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
        texts = [text for text in texts if 12 <= len(text.split()) <= 30][:count]
        self.model, self.inputs = task.model, {"token_ids": task.preprocessor(texts)}
        self.deletable = self.inputs["token_ids"] > 0
        self.rows = np.zeros(len(texts), int)  # of the maps: the model has a pooling with one query

    def logits(self, outputs):
        return outputs

    def delete(self, deleted):
        return {"token_ids": np.where(deleted, 0, self.inputs["token_ids"])}


class Sentences:
    """The part of speech of the longest word of each sentence of UD English EWT."""

    activation = staticmethod(keras.ops.softmax)

    def __init__(self, data, count):
        task = ka.tasks.from_preset("pos-tagger-en-ewt")
        path = data / "tfds-universal-dependencies" / "en_ewt-ud-test.conllu.gz"
        sentences = [list(each.tokens) for each in ka.data.from_conllu(test=path).test]
        sentences = [words for words in sentences if 12 <= len(words) <= 30][:count]
        self.model, self.inputs = task.model, task.preprocessor(sentences)
        self.rows = np.array([np.argmax([len(word) for word in words]) for words in sentences])
        length = self.inputs["token_ids"].shape[1]
        lengths = np.array([len(words) for words in sentences])
        self.deletable = np.arange(length) < lengths[:, None]
        self.picked = np.eye(length, dtype="float32")[self.rows][:, :, None]
        self.deletable &= self.picked[:, :, 0] == 0  # the word itself stays

    def logits(self, outputs):
        return keras.ops.sum(outputs * self.picked, axis=1)

    def delete(self, deleted):
        ids, characters = self.inputs["token_ids"], self.inputs["character_ids"]
        return {
            "token_ids": np.where(deleted, 0, ids),
            "character_ids": np.where(deleted[:, :, None], 0, characters),
        }


class Digits:
    """The digit that an image of 8 × 8 pixels shows, in patches of 2 × 2."""

    activation = staticmethod(keras.ops.softmax)

    def __init__(self, data, count):
        task = ka.tasks.from_preset("digits-vit")
        images, _ = sources.load_digits().test.arrays(stop=count)
        self.model, self.inputs = task.model, images
        self.deletable, self.rows = np.ones((count, 16), bool), None  # the mean of all patches

    def logits(self, outputs):
        return outputs

    def delete(self, deleted):
        pixels = deleted.reshape(-1, 4, 4).repeat(2, axis=1).repeat(2, axis=2)
        return np.where(pixels[..., None], 0, self.inputs)


def rank(scores, case):
    """Return the rank (B, T) of each input that may be deleted, 0 for the largest score."""
    scores = np.where(case.deletable, scores, -np.inf)
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)


def measure(case, rng):
    """Return {order: probabilities of the predicted class (B, shares)} after the deletions."""
    examples = np.arange(len(case.deletable))

    def predict(inputs):
        logits = case.logits(case.model(inputs, training=False))
        return keras.ops.convert_to_numpy(case.activation(logits))

    best = predict(case.inputs).argmax(axis=-1)
    chosen = keras.ops.one_hot(best, predict(case.inputs).shape[-1])

    def score(outputs):
        return keras.ops.sum(case.logits(outputs) * chosen, axis=-1)

    with ka.visualization.record_attention(case.model) as maps:
        case.model(case.inputs, training=False)
    scores = {
        "relevance": ka.visualization.relevance(case.model, case.inputs, score),
        "rollout": ka.visualization.rollout(maps),
        "chance": rng.random((len(examples), 1, case.deletable.shape[1])),
    }
    left = {}
    for order, matrix in scores.items():
        if matrix.shape[1] == 1 or case.rows is None:
            ranks = rank(matrix.mean(axis=1), case)
        else:
            ranks = rank(matrix[examples, case.rows], case)
        counts = case.deletable.sum(axis=1, keepdims=True)
        deleted = [case.delete(ranks < np.round(share * counts)) for share in SHARES]
        left[order] = np.stack([predict(inputs)[examples, best] for inputs in deleted], axis=1)
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", default=os.environ.get("KERAS_ATTENTION_DATA"))
    options = parser.parse_args()
    if options.data_dir is None:
        parser.error("give --data-dir, or set KERAS_ATTENTION_DATA")
    print("| model | order |", " | ".join(f"{share:.0%}" for share in SHARES), "| mean |")
    for make in (Comments, Sentences, Digits):
        case = make(pathlib.Path(options.data_dir), options.examples)
        left = measure(case, np.random.default_rng(options.seed))
        means = {name: values.mean(axis=1) for name, values in left.items()}
        for name in ORDERS:
            difference = means[name] - means["relevance"]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            spread = "" if name == "relevance" else f" ({difference.mean():+.1%} ± {error:.1%})"
            cells = " | ".join(f"{value:.1%}" for value in left[name].mean(axis=0))
            print(f"| {make.__name__} | {name} | {cells} | {means[name].mean():.1%}{spread} |")


if __name__ == "__main__":
    main()
