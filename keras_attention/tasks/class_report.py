"""Scores of each class and the confusion matrix: computed, printed, drawn and put into cards."""

import numpy as np

from keras_attention import training
from keras_attention.tasks.printing import format_percent, show_table
from keras_attention.tasks.runners import score_batches
from keras_attention.visualization import confusion_map

PICTURE = "confusion.png"
MOST_ROWS = 40  # classes in the table of a card
MOST_ERRORS = 10  # pairs of classes that are shown


class ClassScores(dict):
    """Scores by name, as every task gives them, and beside them those of each class.

    Attributes:
        classes: dict, label -> its `precision`, `recall`, `f1` and `count`; of entity tags, entity
            type -> the same. A label that neither occurs nor is predicted is left out.
        confusion: dict, label -> predicted label -> count, without zeros. It is None where an
            example may have several labels.
    """

    def __init__(self, scores, classes, confusion=None):
        super().__init__(scores)
        self.classes, self.confusion = classes, confusion


def score_with_classes(task, examples, where):
    """Scores of a task whose examples, or tokens, have one label each.

    Args:
        task: its `make_metrics` are computed, and macro F1 after them.
        examples, where: as for `Task.compute_scores`.

    Returns:
        `ClassScores`; {} without examples.
    """
    names = list(task.preprocessor.labels.names)
    matrix = training.ClassF1(len(names))
    entities = _find_entity_metric(task)
    macro = [matrix] if entities is None else [entities, matrix]
    made = [*task.make_metrics(), *(lambda m=m: m for m in macro)]
    scores = score_batches(task.runner, task.make_batches(examples, where), made)
    if not scores:
        return {}
    counts = np.asarray(matrix.counts).astype(int)
    if entities is None:
        classes = score_each(names, counts.sum(axis=1), counts.sum(axis=0), np.diag(counts))
    else:
        found = (entities.actual, entities.predicted, entities.correct)
        classes = score_each(entities.types, *(np.asarray(count).astype(int) for count in found))
        scores[entities.name] = round(float(entities.result()), 6)
    return ClassScores(scores, classes, _list_counts(names, counts))


def _find_entity_metric(task):
    """Macro F1 of entities where the task scores entities; else None."""
    first = task.make_metrics()[0]()
    if not isinstance(first, training.EntityF1):
        return None
    return training.EntityF1(first.labels, average="macro", name="macro_f1")


def score_each(names, actual, predicted, right):
    """{label: its precision, recall, F1 and count}, without labels that never occur.

    Args:
        names: list of str, L labels.
        actual, predicted, right: int arrays (L,): how often each label is there, is predicted, and
            is predicted where it is there.
    """
    classes = {}
    for name, *numbers in zip(names, actual, predicted, right, strict=True):
        there, given, both = (int(number) for number in numbers)
        if there or given:
            classes[name] = {
                "precision": round(both / max(given, 1), 6),
                "recall": round(both / max(there, 1), 6),
                "f1": round(2 * both / (there + given), 6),
                "count": there,
            }
    return classes


def _list_counts(names, counts):
    return {
        name: {names[k]: int(row[k]) for k in np.flatnonzero(row)}
        for name, row in zip(names, counts, strict=True)
        if row.any()
    }


def list_details(scores):
    """What `scores.json` says of classes: a dict, empty where `scores` are of no classes."""
    if not isinstance(scores, ClassScores):
        return {}
    confusion = {} if scores.confusion is None else {"confusion": scores.confusion}
    return {"classes": scores.classes, **confusion}


def show_classes(scores):
    """Prints the scores of each class, where `scores` have them, and the most frequent errors."""
    if not isinstance(scores, ClassScores):
        return
    rows = [_format_row(*item) for item in scores.classes.items()]
    show_table(("class", "precision", "recall", "F1", "count"), rows, title="Classes")
    if pairs := _list_errors(scores):
        show_table(("class", "taken for", "count", "of"), pairs, title="Most frequent errors")


def write_classes(scores, picture=None):
    """The same as Markdown for a card; "" where `scores` are of no classes.

    Args:
        picture: str, the file name of the confusion matrix, or None.
    """
    if not isinstance(scores, ClassScores):
        return ""
    shown = sorted(scores.classes.items(), key=lambda item: item[1]["f1"])[:MOST_ROWS]
    lines = ["| class | precision | recall | F1 | count |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(map(str, _format_row(*item)))} |" for item in shown]
    parts = ["\n".join(lines)]
    if len(shown) < len(scores.classes):
        parts.insert(0, f"The {MOST_ROWS} of {len(scores.classes)} classes with the lowest F1:")
    if pairs := _list_errors(scores):
        errors = (f"- {name} was taken for {x}: {n:,} of {total:,}" for name, x, n, total in pairs)
        parts.append("\n".join(["The most frequent errors:", "", *errors]))
    if picture is not None:
        parts.append(f"![Confusion matrix]({picture})")
    return "\n\n".join(parts)


def _list_errors(scores):
    """(label, what it was taken for, how often, of how many), the most frequent first."""
    errors = [
        (label, taken, count, sum(row.values()))
        for label, row in (scores.confusion or {}).items()
        for taken, count in row.items()
        if taken != label
    ]
    return sorted(errors, key=lambda error: -error[2])[:MOST_ERRORS]


def _format_row(name, found):
    shares = (format_percent(found[key]) for key in ("precision", "recall", "f1"))
    return (name, *shares, found["count"])


def draw_confusion(scores, folder):
    """Draws the confusion matrix into `folder`; gives the picture's name, or None without one."""
    if not getattr(scores, "confusion", None):
        return None
    confusion_map(scores.confusion, title="Confusion matrix", path=folder / PICTURE)
    return PICTURE
