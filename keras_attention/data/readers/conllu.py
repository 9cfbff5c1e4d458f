"""Reads the words in CoNLL-U files (https://universaldependencies.org/format.html).

The library `conllu` returns the same words and tags for valid files, as a test checks. However, it
accepts lines without columns, words without a form and IDs out of order, and its errors name
neither file nor line. It parses the column `feats`, which this package uses as a tag. It also takes
five times as long.
"""

import functools
import re

from keras_attention.data.readers.tables import line_error, read_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_NO_WORD = re.compile(r"\d+-\d+|\d+\.\d+")


def read_words(path, read_word, problems, encoding="utf-8"):
    """Read a CoNLL-U file, and return its sentences as lists of the results of `read_word`.

    Words are the lines whose ID is an integer. Multiword tokens (`3-4`) and empty nodes (`5.1`) are
    left out. Raise a ValueError if the file has no sentences.

    Args:
        path: path of the file, gzipped or not.
        read_word: function that converts a line. Its arguments are the ten columns, and a function
            from a message to an error about this line.
        problems: `Problems`, which notes the first broken line of each sentence.
        encoding: str, the name of the encoding in Python.
    """
    sentences, lines = [], []
    # The last sentence may not be followed by an empty line.
    for number, line in [*read_lines(path, encoding), (None, "")]:
        if not line.strip():
            with problems.note():
                words = []
                for word_number, word_line in lines:
                    error = functools.partial(line_error, path, word_number)
                    if values := _split_word(word_line, len(words) + 1, error):
                        words.append(read_word(values, error))
                sentences += [words] if words else []
            lines = []
        elif not line.startswith("#"):
            lines.append((number, line))
    if not sentences and not problems:
        raise ValueError(f"{path} holds no sentence.")
    return sentences


def _split_word(line, expected, error):
    """Split the line of a word into columns. Return None for multiword tokens and empty nodes.

    `expected` is the ID that the word must have. `error` is a function from a message to an error.
    """
    values = line.split("\t")
    if len(values) != len(COLUMNS):
        raise error(
            f"expected {len(COLUMNS)} columns separated by tabs, found {len(values)}: {line[:60]!r}"
        )
    identity, form = values[:2]
    if _NO_WORD.fullmatch(identity):
        return None
    if not (identity.isascii() and identity.isdigit()):
        raise error(f"{identity!r} is not an ID: expected an integer, 3-4 or 5.1")
    if identity.lstrip("0") != str(expected):
        raise error(f"expected the word with ID {expected}, found ID {identity[:20]}")
    if not form:
        raise error("the word (FORM, column 2) is empty")
    return values
