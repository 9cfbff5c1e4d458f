"""Texts with any number of labels each: in memory, from files, and as batches."""

import collections
import functools
import pathlib
import typing
import warnings

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import SUFFIXES, UTF_8, find_suffix, read_columns
from keras_attention.data.splits import read_parts
from keras_attention.data.tokenizers.vocabulary import sort_labels

OTHER_SEPARATORS = ";|"  # that files have between labels where they have no comma


class MultiLabelText(typing.NamedTuple):
    """A text and its labels: a str, and a tuple of different str, which may be empty."""

    text: str
    labels: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, labels=None, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of (text, labels).

        Without `dev`, a part of train becomes it.

        Args:
            labels: as in `Text.collect`.

        ```python
        import keras_attention as ka

        train = [ka.data.MultiLabelText("what a joy!", ("joy", "surprise")), ("so so", ())]
        data = ka.data.MultiLabelText.collect(train, dev_fraction=0)
        assert data.labels == ("joy", "surprise") and data.train[1].labels == ()
        ```
        """
        train, dev, test = parts = [[_check(*one) for one in part] for part in (train, dev, test)]
        if labels is None:
            labels = sort_labels(name for part in parts for one in part for name in one.labels)
        if any(parts) and not labels:
            raise ValueError("None of the texts has a label: expected a label, or labels=.")
        options = {"labels": tuple(labels), "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)


def _check(text, labels):
    """Return a `MultiLabelText`, whose labels differ."""
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
    encoding=UTF_8,
    on_error="raise",
):
    """Texts and their labels from files; the end of the name says what is in one.

    - `.csv`: the first row names the columns; fields may be quoted and hold line breaks.
    - `.tsv`: the same with tabs; nothing is quoted, a quotation mark is text.
    - `.jsonl`: an object on each line; its labels are a list of strings, or of whole numbers, which
      are taken as they are written.

    In CSV and TSV the labels of a text are in one field, with a separator between them, or as a
    list that JSON or Python writes, such as `['joy', 'surprise']`; an empty field, or list, is a
    text without a label. Files may be gzipped and named `.csv.gz`. Where no
    field has a comma, and parts of labels between `;` or `|` are those of other labels as well, a
    warning asks for the separator.

    Args:
        train, dev, test: a path, a list of paths, or None.
        text_column, label_column: str, the names of the columns, or of the keys in JSON; or ints,
            which count columns from 0 where no row names them.
        separator: str, between labels.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `MultiLabelText`.

    A broken line is a ValueError with the file, the line number and what is wrong.

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "comments.csv"
    path.write_text('text,labels\\nWhat a joy!,"joy,surprise"\\nSo so.,\\n')
    data = ka.data.from_multi_label_files(test=path)
    assert data.test[0] == ka.data.MultiLabelText("What a joy!", ("joy", "surprise"))
    ```
    """
    if not isinstance(separator, str) or not separator:
        raise ValueError(f"separator={separator!r}: expected what stands between two labels.")
    read = functools.partial(
        read_multi_label_texts,
        text_column=text_column,
        label_column=label_column,
        separator=separator,
        encoding=encoding,
    )
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    return MultiLabelText.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_multi_label_texts(
    path, text_column="text", label_column="labels", separator=",", encoding=UTF_8, *, problems=None
):
    """Return the texts of one file, a list of `MultiLabelText`. See `from_multi_label_files`."""
    path = pathlib.Path(path)
    if not find_suffix(path):
        raise ValueError(
            f"{path} is no file of texts with lists of labels: expected a name that ends in "
            f"{', '.join(SUFFIXES)}, gzipped (.gz) or not."
        )
    rows = read_columns(path, (text_column, label_column), encoding, separator, problems=problems)
    broken = [label for _, labels in rows for label in labels if not label.isprintable()]
    if broken:
        raise ValueError(f"{path}: the label {broken[0][:40]!r} holds a line break or the like.")
    if separator == "," and find_suffix(path) != ".jsonl":
        _check_commas(path, [labels for _, labels in rows])
    return [_check(*row) for row in rows]


def _check_commas(path, rows):
    """Warns of tuples of labels that no comma splits, and another mark would."""
    if any(len(labels) > 1 for labels in rows):
        return
    names = {label for labels in rows for label in labels}
    for mark in OTHER_SEPARATORS:
        parts = {name: {part.strip() for part in name.split(mark)} for name in names}
        count = collections.Counter(
            part for names_of_row in parts.values() for part in names_of_row
        )
        shared = (name for name in names if mark in name and max(map(count.get, parts[name])) > 1)
        if (name := min(shared, default=None)) is not None:
            warnings.warn(
                f"{path}: no row has a comma between labels, and {name[:40]!r} may be several: "
                f"then write commas, or say separator={mark!r}.",
                stacklevel=2,
            )
            return
