"""Scores of each class, and the confusion matrix, in NumPy."""

import collections

import numpy as np

from keras_attention.training.scores.entity_tags import find_spans


class ClassScores(dict):
    """Scores by name, as every task gives them, and beside them those of each class.

    Attributes:
        classes: dict, label -> its `precision`, `recall`, `f1` and `count`. For entity tags, entity
            type -> the same. A label that neither occurs nor is predicted is left out.
        confusion: dict, label -> predicted label -> count, without zeros. It is None where an
            example may have several labels.
    """

    def __init__(self, scores, classes, confusion=None):
        super().__init__(scores)
        self.classes, self.confusion = classes, confusion

    def list_errors(self):
        """List (label, predicted label, count, count of the label), the most frequent first."""
        errors = [
            (label, taken, count, sum(row.values()))
            for label, row in (self.confusion or {}).items()
            for taken, count in row.items()
            if taken != label
        ]
        return sorted(errors, key=lambda error: -error[2])


def score_labels(names, predicted, actual):
    """Score labels, one for each example.

    Args:
        names: list of str, L labels.
        predicted, actual: sequences of ints from 0 to L - 1.

    Returns:
        `ClassScores` with `accuracy` and `macro_f1`, the mean F1 of the classes that occur or are
        predicted. {} without examples.
    """
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (np.asarray(actual, int), np.asarray(predicted, int)), 1)
    if not counts.sum():
        return {}
    sums = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    accuracy = round(float(sums[2].sum() / counts.sum()), 6)
    scores = {"accuracy": accuracy, "macro_f1": _average_f1(*sums)}
    confusion = {
        name: {names[k]: int(row[k]) for k in np.flatnonzero(row)}
        for name, row in zip(names, counts, strict=True)
        if row.any()
    }
    return ClassScores(scores, score_each(names, *sums), confusion)


def score_tags(names, predicted, actual, entities):
    """Score the tags of sentences.

    Args:
        names: list of str, the tags.
        predicted, actual: lists of lists of tags, one for each sentence.
        entities: bool, whether the tags mark entities.

    Returns:
        `ClassScores`, like those of `score_labels`. With entities `entity_f1` comes first, and F1
        is of entity types: the place and the label of an entity must agree.
    """
    numbers = {name: k for k, name in enumerate(names)}
    flat = ([numbers[tag] for tags in part for tag in tags] for part in (predicted, actual))
    of_tags = score_labels(names, *flat)
    if not of_tags or not entities:
        return of_tags
    counters = [collections.Counter() for _ in range(3)]
    for pair in zip(actual, predicted, strict=True):
        true, guessed = (set(find_spans(tags)) for tags in pair)
        for counter, spans in zip(counters, (true, guessed, true & guessed), strict=True):
            counter.update(label for _, _, label in spans)
    types = sorted({*counters[0], *counters[1]})
    sums = [np.array([counter[name] for name in types], int) for counter in counters]
    true, guessed, right = (int(counts.sum()) for counts in sums)
    entity_f1 = round(2 * right / max(true + guessed, 1), 6)
    scores = {"entity_f1": entity_f1, **of_tags, "macro_f1": _average_f1(*sums)}
    return ClassScores(scores, score_each(types, *sums), of_tags.confusion)


def _average_f1(actual, predicted, right):
    """Compute the mean F1 of classes that occur or are predicted, from `score_each`'s arrays."""
    total = actual + predicted
    scores = 2 * right[total > 0] / total[total > 0]
    return round(float(scores.mean()), 6) if len(scores) else 0.0


def score_each(names, actual, predicted, right):
    """Return {label: its precision, recall, F1 and count}, without labels that never occur.

    Args:
        names: list of str, L labels.
        actual, predicted, right: int arrays (L,): how often each label occurs, is predicted, and is
            predicted correctly.
    """
    classes = {}
    for name, *numbers in zip(names, actual, predicted, right, strict=True):
        count, guessed, correct = (int(number) for number in numbers)
        if count or guessed:
            classes[name] = {
                "precision": round(correct / max(guessed, 1), 6),
                "recall": round(correct / max(count, 1), 6),
                "f1": round(2 * correct / (count + guessed), 6),
                "count": count,
            }
    return classes
