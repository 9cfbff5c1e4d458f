"""Metrics, scores, and answers with a probability, for the tasks that give labels."""

import typing

import numpy as np

from keras_attention import training
from keras_attention.checks import check_whole_number
from keras_attention.data.manifest import PREPROCESSING, read_manifest
from keras_attention.tasks.runners import compute_logits, score_batches, softmax


class Classification(typing.NamedTuple):
    """A label for a text or a picture, and how likely the model finds it, from 0 to 1."""

    label: str
    probability: float


def load_preprocessor(folder, plain, subword):
    """The preprocessor in `folder`, of the class `subword` for a checkpoint's, else `plain`."""
    said = read_manifest(folder).get(PREPROCESSING)
    kind = said.get("kind") if isinstance(said, dict) else None
    return (subword if kind == subword.kind else plain).load(folder)


def make_accuracy():
    """The metric that every labelling task has."""
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def compute_label_scores(task, examples, where):
    """{metric name: score} of a task's runner on raw examples."""
    return score_batches(task.runner, task.make_batches(examples, where), task.make_metrics())


def check_top(top):
    """Refuses a number of answers that is neither None nor a whole number from 1 on."""
    if top is not None:
        check_whole_number("predict", "top", top)


def classify(task, inputs, top):
    """The likeliest labels of each of `inputs`, arrays (1, ...) as the model takes them.

    Args:
        top: int, how many of each, or None for the best alone.

    Returns:
        A `Classification` for each input; with `top` a list of them, the likeliest first.
    """
    check_top(top)
    run, names = task.runner, task.preprocessor.labels.names
    found = []
    for arrays in inputs:
        shares = softmax(compute_logits(run, arrays)[0])
        best = [int(i) for i in np.argsort(-shares, kind="stable")[: 1 if top is None else top]]
        found.append([Classification(names[i], float(shares[i])) for i in best])
    return [labels[0] for labels in found] if top is None else found
