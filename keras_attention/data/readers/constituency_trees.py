"""Constituency trees from treebank files, and as ids for `ka.models.constituency_parser`."""

import numpy as np

from keras_attention.core.special_ids import CLOSE, EACH, END, FIRST_LABEL, START
from keras_attention.data.readers.bracketed_trees import (
    ConstituencyTree,
    build_tree,
    linearize_tree,
    parse_brackets,
)
from keras_attention.data.readers.tables import read_lines
from keras_attention.data.splits import read_parts
from keras_attention.files.io import prefix_errors


def from_bracketed_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding="utf-8"
):
    """Read a `DataSet` of `ConstituencyTree` from files in the Penn Treebank's format (`.mrg`).

    A file has any number of trees, each on one or more lines. Function tags in labels (`-SBJ`) and
    empty elements are removed, as in `parse_brackets`. Raise a ValueError with file and line for
    brackets that are not trees.

    Files may be gzipped.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("tiny.mrg")
    path.write_text("( (S (NP-SBJ (NNS Dogs))\\n (VP (VBP bark))))\\n")
    data = ka.data.from_bracketed_files(test=path)
    assert str(data.test[0]) == "(S (NP (NNS Dogs)) (VP (VBP bark)))"
    assert data.labels == ("(NP", "(S", "(VP", "NNS", "VBP")
    ```
    """
    parts = read_parts(read_bracketed_trees, train, dev, test, encoding=encoding)
    return ConstituencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


def read_bracketed_trees(path, encoding="utf-8"):
    """Read one file in the Penn Treebank's format, and return a list of `ConstituencyTree`.

    As in `from_bracketed_files`, traces and the function tags of labels (`-SBJ`) are left out.
    `encoding` is the name of the encoding in Python.
    """
    text = "\n".join(line for _, line in read_lines(path, encoding))
    with prefix_errors(path):
        trees = parse_brackets(text)
        if not trees:
            raise ValueError("expected brackets, (S (NP (NNS Dogs)) ...), found no tree")
    return trees


def count_spare_constituents(tree):
    """Count the constituents of a tree beyond two (`EACH`) for each word before them.

    A parser with a limit on this count generates only trees of limited size. The labels are read
    from left to right. The result is the maximum, over all positions, of the number of constituents
    opened so far minus `EACH` times the number of words so far, and at least 0.
    """
    opened = words = most = 0
    for name in linearize_tree(tree):
        opened += name.startswith("(")
        words += name != ")" and not name.startswith("(")
        most = max(most, opened - EACH * words)
    return most


def encode_tree(tree, labels):
    """Convert a tree to int32 ids for training the parser, with a begin id and an end id.

    `labels` are the `Labels` of `ConstituencyTree.collect`. Raise a ValueError if the tree has a
    label that is not in `labels`.
    """
    ids = {name: FIRST_LABEL + i for i, name in enumerate(labels.names)} | {")": CLOSE}
    names = linearize_tree(tree)
    if unknown := [name for name in names if name not in ids]:
        raise ValueError(
            f"A tree has the label {unknown[0]!r}, which is not among the labels: "
            f"{', '.join(labels.names)}."
        )
    return np.array([START, *(ids[name] for name in names), END], "int32")


def decode_tree(ids, labels, tokens):
    """Convert generated ids, without a begin id, to the tree over the words `tokens`.

    `labels` are `Labels`. Ids after the first end id are ignored. Raise a ValueError that explains
    why the ids are not a tree over exactly these words.
    """
    ids = [int(i) for i in ids]
    if END not in ids:
        raise ValueError("the ids have no end")
    names = [")" if i == CLOSE else labels.names[i - FIRST_LABEL] for i in ids[: ids.index(END)]]
    return build_tree(names, tokens)
