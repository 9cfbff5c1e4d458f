"""`confusion_map`: which classes a model takes for which others, as a picture."""

import numpy as np

from keras_attention.visualization.figure import COLORS, list_fonts, new_figure, save_figure

CELL, SMALLEST, LARGEST = 0.32, 2.4, 14.0  # inches: one class; the limits of the matrix
NUMBERED = 20  # classes, at most, whose cells have numbers
LONGEST = 24  # characters of a class that are shown


def confusion_map(confusion, labels=None, *, title=None, path=None):
    """Draw a confusion matrix. Returns the matplotlib figure.

    Each row is a true class, and each column a predicted one. The color is the share of the row, so
    that rare classes are as visible as frequent ones. With up to 20 classes the cells show their
    counts.

    Args:
        confusion: (L, L) counts, with rows of true and columns of predicted classes, or a dict,
            label -> predicted label -> count, as the `"confusion"` of `Task.evaluate`.
        labels: L strings. None for those of the dict, or numbers.
        title, path: as for `attention_map`.

    Raises:
        ValueError: shapes that do not fit together.  ImportError: matplotlib is missing.

    ```python
    import keras_attention as ka

    counts = {"ham": {"ham": 970, "spam": 3}, "spam": {"ham": 9, "spam": 136}}
    figure = ka.visualization.confusion_map(counts)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["ham", "spam"]
    ```
    """
    counts, labels = _read_counts(confusion, labels)
    size = len(labels)
    inches = min(max(size * CELL, SMALLEST), LARGEST)
    figure = new_figure(inches + 2.4, inches + 2.0 + 0.3 * bool(title), title)
    axis = figure.add_subplot()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axis.imshow(shares, vmin=0.0, vmax=1.0, cmap=COLORS)
    step = -(-size * 12 // int(inches * 100))  # a label of size 7 is 0.12 inches high
    ticks, families = np.arange(0, size, step), list_fonts()
    names = [str(labels[k])[:LONGEST] for k in ticks]
    axis.set_xticks(ticks, labels=names, fontsize=7, rotation=90)
    axis.set_yticks(ticks, labels=names, fontsize=7)
    for text in (*axis.get_xticklabels(), *axis.get_yticklabels()):
        text.set_parse_math(False)
        text.set_fontfamily(families)
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    for row, column in np.argwhere(counts > 0) if size <= NUMBERED else ():
        color = "black" if shares[row, column] > 0.5 else "white"
        number = f"{counts[row, column]:g}"
        axis.text(column, row, number, ha="center", va="center", fontsize=7, color=color)
    figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02).set_label("share of the row")
    return save_figure(figure, path)


def _read_counts(confusion, labels):
    """Return counts (L, L) and L labels, from either form."""
    if isinstance(confusion, dict):
        if labels is None:
            predicted = (name for row in confusion.values() for name in row)
            labels = list(dict.fromkeys([*confusion, *predicted]))
        rows = [[confusion.get(a, {}).get(b, 0) for b in labels] for a in labels]
        confusion = np.array(rows)
    counts = np.asarray(confusion, "float64")
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
        raise ValueError(
            f"confusion of shape {counts.shape}: expected counts (L, L), or a dict of dicts. Give "
            "the rows of true and the columns of predicted classes."
        )
    labels = list(range(len(counts))) if labels is None else list(labels)
    if len(labels) != len(counts):
        raise ValueError(
            f"{len(labels)} labels for {len(counts)} classes: give one label for each class."
        )
    return counts, labels
