"""Text with one label each."""

import pathlib
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.tables import (
    find_suffix,
    name_error,
    read_columns,
    read_lines,
)
from keras_attention.data.splits import read_parts
from keras_attention.data.tokenizers.vocabulary import sort_labels


class Text(typing.NamedTuple):
    """A text and its label, both str."""

    text: str
    label: str

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, labels=None, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (text, label) for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. `labels` are the names of the labels in the order of their ids. None sorts the
        labels in all splits. Labels that are integers are sorted by value.
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
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `Text` from files with a text and its label in each row.

    - `.csv`: the first row names the columns. Fields may be quoted and may contain line breaks.
    - `.tsv`: the same with tabs, but without quoting. Quotation marks are part of the text.
    - `.jsonl`: an object on each line. A label may be an integer.
    - a folder: it contains one folder for each label with a `.txt` file for each text, as for
      `keras.utils.text_dataset_from_directory`.

    Files may be gzipped and named `.csv.gz`. Raise a ValueError with file and line number for a
    broken line, an empty text or an empty label.

    Args:
        train, dev, test: a path, a list of paths, or None.
        text_column, label_column: str, the names of the columns, or the keys in JSON. In a file
            without column names, ints that count from 0.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python: `"cp1252"`, `"utf-16"`, ...
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("reviews.csv")
    path.write_text('label,text\\ngood,"clever, warm"\\nbad,dull\\n')
    data = ka.data.from_text_files(test=path)
    assert data.test[0] == ka.data.Text("clever, warm", "good") and data.labels == ("bad", "good")
    ```
    """
    columns = {"text_column": text_column, "label_column": label_column}
    parts = read_parts(read_texts, train, dev, test, on_error, **columns, encoding=encoding)
    return Text.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_texts(path, text_column="text", label_column="label", encoding="utf-8", *, problems=None):
    """Read one file or folder of labeled texts, and return a list of `Text`.

    `text_column` and `label_column` are the names or indices of two columns. Errors are collected
    in `problems`, a `Problems`. If it is None, they are raised together as one error. `encoding` is
    the name of the encoding in Python.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        texts = _folder(path, problems, encoding)
    elif find_suffix(path):
        columns = text_column, label_column
        texts = [Text(*row) for row in read_columns(path, columns, encoding, problems=problems)]
    else:
        raise name_error(path, "text", ", or a folder")
    if not texts and not problems:
        raise ValueError(f"{path} has no text.")
    if broken := [label for _, label in texts if not label.isprintable()]:
        raise ValueError(f"{path}: the label {broken[0][:40]!r} has a line break or the like.")
    return texts


def _folder(path, problems, encoding):
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    if not folders:
        raise ValueError(f"{path} has no folder in it: expected one for each label.")
    files = [(file, folder.name) for folder in folders for file in sorted(folder.glob("*.txt"))]
    if not files:
        deeper = [folder for folder in folders if any(folder.glob("*/*.txt"))]
        hint = f". {deeper[0]} has such folders: read that one?" if deeper else "."
        expected = "expected .txt files in a folder for each label"
        raise ValueError(f"{path} has no text: {expected}{hint}")

    def read(file, label):
        text = "\n".join(line for _, line in read_lines(file, encoding)).strip()
        if not text:
            raise ValueError(f"{file}: the text is empty.")
        return Text(text, label)

    return problems.read_each(read, files)
