"""Pairs of source and target text, such as translations."""

import pathlib
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.tables import (
    find_name,
    find_suffix,
    line_error,
    name_error,
    read_columns,
    read_lines,
    read_rows,
)
from keras_attention.data.splits import read_parts


class Pair(typing.NamedTuple):
    """A source text, and the target text that a model must generate for it, both str."""

    source: str
    target: str

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (source, target) for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it.
        """
        parts = [[cls(*one) for one in part] for part in (train, dev, test)]
        return DataSet.from_parts(cls, *parts, dev_fraction=dev_fraction, seed=seed)


def from_pair_files(
    train=None,
    dev=None,
    test=None,
    *,
    text_column="source",
    label_column="target",
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `Pair` from files, such as sentences and their translations.

    Raise a ValueError with file and line number for a missing partner, an empty line between
    others, or a broken line. Skipping such a line silently would misalign all later pairs.

    Args:
        train, dev, test: the files of one split, gzipped or not, or None:

            - `(source, target)`, a tuple of two paths: aligned text files. Line n of one file
              corresponds to line n of the other.
            - a path that ends in `.tsv`, `.csv` or `.jsonl`.
            - a path that ends in `.txt`, with a tab between source and target, as from
              manythings.org. Text after a second tab is ignored.
            - a list of the above, whose pairs are joined.
        text_column, label_column: str, the names of the columns of source and target, or the keys
            in JSON. In a file without column names, ints that count from 0.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    pathlib.Path("test.de").write_text("Guten Tag!\\nDanke.\\n")
    pathlib.Path("test.en").write_text("Hello!\\nThanks.\\n")
    data = ka.data.from_pair_files(test=("test.de", "test.en"))
    assert data.test[1] == ka.data.Pair("Danke.", "Thanks.")
    ```
    """
    # A tuple means two aligned files here. In other readers it is a list of files.
    paths = [[path] if isinstance(path, tuple) else path for path in (train, dev, test)]
    columns = {"text_column": text_column, "label_column": label_column}
    parts = read_parts(read_pairs, *paths, on_error, **columns, encoding=encoding)
    return Pair.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_pairs(
    path, text_column="source", label_column="target", encoding="utf-8", *, problems=None
):
    """Read one file, or two files (sources, targets), and return a list of `Pair`.

    `text_column` and `label_column` are the names or indices of the columns of sources and targets.
    Errors are collected in `problems`, a `Problems`. If it is None, they are raised together as one
    error. `encoding` is the name of the encoding in Python.
    """
    columns = text_column, label_column
    if isinstance(path, tuple):
        return _read_aligned(path, problems, encoding)
    if find_suffix(path) is None and ".txt" in pathlib.Path(path).suffixes:
        return _read_tabs(path, columns, problems, encoding)
    if find_suffix(path) is None:
        raise name_error(path, "pairs", ", or a tuple of two aligned text files, (source, target)")
    rows = read_columns(path, columns, encoding, problems=problems)
    return [Pair(*row) for row in rows]


def _read_tabs(path, columns, problems, encoding):
    """Read pairs from a file with tabs, whose first row may name its columns."""
    rows = list(read_rows(path, "\t", encoding))
    if not rows:
        raise ValueError(f"{path} has no row.")
    names = [find_name(column, rows[0][1]) for column in columns]
    indices = columns if isinstance(columns[0], int) else (0, 1)
    if isinstance(columns[0], str) and None not in names:
        indices, rows = [rows[0][1].index(name) for name in names], rows[1:]
    pairs = []
    for number, row in rows:
        with problems.note():
            if len(row) <= max(indices):
                raise line_error(path, number, "expected a source, a tab and a target")
            source, target = (row[k].strip() for k in indices)
            if not source or not target:
                raise line_error(path, number, f"the {'target' if source else 'source'} is empty")
            pairs.append(Pair(source, target))
    return pairs


def _read_aligned(paths, problems, encoding):
    if len(paths) != 2:
        raise ValueError(f"{paths!r}: expected two paths, (source, target).")
    sides = ([line.strip() for _, line in read_lines(path, encoding)] for path in paths)
    # A newline at the end of a file does not start another line.
    source, target = (lines if lines[-1] else lines[:-1] for lines in sides)
    if len(source) != len(target):
        raise ValueError(
            f"{paths[0]} has {len(source)} lines and {paths[1]} has {len(target)}: line n of one "
            "must belong to line n of the other."
        )
    if not source:
        raise ValueError(f"{paths[0]} has no line.")
    pairs = []
    for number, pair in enumerate(map(Pair, source, target), start=1):
        with problems.note():
            if not all(pair):
                path, partner = (paths[1], pair.source) if pair.source else (paths[0], pair.target)
                raise line_error(
                    path, number, f"the line is empty, its partner is {partner[:40]!r}"
                )
            pairs.append(pair)
    return pairs
