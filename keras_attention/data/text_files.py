"""Files of texts with labels: CSV, TSV, JSON lines, and folders with a file for each text."""

import csv
import functools
import json
import pathlib

from keras_attention.data.lines import broken, read_lines
from keras_attention.data.parts import read_parts
from keras_attention.data.texts import Text, Texts

SEPARATORS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*SEPARATORS, ".jsonl")


def from_text_files(
    train=None,
    dev=None,
    test=None,
    *,
    text_column="text",
    label_column="label",
    dev_fraction=0.1,
    seed=0,
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
        text_column, label_column: str, the names of the columns, or of the keys in JSON.
        dev_fraction: float, the share of train that becomes dev where no dev file is given.
        seed: int, which texts those are.

    Returns:
        A `Texts`.

    A broken line is a ValueError with the file, the line number and what is wrong; so is a text or
    a label that is empty.

    Example:

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
    read = functools.partial(read_texts, text_column=text_column, label_column=label_column)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test})
    return Texts.from_lists(**parts, dev_fraction=dev_fraction, seed=seed)


def read_texts(path, text_column="text", label_column="label"):
    """The texts of one file or folder, as a list of `Text`. See `from_text_files`."""
    path = pathlib.Path(path)
    columns = (text_column, label_column)
    if path.is_dir():
        texts = _folder(path)
    elif (suffix := kind(path)) == ".jsonl":
        texts = [_of_object(path, n, line, columns) for n, line in read_lines(path) if line.strip()]
    elif suffix:
        texts = _table(path, SEPARATORS[suffix], columns)
    else:
        raise ValueError(
            f"{path} is no file of texts: expected a folder, or a name that ends in "
            f"{', '.join(SUFFIXES)}, gzipped (.gz) or not."
        )
    if not texts:
        raise ValueError(f"{path} holds no text.")
    return texts


def kind(path):
    """`.csv`, `.tsv` or `.jsonl`, as the name of a file says, or None."""
    suffixes = pathlib.Path(path).suffixes
    last = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    return last if last in SUFFIXES else None


def _table(path, separator, columns):
    quoting = csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE
    lines = (line + "\n" for _, line in read_lines(path))
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    header, texts = None, []
    try:
        for row in reader:
            error = functools.partial(broken, path, reader.line_num)
            if header is None:
                header, where = row, [_find(row, column, error) for column in columns]
            elif len(row) not in (0, len(header)):
                raise error(f"found {len(row)} fields where the first row has {len(header)}")
            elif row and any(field.strip() for field in row):
                texts.append(_text(*(row[k] for k in where), error))
    except csv.Error as problem:
        raise broken(path, reader.line_num, f"no CSV: {problem}") from problem
    return texts


def _find(header, column, error):
    if column not in header:
        raise error(f"no column {column!r}; the first row names {', '.join(header)}")
    return header.index(column)


def _of_object(path, number, line, columns):
    error = functools.partial(broken, path, number)
    try:
        content = json.loads(line)
    except ValueError as problem:
        raise error(f"no JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise error(f"expected an object, found {line[:40]!r}")
    if missing := [column for column in columns if column not in content]:
        raise error(f"no {missing[0]!r}; the object has {', '.join(content)}")
    text, label = (content[column] for column in columns)
    label = str(label) if isinstance(label, int) and not isinstance(label, bool) else label
    for name, value in zip(columns, (text, label), strict=True):
        if not isinstance(value, str):
            raise error(f"{name!r} is {json.dumps(value)[:40]}: expected a string")
    return _text(text, label, error)


def _text(text, label, error):
    text, label = text.strip(), label.strip()
    if not text or not label:
        raise error(f"the {'label' if text else 'text'} is empty")
    return Text(text, label)


def _folder(path):
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    if not folders:
        raise ValueError(f"{path} has no folder in it: expected one for each label.")
    return [
        _text("\n".join(line for _, line in read_lines(file)), folder.name, _in(file))
        for folder in folders
        for file in sorted(folder.glob("*.txt"))
    ]


def _in(file):
    return lambda what: ValueError(f"{file}: {what}.")
