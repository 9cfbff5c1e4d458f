"""The words of CoNLL-U files (https://universaldependencies.org/format.html), line by line.

They are read here, and not by the library `conllu`, which gives the same words and tags for sound
files: it accepts lines without columns, words without a form and IDs out of order, its errors name
neither file nor line, it parses the features that are a tag here as text, and it takes five times
as long. A test compares the two.
"""

import functools
import re

from keras_attention.data.readers.columns import UTF_8, line_error, read_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_NO_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_words(path, read_word, problems, encoding=UTF_8):
    """Return the sentences of a file, each a list of what `read_word` gives of its words.

    Words are the lines whose ID is an integer: multiword tokens (`3-4`) and empty nodes (`5.1`)
    are left out.

    Args:
        path: the file, gzipped or not.
        read_word: function of the columns of a line, a list of ten str, and of a function that
            makes the error for that line of what is wrong in it.
        problems: `Problems`, which notes the first broken line of a sentence.
        encoding: str.

    Raises:
        ValueError: there is no sentence.
    """
    sentences, lines = [], []
    # The last sentence may have no empty line behind it.
    for number, line in [*read_lines(path, encoding), (None, "")]:
        if not line.strip():
            with problems.note():
                if words := _read_sentence(path, lines, read_word):
                    sentences.append(words)
            lines = []
        elif not line.startswith("#"):
            lines.append((number, line))
    if not sentences and not problems:
        raise ValueError(f"{path} holds no sentence.")
    return sentences


def _read_sentence(path, lines, read_word):
    """Return what `read_word` gives of the words in (number, line) of one sentence."""
    words = []
    for number, line in lines:
        error = functools.partial(line_error, path, number)
        if values := _split_word(line, len(words) + 1, error):
            words.append(read_word(values, error))
    return words


def _split_word(line, expected, error):
    """Return the columns of a word, or None of a line that is none."""
    values = line.split("\t")
    if len(values) != len(COLUMNS):
        raise error(
            f"expected {len(COLUMNS)} columns separated by tabs, found {len(values)}: {line[:60]!r}"
        )
    identity, form = values[:2]
    if _NO_WORD.fullmatch(identity):
        return None
    if not (identity.isascii() and identity.isdigit()):
        raise error(f"{identity!r} is no ID: expected an integer, 3-4 or 5.1")
    if identity.lstrip("0") != str(expected):
        raise error(f"expected the word with ID {expected}, found ID {identity[:20]}")
    if not form:
        raise error("the word (FORM, column 2) is empty")
    return values
