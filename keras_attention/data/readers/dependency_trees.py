"""Sentences with their dependency trees: in memory, from CoNLL-U files and TFDS, as batches."""

import functools
import typing

from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import UTF_8
from keras_attention.data.readers.conllu import COLUMNS, read_words
from keras_attention.data.readers.tfds_builder import (
    find_splits,
    find_tfds_builder,
    iterate_features,
    prepare_builder,
)
from keras_attention.data.splits import read_parts
from keras_attention.files.extras import import_tfds

HEAD, RELATION = COLUMNS.index("head"), COLUMNS.index("deprel")


class DependencyTree(typing.NamedTuple):
    """The words of a sentence, and for each its head and its relation to it: three tuples.

    A head is the number of a word, counted from 1, or 0 for the root of the tree, which one word
    has.
    """

    tokens: tuple
    heads: tuple
    relations: tuple

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of trees. Without `dev`, a part of train becomes it.

        Its labels are the relations of all parts, sorted.
        """
        train, dev, test = parts = [
            [check_tree(cls(*map(tuple, tree))) for tree in part] for part in (train, dev, test)
        ]
        labels = tuple(sorted({name for part in parts for tree in part for name in tree.relations}))
        options = {"labels": labels, "dev_fraction": dev_fraction, "seed": seed}
        return DataSet.from_parts(cls, train, dev, test, **options)


def check_tree(tree):
    """Return the tree as given; a ValueError where its heads make none."""
    if reason := explain_no_tree(tree.heads):
        raise ValueError(f"{' '.join(tree.tokens)[:60]!r}: {reason}.")
    if not len(tree.tokens) == len(tree.heads) == len(tree.relations):
        raise ValueError(f"{' '.join(tree.tokens)[:60]!r}: expected a head and a relation a word.")
    return tree


def explain_no_tree(heads):
    """Return why heads, ints from 0 to the number of words, make no tree; None where they do.

    ```python
    from keras_attention.data.readers.dependency_trees import explain_no_tree

    assert explain_no_tree([2, 0]) is None
    assert explain_no_tree([2, 1]) == "0 words have the head 0: a tree has one root"
    assert explain_no_tree([0, 3, 2]) == "the heads of word 2 go round in a circle"
    ```
    """
    if outside := [head for head in heads if not 0 <= head <= len(heads)]:
        return f"the head {outside[0]} is none of 0 to {len(heads)}"
    if (roots := sum(head == 0 for head in heads)) != 1:
        return f"{roots} words have the head 0: a tree has one root"
    leading_to_root = {0}  # words that lead to the root
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
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding=UTF_8, on_error="raise"
):
    """Dependency trees from CoNLL-U files (https://universaldependencies.org/format.html).

    Words are the lines whose ID is an integer, HEAD and DEPREL their columns 7 and 8.

    Args:
        train, dev, test: a path, a list of paths, or None; gzipped files are read as well.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `DependencyTree`.

    A broken line, or a sentence whose heads make no tree, is a ValueError with the file and what
    is wrong.

    ```python
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "tiny.conllu"
    rows = [("1", "Dogs", *"____", "2", "nsubj"), ("2", "bark", *"____", "0", "root")]
    path.write_text("".join("\\t".join([*row, "_", "_"]) + "\\n" for row in rows) + "\\n")
    (tree,) = ka.data.from_conllu_trees(test=path).test
    assert tree.heads == (2, 0) and tree.relations == ("nsubj", "root")
    ```
    """
    read = functools.partial(read_conllu_trees, encoding=encoding)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    return DependencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_conllu_trees(path, encoding=UTF_8, *, problems=None):
    """Return the trees of one CoNLL-U file, as a list of `DependencyTree`.

    See `from_conllu_trees`.
    """
    sentences, trees = read_words(path, _read_word, problems, encoding), []
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
    """Dependency trees of TensorFlow Datasets, such as `"universal_dependencies/en_ewt"`.

    Args:
        name: str, as in the TFDS catalogue: a set with the features tokens, head and deprel.
        splits, dev_fraction, seed, data_dir: as in `from_tfds`.

    Returns:
        A `DataSet` of `DependencyTree`. Multiword tokens and empty nodes are left out: they are no
        words.

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
    builder = prepare_builder(tfds, builder, name)
    parts = {
        part: _read_split(builder, words) if words else []
        for part, words in find_splits(builder, name, splits).items()
    }
    return DependencyTree.collect(**parts, dev_fraction=dev_fraction, seed=seed)


def _read_split(builder, split):
    names = getattr(builder.info.features["deprel"].feature, "names", None)
    trees = []
    for example in iterate_features(builder, ("tokens", "head", "deprel"), split):
        rows = [
            (token.decode("utf-8"), int(head), names[name] if names else name.decode("utf-8"))
            for token, head, name in zip(*example, strict=True)
            if head.isdigit()
        ]
        if rows:
            trees.append(DependencyTree(*zip(*rows, strict=True)))
    return trees
