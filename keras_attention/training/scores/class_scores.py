"""Scores of classification and tagging, in total and for each class, computed with NumPy."""

import collections

import numpy as np

from keras_attention.core.entity_tags import find_spans


class ClassScores(dict):
    """A dict {name: score} for all examples, which has the scores of each class as attributes.

    Attributes:
        classes: dict from label, or from entity type for entity tags, to a dict with `precision`,
            `recall`, `f1` and `count`. Labels that neither occur nor are predicted are left out.
        confusion: nested dict {label: {predicted label: count}}, without zeros. None if an example
            may have several labels.
    """

    def __init__(self, scores, classes, confusion=None):
        super().__init__(scores)
        self.classes, self.confusion = classes, confusion

    def list_errors(self):
        """Return the confusions of labels, the most frequent first.

        The result is a list of (label, predicted label, number of such errors, number of examples
        with the label).
        """
        errors = [
            (label, taken, count, sum(row.values()))
            for label, row in (self.confusion or {}).items()
            for taken, count in row.items()
            if taken != label
        ]
        return sorted(errors, key=lambda error: -error[2])


def score_labels(names, predicted, actual):
    """Score predicted labels, if each example has one label.

    Args:
        names: list of str, the labels.
        predicted, actual: lists of int, one index into `names` per example.

    Returns:
        `ClassScores` with `accuracy` and `macro_f1`, the mean F1 of the classes that occur or are
        predicted. Without examples an empty dict.
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
    """Score the predicted tags of sentences.

    Args:
        names: list of str, all tags.
        predicted, actual: lists with one list of tags per sentence.
        entities: bool, whether the tags mark entities, as BIO tags do.

    Returns:
        `ClassScores` with `accuracy` and `macro_f1`. With `entities` they begin with `entity_f1`,
        and `macro_f1` and the scores of classes are about entity types. An entity is right if its
        position and its type are right.
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
    """Return the mean F1 of classes that occur or are predicted, from their counts (L,).

    The counts are those of the actual, the predicted and the correctly predicted classes.
    """
    total = actual + predicted
    scores = 2 * right[total > 0] / total[total > 0]
    return round(float(scores.mean()), 6) if len(scores) else 0.0


def score_each(names, actual, predicted, right):
    """Return the precision, recall, F1 and count of each label.

    Args:
        names: list of str, the L labels.
        actual, predicted, right: int arrays (L,), how often each label occurs, is predicted, and is
            predicted correctly.

    Returns:
        A dict from label to a dict of scores, without labels that neither occur nor are predicted.
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
