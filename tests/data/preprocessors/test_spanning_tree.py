"""The best tree is found: against every tree that there is, and where many scores are equal."""

import itertools
import sys

import numpy as np
import pytest

from keras_attention.data.preprocessors.spanning_tree import find_tree
from keras_attention.data.readers.dependency_trees import explain_no_tree


def find_by_trying(scores):
    """The greatest sum of scores of a tree."""
    count = len(scores)
    trees = itertools.product(range(count + 1), repeat=count)
    return max(
        sum(scores[i][head] for i, head in enumerate(heads))
        for heads in trees
        if explain_no_tree(heads) is None
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_best_of_all_trees(count, seed):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(count, count + 1)) * 10.0 ** random.integers(-3, 4)
    heads = find_tree(scores)
    assert explain_no_tree(heads) is None
    found = sum(scores[i][head] for i, head in enumerate(heads))
    assert found == pytest.approx(find_by_trying(scores))


def test_a_second_root_is_never_taken():
    """Though each word likes the root best."""
    scores = np.zeros((4, 5))
    scores[:, 0] = 50
    assert find_tree(scores).count(0) == 1


def test_no_word_is_its_own_head():
    scores = np.zeros((3, 4))
    scores[np.arange(3), np.arange(3) + 1] = 9
    assert explain_no_tree(find_tree(scores)) is None


@pytest.mark.parametrize("scores", [np.zeros((3, 3)), [[np.nan, 0.0]], np.zeros(4)])
def test_find_tree_refuses_invalid_arc_scores(scores):
    with pytest.raises(ValueError, match=r"arc_scores of shape .*expected finite numbers"):
        find_tree(scores)


def test_networkx_is_needed_where_heads_go_round(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert find_tree([[1.0, 0.0]]) == [0]
    with pytest.raises(ImportError, match=r"pip install 'keras-attention-zoo\[nlp\]'"):
        find_tree([[1.0, 0.0, 9.0], [3.0, 9.0, 0.0]])
