"""Pairs of texts, such as translations: in memory, from files, and as batches."""

import functools
import pathlib
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import (
    SUFFIXES,
    UTF_8,
    find_name,
    find_suffix,
    line_error,
    read_columns,
    read_lines,
    read_rows,
)
from keras_attention.data.splits import read_parts


class Pair(typing.NamedTuple):
    """A text and what it is to become: two str."""

    source: str
    target: str

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of (source, target).

        Without `dev`, a part of train becomes it.

        ```python
        import keras_attention as ka

        train = [("Hallo", "Hello"), ("Welt", "World"), ("eins", "one")]
        data = ka.data.Pair.collect(train, test=[("zwei", "two")])
        assert len(data.train) == 2 and len(data.dev) == 1 and data.test[0].target == "two"
        ```
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
    encoding=UTF_8,
    on_error="raise",
):
    """Pairs of texts from files, such as sentences and their translations.

    Args:
        train, dev, test: what one part is read from, or None:

            - `(source, target)`, a tuple of two paths: aligned text files, line n of one belongs to
              line n of the other;
            - a path that ends in `.tsv`, `.csv` or `.jsonl`;
            - a path that ends in `.txt`, of a file with a tab between source and target, as those
              of manythings.org; what follows a second tab is left out;
            - a list of these, whose pairs are joined.

            Any file may be gzipped.
        text_column, label_column: str, the columns of source and target: their names in the first
            row, or the keys of the JSON objects; or ints, which count columns from 0 where no row
            names them.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `Pair`.

    A line without a partner, an empty line between others and a broken one are a ValueError with
    the file, the line number and what is wrong: a pair that is left out in silence moves all that
    follow it.

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "test.de").write_text("Guten Tag!\\nDanke.\\n")
    (folder / "test.en").write_text("Hello!\\nThanks.\\n")
    data = ka.data.from_pair_files(test=(folder / "test.de", folder / "test.en"))
    assert data.test[1] == ka.data.Pair("Danke.", "Thanks.")
    ```
    """
    read = functools.partial(
        read_pairs, text_column=text_column, label_column=label_column, encoding=encoding
    )
    paths = {"train": train, "dev": dev, "test": test}
    # A tuple is one source of pairs, and not, as elsewhere, several.
    paths = {name: [path] if isinstance(path, tuple) else path for name, path in paths.items()}
    parts = read_parts(read, paths, on_error)
    return Pair.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_pairs(path, text_column="source", label_column="target", encoding=UTF_8, *, problems=None):
    """Return the pairs of a file with columns, or of a tuple of two aligned files.

    A list of `Pair`.

    See `from_pair_files`.
    """
    columns = text_column, label_column
    if isinstance(path, tuple):
        return _read_aligned(path, problems, encoding)
    if find_suffix(path) is None and ".txt" in pathlib.Path(path).suffixes:
        return _read_tabs(path, columns, problems, encoding)
    if find_suffix(path) is None:
        raise ValueError(
            f"{path} is no file of pairs: expected a name that ends in {', '.join(SUFFIXES)}, "
            "gzipped (.gz) or not, or for two aligned text files a tuple, (source, target)."
        )
    rows = read_columns(path, columns, encoding, problems=problems)
    return [Pair(*row) for row in rows]


def _read_tabs(path, columns, problems, encoding):
    """Read the pairs of a file with tabs, whose first row may name its columns."""
    rows = list(read_rows(path, "\t", encoding))
    if not rows:
        raise ValueError(f"{path} holds no row.")
    names = [find_name(column, rows[0][1]) for column in columns]
    where = columns if isinstance(columns[0], int) else (0, 1)
    if isinstance(columns[0], str) and None not in names:
        where, rows = [rows[0][1].index(name) for name in names], rows[1:]
    pairs = []
    for number, row in rows:
        with problems.note():
            if len(row) <= max(where):
                raise line_error(path, number, "expected a source, a tab and a target")
            source, target = (row[k].strip() for k in where)
            if not source or not target:
                raise line_error(path, number, f"the {'target' if source else 'source'} is empty")
            pairs.append(Pair(source, target))
    return pairs


def _read_aligned(paths, problems, encoding):
    if len(paths) != 2:
        raise ValueError(f"{paths!r}: expected two paths, (source, target).")
    sides = ([line.strip() for _, line in read_lines(path, encoding)] for path in paths)
    # An end of line at the end of a file begins no line.
    source, target = (lines if lines[-1] else lines[:-1] for lines in sides)
    if len(source) != len(target):
        raise ValueError(
            f"{paths[0]} has {len(source)} lines and {paths[1]} has {len(target)}: line n of one "
            "must belong to line n of the other."
        )
    if not source:
        raise ValueError(f"{paths[0]} holds no line.")
    pairs = []
    for number, (one, other) in enumerate(zip(source, target, strict=True), start=1):
        with problems.note():
            if not (one and other):
                path, partner = (paths[0], other) if not one else (paths[1], one)
                problem = f"the line is empty; its partner is {partner[:40]!r}"
                raise line_error(path, number, problem)
            pairs.append(Pair(one, other))
    return pairs
