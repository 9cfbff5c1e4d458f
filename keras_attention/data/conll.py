"""CoNLL columns: one token and its tags per line, as in CoNLL-2003 and WNUT-17."""

import functools

from keras_attention.data.lines import broken, read_lines
from keras_attention.data.tagged import Sentence, from_files


def from_conll(
    train=None,
    dev=None,
    test=None,
    *,
    token_column=0,
    label_column=-1,
    dev_fraction=0.1,
    seed=0,
):
    """Tagged sentences from files with a token and its tags on each line.

    Columns are separated by tabs or, in a file without any, by spaces. Sentences end with a line
    that is empty or blank. The `-DOCSTART-` lines of CoNLL-2003 are left out.

    Args:
        train, dev, test: a path, a list of paths, or None; gzipped files are read as well.
        token_column: int, where the token is, counted from 0.
        label_column: int, where the tag is; -1 is the last column.
        dev_fraction: float, the share of train that becomes dev where no dev file is given.
        seed: int, which sentences those are.

    Returns:
        A `Tagged`.

    A broken line is a ValueError with the file, the line number and what is wrong.

    Example:

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "tiny.conll"
    path.write_text("Ada\\tB-person\\nsmiles\\tO\\n\\t\\nHi\\tO\\n")
    data = ka.data.from_conll(test=path)
    assert [len(sentence.tokens) for sentence in data.test] == [2, 1]
    assert data.labels == ("O", "B-person")
    ```
    """
    read = functools.partial(read_conll, token_column=token_column, label_column=label_column)
    paths = {"train": train, "dev": dev, "test": test}
    return from_files(read, paths, dev_fraction=dev_fraction, seed=seed)


def read_conll(path, token_column=0, label_column=-1):
    """The sentences of one file, as a list of `Sentence`. See `from_conll`."""
    sentences, rows, width = [], [], None
    lines = list(read_lines(path))
    separator = "\t" if any("\t" in line.strip() for _, line in lines) else None
    for number, line in [*lines, (len(lines) + 1, "")]:
        # Not `not line`: in WNUT-17 the line between two sentences may hold a tab.
        if not line.strip() or line.startswith("-DOCSTART-"):
            if rows:
                sentences.append(Sentence(*zip(*rows, strict=True)))
            rows = []
            continue
        values = line.split(separator)
        width = width or len(values)
        rows.append(
            _row(values, width, token_column, label_column, functools.partial(broken, path, number))
        )
    if not sentences:
        raise ValueError(f"{path} holds no sentence.")
    return sentences


def _row(values, width, token_column, label_column, error):
    """(token, tag) of one line. `error(what)` makes the error."""
    if len(values) < 2:
        raise error(f"expected a token and its tag in columns, found only {values[0]!r}")
    if len(values) != width:
        raise error(f"found {len(values)} columns where the lines before have {width}: {values}")
    for name, column in (("token_column", token_column), ("label_column", label_column)):
        if not -width <= column < width:
            raise error(f"there is no column {name}={column}: the line has {width}")
    token, tag = values[token_column].strip(), values[label_column].strip()
    if not token or not tag:
        raise error(f"the {'tag' if token else 'token'} is empty: {values}")
    return token, tag
