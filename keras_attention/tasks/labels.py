"""Metrics, scores, and answers with a probability, for the tasks that give labels."""

import typing

import numpy as np

from keras_attention import training
from keras_attention.core.checks import check_whole_number
from keras_attention.tasks.runners import softmax


class Classification(typing.NamedTuple):
    """A label for a text or a picture, and how likely the model finds it, from 0 to 1."""

    label: str
    probability: float


def make_accuracy():
    """Return the metric that every labelling task has."""
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def make_balanced_loss(recipe, list_ids, num_labels):
    """Return the cross-entropy of labels, with class weights by the recipe's `balance`.

    A class with n of N examples weighs (N / n) ** balance, divided by the mean weight of the
    examples. So the loss and the learning rate keep their scale. 0 weighs all classes the same, and
    1 gives all classes the same sum. A class without examples counts as one with a single one.

    Args:
        list_ids: function that gives the int labels of the training examples.
        num_labels: int.
    """
    options = {"label_smoothing": recipe.label_smoothing}
    balance = recipe.data.balance
    if not balance:
        return training.MaskedSparseCategoricalCrossentropy(**options)
    counts = np.bincount(list_ids(), minlength=num_labels)
    weights = np.maximum(counts, 1.0) ** -balance
    weights = weights * counts.sum() / (weights * counts).sum()
    return training.MaskedSparseCategoricalCrossentropy(class_weights=weights, **options)


def check_top(top):
    """Refuses a number of answers that is neither None nor a whole number from 1 on."""
    if top is not None:
        check_whole_number("predict", "top", top)


def classify(names, logits, top):
    """Choose the likeliest labels for each row of `logits`.

    Args:
        names: list of str, L labels.
        logits: iterable of arrays (L,).
        top: int, how many for each row. None chooses one.

    Returns:
        A `Classification` for each row. With `top` it is a list of them, the likeliest first.
    """
    found = []
    for row in logits:
        shares = softmax(row)
        best = [int(i) for i in np.argsort(-shares, kind="stable")[: 1 if top is None else top]]
        found.append([Classification(names[i], float(shares[i])) for i in best])
    return [labels[0] for labels in found] if top is None else found
