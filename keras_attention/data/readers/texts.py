"""Texts with a label each: in memory, from files, and as batches."""

import functools
import pathlib
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import (
    SUFFIXES,
    UTF_8,
    find_suffix,
    read_columns,
    read_lines,
)
from keras_attention.data.splits import read_parts
from keras_attention.data.tokenizers.vocabulary import sort_labels


class Text(typing.NamedTuple):
    """A text and its label: two str."""

    text: str
    label: str

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, labels=None, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of (text, label).

        Without `dev`, a part of train becomes it.

        Args:
            labels: names of the labels in the order of their ids. None sorts those that are there,
                whole numbers by their value.
        """
        train, dev, test = parts = [[cls(*one) for one in part] for part in (train, dev, test)]
        if labels is None:
            labels = sort_labels(one.label for part in parts for one in part)
        options = {"labels": tuple(labels), "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)


def from_text_files(
    train=None,
    dev=None,
    test=None,
    *,
    text_column="text",
    label_column="label",
    dev_fraction=0.1,
    seed=0,
    encoding=UTF_8,
    on_error="raise",
):
    """Texts and their labels from files; the end of the name says what is in one.

    - `.csv`: the first row names the columns; fields may be quoted and hold line breaks.
    - `.tsv`: the same with tabs; nothing is quoted, a quotation mark is text.
    - `.jsonl`: an object on each line. A label that is a number is taken as it is written.
    - a folder: a folder in it for each label, and in that a `.txt` file for each text (as
      `keras.utils.text_dataset_from_directory` has it).

    Files may be gzipped and named `.csv.gz`.

    Args:
        train, dev, test: a path, a list of paths, or None.
        text_column, label_column: str, the names of the columns, or of the keys in JSON; or ints,
            which count columns from 0 where no row names them.
        dev_fraction: float, the share of train that becomes dev where no dev file is given.
        seed: int, which texts those are.
        encoding: str, of the files, as Python names it: `"cp1252"`, `"utf-16"`, ...
        on_error: `"raise"` names all broken examples in one error, `"skip"` leaves them out with a
            warning that says how many.

    Returns:
        A `DataSet` of `Text`.

    A broken line is a ValueError with the file, the line number and what is wrong; so is a text or
    a label that is empty.

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "reviews.csv"
    path.write_text('label,text\\ngood,"clever, warm"\\nbad,dull\\n')
    data = ka.data.from_text_files(test=path)
    assert data.test[0] == ka.data.Text("clever, warm", "good") and data.labels == ("bad", "good")
    ```
    """
    read = functools.partial(
        read_texts, text_column=text_column, label_column=label_column, encoding=encoding
    )
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    return Text.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_texts(path, text_column="text", label_column="label", encoding=UTF_8, *, problems=None):
    """Return the texts of one file or folder, as a list of `Text`. See `from_text_files`."""
    path = pathlib.Path(path)
    if path.is_dir():
        texts = _folder(path, problems, encoding)
    elif find_suffix(path):
        columns = text_column, label_column
        texts = [Text(*row) for row in read_columns(path, columns, encoding, problems=problems)]
    else:
        raise ValueError(
            f"{path} is no file of texts: expected a folder, or a name that ends in "
            f"{', '.join(SUFFIXES)}, gzipped (.gz) or not."
        )
    if not texts and not problems:
        raise ValueError(f"{path} holds no text.")
    if broken := [label for _, label in texts if not label.isprintable()]:
        raise ValueError(f"{path}: the label {broken[0][:40]!r} holds a line break or the like.")
    return texts


def _folder(path, problems, encoding):
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    if not folders:
        raise ValueError(f"{path} has no folder in it: expected one for each label.")
    files = [(file, folder.name) for folder in folders for file in sorted(folder.glob("*.txt"))]
    if not files:
        deeper = [folder for folder in folders if any(folder.glob("*/*.txt"))]
        hint = f"; {deeper[0]} has such folders: is that the one to read?" if deeper else "."
        raise ValueError(
            f"{path} holds no text: expected .txt files in a folder for each label{hint}"
        )
    texts = []
    for file, label in files:
        with problems.note():
            text = "\n".join(line for _, line in read_lines(file, encoding)).strip()
            if not text:
                raise ValueError(f"{file}: the text is empty.")
            texts.append(Text(text, label))
    return texts
