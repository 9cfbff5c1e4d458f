"""Sentences with a tag for every token, from CoNLL and CoNLL-U files."""

import functools
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.conllu import COLUMNS, read_words
from keras_attention.data.readers.tables import line_error, read_lines
from keras_attention.data.splits import add_dev, read_parts


class Sentence(typing.NamedTuple):
    """A sentence: `tokens` and `tags`, two tuples of str of the same length."""

    tokens: tuple
    tags: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of (tokens, tags) for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. The labels are the tags in all splits, with `O` first and the rest sorted.
        """
        train, dev, test = parts = [[cls(*one) for one in part] for part in (train, dev, test)]
        tags = {tag for part in parts for sentence in part for tag in sentence.tags}
        labels = tuple(sorted(tags, key=lambda tag: (tag != "O", tag)))
        train, dev = add_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
        return DataSet(cls, train, dev, test, labels)


def from_conll(
    train=None,
    dev=None,
    test=None,
    *,
    token_column=0,
    label_column=-1,
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `Sentence` from files with a token and its tags on each line.

    Columns are separated by tabs or, in a file without tabs, by spaces. Sentences end with a blank
    line. The `-DOCSTART-` lines of CoNLL-2003 are skipped. Raise a ValueError with file and line
    number for a broken line.

    Args:
        train, dev, test: a path, a list of paths, or None. Files may be gzipped.
        token_column: int, the index of the token's column, starting at 0.
        label_column: int, the index of the tag's column. -1 is the last column.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("tiny.conll")
    path.write_text("Ada\\tB-person\\nsmiles\\tO\\n\\t\\nHi\\tO\\n")
    data = ka.data.from_conll(test=path)
    assert [len(sentence.tokens) for sentence in data.test] == [2, 1]
    assert data.labels == ("O", "B-person")
    ```
    """
    columns = {"token_column": token_column, "label_column": label_column}
    parts = read_parts(read_conll, train, dev, test, on_error, **columns, encoding=encoding)
    return Sentence.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_conll(path, token_column=0, label_column=-1, encoding="utf-8", *, problems=None):
    """Read one file in the format of `from_conll`, and return a list of `Sentence`.

    `token_column` and `label_column` are the indices of two columns, -1 for the last. Tags are not
    changed. If `problems` is a `Problems`, it notes broken sentences, which are then missing from
    the list. If it is None, all errors are raised together as one error. `encoding` is the name of
    the encoding in Python.
    """
    sentences, rows, width = [], [], None
    lines = list(read_lines(path, encoding))
    separator = "\t" if any("\t" in line.strip() for _, line in lines) else None
    for number, line in [*lines, (len(lines) + 1, "")]:
        # Not `not line`: in WNUT-17 the line between two sentences may contain a tab.
        if not line.strip() or line.startswith("-DOCSTART-"):
            with problems.note():
                if pairs := [_row(*row, width, token_column, label_column) for row in rows]:
                    sentences.append(Sentence(*zip(*pairs, strict=True)))
            rows = []
            continue
        values = line.split(separator)
        width = width or len(values)
        rows.append((values, functools.partial(line_error, path, number)))
    if not sentences and not problems:
        raise ValueError(f"{path} holds no sentence.")
    return sentences


def _row(values, error, width, token_column, label_column):
    """Return (token, tag) from `values`, the columns of a line, which must be `width` in number.

    `token_column` and `label_column` are indices. `error` is a function from a message to an error.
    """
    if len(values) < 2:
        raise error(f"expected a token and its tag in columns, found only {values[0]!r}")
    if len(values) != width:
        raise error(f"found {len(values)} columns where the lines before have {width}: {values}")
    for name, column in (("token_column", token_column), ("label_column", label_column)):
        if not -width <= column < width:
            raise error(f"{name}={column}: the line has {width} columns")
    token, tag = values[token_column].strip(), values[label_column].strip()
    if not token or not tag:
        raise error(f"the {'tag' if token else 'token'} is empty: {values}")
    return token, tag


def from_conllu(
    train=None,
    dev=None,
    test=None,
    *,
    column="upos",
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `Sentence` from CoNLL-U files.

    https://universaldependencies.org/format.html explains the format. Words are the lines whose ID
    is an integer. Multiword tokens (`3-4`) and empty nodes (`5.1`) are skipped. Raise a ValueError
    with file and line number for a broken line.

    Args:
        train, dev, test: a path, a list of paths, or None. Files may be gzipped.
        column: str, the column that contains the tag: `"upos"`, `"xpos"`, `"feats"`, `"deprel"`,
            ...
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("tiny.conllu")
    rows = [("1", "Dogs", "dog", "NOUN"), ("2", "bark", "bark", "VERB")]
    lines = ["\\t".join([*row, *["_"] * 6]) + "\\n" for row in rows]
    path.write_text("# text = Dogs bark\\n" + "".join(lines) + "\\n")
    data = ka.data.from_conllu(test=path)
    assert data.test[0].tokens == ("Dogs", "bark") and data.labels == ("NOUN", "VERB")
    ```
    """
    _index(column)
    options = {"column": column, "encoding": encoding}
    parts = read_parts(read_conllu, train, dev, test, on_error, **options)
    return Sentence.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_conllu(path, column="upos", encoding="utf-8", *, problems=None):
    """Read one CoNLL-U file, and return a list of `Sentence` with the tags of `column`.

    Errors are collected in `problems`, a `Problems`. If it is None, they are raised together as one
    error. `encoding` is the name of the encoding in Python.
    """
    index = _index(column)

    def read_word(values, error):
        form, tag = values[1], values[index]
        if not tag or (tag == "_" and column == "upos"):
            raise error(f"the word {form!r} has no {column} (column {index + 1} is {tag!r})")
        return form, tag

    words = read_words(path, read_word, problems, encoding)
    sentences = [Sentence(*zip(*rows, strict=True)) for rows in words]
    if sentences and column != "upos" and all(set(s.tags) == {"_"} for s in sentences):
        raise ValueError(f"{path} has nothing in its column {column}. Choose another column.")
    return sentences


def _index(column):
    if column not in COLUMNS[2:]:
        raise ValueError(f"column={column!r}: expected one of {', '.join(COLUMNS[2:])}.")
    return COLUMNS.index(column)
