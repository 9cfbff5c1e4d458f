"""Files of texts with labels: CSV, TSV, JSON lines, and folders with a file for each text."""

import functools
import pathlib

from keras_attention.data.columns import SUFFIXES, read_columns, suffix_of
from keras_attention.data.lines import read_lines
from keras_attention.data.parts import read_parts
from keras_attention.data.texts import Text, Texts


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
    if path.is_dir():
        texts = _folder(path)
    elif suffix_of(path):
        texts = [Text(*row) for row in read_columns(path, (text_column, label_column))]
    else:
        raise ValueError(
            f"{path} is no file of texts: expected a folder, or a name that ends in "
            f"{', '.join(SUFFIXES)}, gzipped (.gz) or not."
        )
    if not texts:
        raise ValueError(f"{path} holds no text.")
    return texts


def _folder(path):
    folders = sorted(child for child in path.iterdir() if child.is_dir())
    if not folders:
        raise ValueError(f"{path} has no folder in it: expected one for each label.")
    return [
        Text(_content(file), folder.name)
        for folder in folders
        for file in sorted(folder.glob("*.txt"))
    ]


def _content(file):
    text = "\n".join(line for _, line in read_lines(file)).strip()
    if not text:
        raise ValueError(f"{file}: the text is empty.")
    return text
