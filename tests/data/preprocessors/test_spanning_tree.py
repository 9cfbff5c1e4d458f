"""The best tree: compared with all trees, also with many equal scores."""

import itertools
import sys

import numpy as np
import pytest

from keras_attention.data.preprocessors.spanning_tree import find_tree
from keras_attention.data.readers.dependency_trees import explain_no_tree


def find_by_trying(scores):
    """Return the greatest sum of scores over all trees."""
    count = len(scores)
    trees = itertools.product(range(count + 1), repeat=count)
    return max(
        sum(scores[i][head] for i, head in enumerate(heads))
        for heads in trees
        if explain_no_tree(heads) is None
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(8))
def test_tree_has_the_greatest_score_of_all(count, seed):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(count, count + 1)) * 10.0 ** random.integers(-3, 4)
    heads = find_tree(scores)
    assert explain_no_tree(heads) is None
    score = sum(scores[i][head] for i, head in enumerate(heads))
    assert score == pytest.approx(find_by_trying(scores))


def test_tree_has_one_root():
    """Search a tree where each word has its greatest score with the root."""
    scores = np.zeros((4, 5))
    scores[:, 0] = 50
    assert find_tree(scores).count(0) == 1


def test_words_are_not_their_own_heads():
    scores = np.zeros((3, 4))
    scores[np.arange(3), np.arange(3) + 1] = 9
    assert explain_no_tree(find_tree(scores)) is None


@pytest.mark.parametrize("scores", [np.zeros((3, 3)), [[np.nan, 0.0]], np.zeros(4)])
def test_find_tree_refuses_invalid_arc_scores(scores):
    with pytest.raises(ValueError, match=r"arc_scores of shape .*expected finite numbers"):
        find_tree(scores)


def test_cycles_of_heads_need_networkx(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert find_tree([[1.0, 0.0]]) == [0]
    with pytest.raises(ImportError, match=r"pip install 'keras-attention-zoo\[nlp\]'"):
        find_tree([[1.0, 0.0, 9.0], [3.0, 9.0, 0.0]])
