"""Texts with a text that matches each, such as questions and the passages that answer them."""

import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.pairs import read_pairs
from keras_attention.data.readers.tables import (
    PARAMETERS,
    find_suffix,
    has_column,
    read_columns,
)
from keras_attention.data.splits import read_parts


class MatchingTexts(typing.NamedTuple):
    """A text, a text that matches it, and perhaps a hard negative. All are str.

    A search for `text` should find `match`. A hard negative is similar to `text`, but does not
    match it. None means that there is no hard negative.
    """

    text: str
    match: str
    negative: str | None = None

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (text, match) or (text, match, negative).

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it.
        """
        parts = [[_check(one) for one in part] for part in (train, dev, test)]
        return DataSet.from_parts(cls, *parts, dev_fraction=dev_fraction, seed=seed)


def _check(texts):
    """Make a `MatchingTexts` from a tuple of two or three str."""
    texts = (texts,) if isinstance(texts, str) else tuple(texts)
    given = texts[:2] if texts[2:] == (None,) else texts
    if len(texts) not in (2, 3) or not all(isinstance(text, str) for text in given):
        raise ValueError(
            f"{texts!r:.60} has no matching text: expected (text, match) or (text, match, "
            "negative), all of them str."
        )
    return MatchingTexts(*texts)


def from_matching_files(
    train=None,
    dev=None,
    test=None,
    *,
    text_column="text",
    label_column="match",
    negative_column="negative",
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `MatchingTexts` from files with two or three columns.

    `ka.data.from_pair_files` lists the formats. A `.tsv`, `.csv` or `.jsonl` file may have a third
    column with a hard negative in each row.

    Args:
        train, dev, test: a path, a tuple of two paths of aligned text files, a list of these, or
            None.
        text_column, label_column: str, the names of the columns of texts and of matching texts, or
            the keys in JSON. In a file without column names, ints that count from 0.
        negative_column: str, the name of the column of hard negatives, if there is one. In a file
            without column names, an int, or a str for no such column.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    pathlib.Path("help.tsv").write_text("text\\tmatch\\nreset password\\tForgot your password?\\n")
    data = ka.data.from_matching_files(test="help.tsv")
    assert data.test == [ka.data.MatchingTexts("reset password", "Forgot your password?")]
    ```
    """
    paths = [[path] if isinstance(path, tuple) else path for path in (train, dev, test)]
    columns = {"text_column": text_column, "label_column": label_column}
    columns["negative_column"] = negative_column
    parts = read_parts(read_matching_texts, *paths, on_error, **columns, encoding=encoding)
    return MatchingTexts.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_matching_texts(
    path,
    text_column="text",
    label_column="match",
    negative_column="negative",
    encoding="utf-8",
    *,
    problems=None,
):
    """Read one file, or a tuple of two aligned files, and return a list of `MatchingTexts`.

    `text_column`, `label_column` and `negative_column` are the names or indices of the columns.
    Errors are collected in `problems`, a `Problems`. If it is None, they are raised together as one
    error. `encoding` is the name of the encoding in Python.
    """
    columns = text_column, label_column, negative_column
    is_table = not isinstance(path, tuple) and find_suffix(path) is not None
    if is_table and (isinstance(negative_column, int) or has_column(path, columns[2], encoding)):
        names = (*PARAMETERS, "negative_column")
        rows = read_columns(path, columns, encoding, parameters=names, problems=problems)
    else:
        rows = read_pairs(path, *columns[:2], encoding, problems=problems)
    return [MatchingTexts(*row) for row in rows]
