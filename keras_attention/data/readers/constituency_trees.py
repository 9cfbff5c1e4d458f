"""Sentences with their constituency trees: in memory, from treebank files, as batches."""

import functools

import numpy as np

from keras_attention.core.tree_ids import CLOSE, EACH, END, FIRST_LABEL, START
from keras_attention.data.readers.bracketed_trees import (
    ConstituencyTree,
    build_tree,
    linearize_tree,
    parse_brackets,
)
from keras_attention.data.readers.columns import UTF_8, read_lines
from keras_attention.data.splits import read_parts
from keras_attention.files.io import prefix_errors


def from_bracketed_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding=UTF_8
):
    """Constituency trees from files of brackets, as the Penn Treebank has them (`.mrg`).

    Any number of trees, over one line or several. Of labels the category is read, `NP` of
    `NP-SBJ-1`, and empty elements are left out: see `parse_brackets`.

    Args:
        train, dev, test: a path, a list of paths, or None; gzipped files are read as well.
        dev_fraction, seed, encoding: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `ConstituencyTree`.

    A file whose brackets are no trees is a ValueError with the file, the line and what is wrong.

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "tiny.mrg"
    path.write_text("( (S (NP-SBJ (NNS Dogs))\\n (VP (VBP bark))))\\n")
    data = ka.data.from_bracketed_files(test=path)
    assert str(data.test[0]) == "(S (NP (NNS Dogs)) (VP (VBP bark)))"
    assert data.labels == ("(NP", "(S", "(VP", "NNS", "VBP")
    ```
    """
    read = functools.partial(read_bracketed_trees, encoding=encoding)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test})
    return ConstituencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


def read_bracketed_trees(path, encoding=UTF_8):
    """Return the trees of one file, as a list of `ConstituencyTree`. See `from_bracketed_files`."""
    text = "\n".join(line for _, line in read_lines(path, encoding))
    with prefix_errors(path):
        trees = parse_brackets(text)
        if not trees:
            raise ValueError("it holds no tree: expected brackets, (S (NP (NNS Dogs)) ...)")
    return trees


def count_spare_constituents(tree):
    """Return how many constituents of a tree open beyond two for each word before them, at most."""
    opened = words = most = 0
    for name in linearize_tree(tree):
        opened += name.startswith("(")
        words += name != ")" and not name.startswith("(")
        most = max(most, opened - EACH * words)
    return most


def encode_tree(tree, labels):
    """Target ids int32 of a tree for `ka.models.constituency_parser`, from the begin id to the end.

    Args:
        labels: `Labels`, as those of `ConstituencyTree.collect`.
    """
    return np.array([START, *_look_up(linearize_tree(tree), labels), END], "int32")


def _look_up(names, labels):
    ids = {name: FIRST_LABEL + i for i, name in enumerate(labels.names)} | {")": CLOSE}
    if unknown := [name for name in names if name not in ids]:
        raise ValueError(
            f"A tree has the label {unknown[0]!r}, which is not among the labels: "
            f"{', '.join(labels.names)}."
        )
    return [ids[name] for name in names]


def decode_tree(ids, labels, tokens):
    """Return the tree over `tokens` of target ids behind the begin id, up to the end id.

    Raises:
        ValueError: the ids are no tree over exactly these words.
    """
    ids = [int(i) for i in ids]
    if END not in ids:
        raise ValueError("the ids have no end")
    names = [")" if i == CLOSE else labels.names[i - FIRST_LABEL] for i in ids[: ids.index(END)]]
    return build_tree(names, tokens)
