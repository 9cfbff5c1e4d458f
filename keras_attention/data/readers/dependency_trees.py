"""Sentences with dependency trees, from CoNLL-U files and TensorFlow Datasets."""

import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers import conllu
from keras_attention.data.readers.tfds_builder import (
    find_tfds_builder,
    read_splits,
    read_words,
)
from keras_attention.data.splits import read_parts
from keras_attention.files.extras import import_tfds

HEAD, RELATION = conllu.COLUMNS.index("head"), conllu.COLUMNS.index("deprel")


class DependencyTree(typing.NamedTuple):
    """The words of a sentence, the head of each word, and the word's relation to the head.

    Each field is a tuple with a value for each word. A word depends on its head. The head is the
    position of a word, counted from 1, or 0 for the root of the tree. Exactly one word is the root.
    The readers of `ka.data` refuse other trees.
    """

    tokens: tuple
    heads: tuple
    relations: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of trees for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. The labels are the relations in all splits, sorted.
        """
        train, dev, test = parts = [
            [check_tree(cls(*map(tuple, tree))) for tree in part] for part in (train, dev, test)
        ]
        labels = tuple(sorted({name for part in parts for tree in part for name in tree.relations}))
        options = {"labels": labels, "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)


def check_tree(tree):
    """Return a `DependencyTree` unchanged. Raise a ValueError if its heads are not a tree."""
    if reason := explain_no_tree(tree.heads):
        raise ValueError(f"{' '.join(tree.tokens)[:60]!r}: {reason}.")
    if not len(tree.tokens) == len(tree.heads) == len(tree.relations):
        raise ValueError(f"{' '.join(tree.tokens)[:60]!r}: expected a head and a relation a word.")
    return tree


def explain_no_tree(heads):
    """Return why the heads of a sentence do not form a tree, a str, or None if they do.

    `heads` are ints from 0 to the number of words, as in `DependencyTree`.

    ```python
    from keras_attention.data.readers.dependency_trees import explain_no_tree

    assert explain_no_tree([2, 0]) is None
    assert explain_no_tree([2, 1]) == "0 words have the head 0: a tree has one root"
    assert explain_no_tree([0, 3, 2]) == "the heads of word 2 go round in a circle"
    ```
    """
    if outside := [head for head in heads if not 0 <= head <= len(heads)]:
        return f"the head {outside[0]} is not one of 0 to {len(heads)}"
    if (roots := sum(head == 0 for head in heads)) != 1:
        return f"{roots} words have the head 0: a tree has one root"
    leading_to_root = {0}
    for word in range(1, len(heads) + 1):
        path = []
        while word not in leading_to_root:
            if word in path:
                return f"the heads of word {word} go round in a circle"
            path.append(word)
            word = heads[word - 1]
        leading_to_root.update(path)
    return None


def from_conllu_trees(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding="utf-8", on_error="raise"
):
    """Read a `DataSet` of `DependencyTree` from CoNLL-U files.

    https://universaldependencies.org/format.html explains the format. Words are the lines whose ID
    is an integer. Heads and relations are in columns 7 and 8, HEAD and DEPREL. Raise a ValueError
    that names the file if a line is broken, or if the heads of a sentence are not a tree.

    Files may be gzipped.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("tiny.conllu")
    rows = [("1", "Dogs", *"____", "2", "nsubj"), ("2", "bark", *"____", "0", "root")]
    path.write_text("".join("\\t".join([*row, "_", "_"]) + "\\n" for row in rows) + "\\n")
    (tree,) = ka.data.from_conllu_trees(test=path).test
    assert tree.heads == (2, 0) and tree.relations == ("nsubj", "root")
    ```
    """
    parts = read_parts(read_conllu_trees, train, dev, test, on_error, encoding=encoding)
    return DependencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_conllu_trees(path, encoding="utf-8", *, problems=None):
    """Read one CoNLL-U file, and return a list of `DependencyTree`, one for each sentence.

    Multiword tokens and empty nodes are left out. If `problems` is a `Problems`, it notes broken
    sentences, which are then missing from the list. If it is None, all errors are raised together
    as one error. `encoding` is the name of the encoding in Python.
    """
    sentences, trees = conllu.read_words(path, _read_word, problems, encoding), []
    for number, words in enumerate(sentences, start=1):
        tree = DependencyTree(*zip(*words, strict=True))
        with problems.note():
            if reason := explain_no_tree(tree.heads):
                raise ValueError(
                    f"{path}: sentence {number}, {' '.join(tree.tokens)[:60]!r}: {reason}."
                )
            trees.append(tree)
    return trees


def _read_word(values, error):
    form, head, relation = values[1], values[HEAD], values[RELATION]
    if not (head.isascii() and head.isdigit()) or len(head) > 9:
        raise error(f"the word {form!r} has the head {head[:20]!r} (column 7): expected an integer")
    if relation in ("", "_"):
        raise error(f"the word {form!r} has no relation (column 8 is {relation!r})")
    return form, int(head), relation


def from_tfds_trees(name, *, splits=None, dev_fraction=0.1, seed=0, data_dir=None):
    """Read a `DataSet` of `DependencyTree` from TFDS, such as `"universal_dependencies/en_ewt"`.

    Multiword tokens and empty nodes are left out.

    Args:
        name: str, the name in the TFDS catalog of a dataset with the features tokens, head and
            deprel.
        splits: dict that maps `"train"`, `"dev"` and `"test"` to splits in TFDS's notation. None
            uses the official splits.
        dev_fraction: float, the share of train that becomes dev if the validation split is missing.
        seed: int, for the random choice of these examples.
        data_dir: path of the folder with TFDS's data. None uses TFDS's default.

    Raises:
        ValueError: the dataset does not have these features.

    Example (downloads the data):

        trees = ka.data.from_tfds_trees("universal_dependencies/en_ewt")
        trees.train[0].heads
    """
    tfds = import_tfds("from_tfds_trees")
    builder = find_tfds_builder(tfds, name, data_dir)
    if missing := [x for x in ("tokens", "head", "deprel") if x not in builder.info.features]:
        raise ValueError(
            f"{name} has no feature {missing[0]}: expected a treebank, such as "
            f"universal_dependencies/en_ewt. Its features are {', '.join(builder.info.features)}."
        )
    parts = read_splits(tfds, builder, name, splits, _read_split)
    return DependencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


def _read_split(builder, split):
    sentences = read_words(builder, split, "tokens", "deprel", "head")
    return [DependencyTree(words, heads, names) for words, names, heads in sentences]
