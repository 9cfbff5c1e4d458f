"""CoNLL-U: the files of Universal Dependencies."""

import functools
import re

from keras_attention.data.lines import broken, read_lines
from keras_attention.data.tagged import Sentence, from_files

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_NO_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def from_conllu(train=None, dev=None, test=None, *, column="upos", dev_fraction=0.1, seed=0):
    """Tagged sentences from CoNLL-U files (https://universaldependencies.org/format.html).

    Words are the lines whose ID is an integer: multiword tokens (`3-4`) and empty nodes (`5.1`)
    are left out.

    Args:
        train, dev, test: a path, a list of paths, or None; gzipped files are read as well.
        column: str, the column that is the tag: `"upos"`, `"xpos"`, `"feats"`, `"deprel"`, ...
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

    path = pathlib.Path(tempfile.mkdtemp()) / "tiny.conllu"
    rows = [("1", "Dogs", "dog", "NOUN"), ("2", "bark", "bark", "VERB")]
    lines = ["\\t".join([*row, *["_"] * 6]) + "\\n" for row in rows]
    path.write_text("# text = Dogs bark\\n" + "".join(lines) + "\\n")
    data = ka.data.from_conllu(test=path)
    assert data.test[0].tokens == ("Dogs", "bark") and data.labels == ("NOUN", "VERB")
    ```
    """
    _index(column)
    read = functools.partial(read_conllu, column=column)
    paths = {"train": train, "dev": dev, "test": test}
    return from_files(read, paths, dev_fraction=dev_fraction, seed=seed)


def read_conllu(path, column="upos"):
    """The sentences of one CoNLL-U file, as a list of `Sentence`. See `from_conllu`."""
    index = _index(column)
    sentences, words = [], []
    for number, line in read_lines(path):
        if not line.strip():
            if words:
                sentences.append(Sentence(*zip(*words, strict=True)))
            words = []
        elif not line.startswith("#"):
            words.extend(
                _word(line, index, len(words) + 1, functools.partial(broken, path, number))
            )
    if words:  # a last sentence without the empty line after it
        sentences.append(Sentence(*zip(*words, strict=True)))
    if not sentences:
        raise ValueError(f"{path} holds no sentence.")
    if index != COLUMNS.index("upos") and all(set(s.tags) == {"_"} for s in sentences):
        raise ValueError(f"{path} has nothing in its column {column}. Choose another column.")
    return sentences


def _word(line, index, expected, error):
    """[(form, tag)] of one line, or [] if it is no word. `error(what)` makes the error."""
    values = line.split("\t")
    if len(values) != len(COLUMNS):
        raise error(
            f"expected {len(COLUMNS)} columns separated by tabs, found {len(values)}: {line[:60]!r}"
        )
    identity, form, tag = values[0], values[1], values[index]
    if _NO_WORD.fullmatch(identity):
        return []
    if not (identity.isascii() and identity.isdigit()):
        raise error(f"{identity!r} is no ID: expected an integer, 3-4 or 5.1")
    if int(identity) != expected:
        raise error(f"expected the word with ID {expected}, found ID {identity}")
    if not form:
        raise error("the word (FORM, column 2) is empty")
    if not tag or (tag == "_" and COLUMNS[index] == "upos"):
        raise error(f"the word {form!r} has no {COLUMNS[index]} (column {index + 1} is {tag!r})")
    return [(form, tag)]


def _index(column):
    if column not in COLUMNS[2:]:
        raise ValueError(f"column={column!r}: expected one of {', '.join(COLUMNS[2:])}.")
    return COLUMNS.index(column)
