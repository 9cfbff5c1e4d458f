"""Metrics, losses and predictions that several tasks share."""

import typing

import numpy as np

from keras_attention import training
from keras_attention.core.checks import check_whole_number
from keras_attention.tasks.runners import softmax


class Classification(typing.NamedTuple):
    """A predicted label of a text or an image, and its probability from 0 to 1."""

    label: str
    probability: float


def make_accuracy():
    """Make the accuracy metric for tasks with one label for each example or token."""
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def make_perplexity():
    """Make the perplexity metric for tasks that generate tokens."""
    return training.MaskedPerplexity(name="perplexity")


def make_balanced_loss(recipe, list_ids, num_labels, loss=None, **options):
    """Make a cross-entropy loss that gives examples of rare classes more weight.

    If n of N training examples belong to a class, each of them has the weight (N / n) ** balance,
    divided by the mean weight of all examples. So the scale of the loss does not change. With a
    balance of 0 all examples have the same weight. With 1 all classes have the same total weight. A
    class without examples is treated as if it had one.

    Args:
        recipe: `Recipe`, which contains the hyperparameter `balance`.
        list_ids: function without arguments that returns the int labels of the training examples.
        num_labels: int, the number of classes.
        loss: the class of the loss. None is `ka.training.MaskedSparseCategoricalCrossentropy`.
        **options: arguments of the loss. `label_smoothing` defaults to the value in `recipe`.
    """
    loss = loss or training.MaskedSparseCategoricalCrossentropy
    options = {"label_smoothing": recipe.label_smoothing, **options}
    balance = recipe.data.balance
    if not balance:
        return loss(**options)
    counts = np.bincount(list_ids(), minlength=num_labels)
    weights = np.maximum(counts, 1.0) ** -balance
    weights = weights * counts.sum() / (weights * counts).sum()
    return loss(class_weights=weights, **options)


def check_top(top):
    """Raise a ValueError unless `top`, a number of labels to return, is None or a positive int."""
    if top is not None:
        check_whole_number("predict", "top", top)


def classify(names, logits, top):
    """Return the most probable labels for each row of logits.

    Args:
        names: list of str, the names of the labels.
        logits: iterable of arrays (L,), for L labels.
        top: int, the number of labels for each row, or None for only the most probable label.

    Returns:
        A list with a `Classification` for each row. If `top` is an int, each element is instead a
        list of `top` `Classification`s, sorted by decreasing probability.
    """
    answers = []
    for row in logits:
        shares = softmax(row)
        best = [int(i) for i in np.argsort(-shares, kind="stable")[: 1 if top is None else top]]
        answers.append([Classification(names[i], float(shares[i])) for i in best])
    return [labels[0] for labels in answers] if top is None else answers
