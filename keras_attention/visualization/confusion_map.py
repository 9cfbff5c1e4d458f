"""`confusion_map`: plots a confusion matrix, how often each class is taken for each class."""

import numpy as np

from keras_attention.visualization.figure import COLORS, list_fonts, new_figure, save_figure

CELL, SMALLEST, LARGEST = 0.32, 2.4, 14.0  # size of a class, and limits of the matrix, in inches
NUMBERED = 20  # the maximum number of classes for which cells show counts
LONGEST = 24  # maximum number of characters of a class that are shown


def confusion_map(confusion, labels=None, *, title=None, path=None):
    """Plot a confusion matrix, and return the matplotlib figure.

    Each row is a true class, and each column a predicted class. The color of a cell is its fraction
    of the row, so that rare classes are as visible as frequent classes. With up to 20 classes, the
    cells also show their counts.

    Args:
        confusion: counts (L, L), with true classes in rows and predicted classes in columns. Or a
            dict {true label: {predicted label: count}}, such as `"confusion"` in the result of
            `Task.evaluate`.
        labels: list of L strings, the names of the classes. None uses the labels of the dict, or
            indices.
        title: str, the title of the figure, or None.
        path: file to save the figure to, such as `confusion.png`, or None.

    Raises:
        ValueError: shapes do not fit together.
        ImportError: matplotlib is not installed.

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
    """Return counts (L, L) and a list of L labels, from an array or a dict."""
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
            "a row for each true class and a column for each predicted class."
        )
    labels = list(range(len(counts))) if labels is None else list(labels)
    if len(labels) != len(counts):
        raise ValueError(
            f"{len(labels)} labels for {len(counts)} classes: give one label for each class."
        )
    return counts, labels
