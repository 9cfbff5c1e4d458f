"""Text with any number of labels."""

import collections
import pathlib
import typing
import warnings

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.tables import find_suffix, name_error, read_columns
from keras_attention.data.splits import read_parts
from keras_attention.data.tokenizers.vocabulary import sort_labels

OTHER_SEPARATORS = ";|"  # common separators other than the comma


class MultiLabelText(typing.NamedTuple):
    """A text (a str) and its labels (a tuple of distinct str, which may be empty)."""

    text: str
    labels: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, labels=None, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (text, labels) for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. `labels` are the names of the labels in the order of their ids. None sorts the
        labels in all splits. Raise a ValueError if no text has a label, and `labels` is None.
        """
        train, dev, test = parts = [[_check(*one) for one in part] for part in (train, dev, test)]
        if labels is None:
            labels = sort_labels(name for part in parts for one in part for name in one.labels)
        if any(parts) and not labels:
            raise ValueError("No text has a label: expected a label, or labels=.")
        options = {"labels": tuple(labels), "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)


def _check(text, labels):
    """Make a `MultiLabelText`. Raise a ValueError if one of its labels occurs twice."""
    if isinstance(labels, str):
        raise ValueError(f"{labels[:40]!r} is one label: give each text a list of labels.")
    labels = tuple(labels)
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ValueError(f"{text[:40]!r} has the label {twice[0][:40]!r} more than once.")
    return MultiLabelText(text, labels)


def from_multi_label_files(
    train=None,
    dev=None,
    test=None,
    *,
    text_column="text",
    label_column="labels",
    separator=",",
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `MultiLabelText` from files with a text and its labels in each row.

    Files are `.csv`, `.tsv` or `.jsonl`, gzipped or not, as in `ka.data.from_text_files`. In CSV
    and TSV, the labels are in one field, joined by a separator, or as a JSON or Python list such as
    `['joy', 'surprise']`. In JSON lines, they are a list of strings or integers. Text without
    labels has an empty field or list.

    If no field contains a comma, but splitting at another common separator would produce labels
    that occur in several fields, a warning suggests that separator.

    Args:
        train, dev, test: a path, a list of paths, or None.
        text_column, label_column: str, the names of the columns, or the keys in JSON. In a file
            without column names, ints that count from 0.
        separator: str, the separator between labels.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("comments.csv")
    path.write_text('text,labels\\nWhat a joy!,"joy,surprise"\\nSo so.,\\n')
    data = ka.data.from_multi_label_files(test=path)
    assert data.test[0] == ka.data.MultiLabelText("What a joy!", ("joy", "surprise"))
    ```
    """
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator={separator!r}: expected the str between two labels.")
    columns = {"text_column": text_column, "label_column": label_column, "separator": separator}
    read = read_multi_label_texts
    parts = read_parts(read, train, dev, test, on_error, **columns, encoding=encoding)
    return MultiLabelText.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_multi_label_texts(
    path,
    text_column="text",
    label_column="labels",
    separator=",",
    encoding="utf-8",
    *,
    problems=None,
):
    """Read one table of texts and labels, and return a list of `MultiLabelText`.

    `text_column` and `label_column` are the names or indices of two columns. `separator` is the str
    between two labels. Errors are collected in `problems`, a `Problems`. If it is None, they are
    raised together as one error. `encoding` is the name of the encoding in Python.
    """
    path = pathlib.Path(path)
    if not find_suffix(path):
        raise name_error(path, "text with lists of labels")
    rows = read_columns(path, (text_column, label_column), encoding, separator, problems=problems)
    broken = [label for _, labels in rows for label in labels if not label.isprintable()]
    if broken:
        raise ValueError(f"{path}: the label {broken[0][:40]!r} has a line break or the like.")
    if separator == "," and find_suffix(path) != ".jsonl":
        _check_commas(path, [labels for _, labels in rows])
    return [_check(*row) for row in rows]


def _check_commas(path, rows):
    """Warn if commas split no row of labels, but another separator would split some."""
    if any(len(labels) > 1 for labels in rows):
        return
    names = {label for labels in rows for label in labels}
    for mark in OTHER_SEPARATORS:
        parts = {name: {part.strip() for part in name.split(mark)} for name in names}
        count = collections.Counter(part for row_parts in parts.values() for part in row_parts)
        shared = (name for name in names if mark in name and max(map(count.get, parts[name])) > 1)
        if (name := min(shared, default=None)) is not None:
            warnings.warn(
                f"{path}: no row has a comma between labels, and {name[:40]!r} may be several: "
                f"then write commas, or give separator={mark!r}.",
                stacklevel=2,
            )
            return
