"""Distinct n-grams by a definition in a line, and the commonest text."""

import pytest

import keras_attention as ka


@pytest.mark.parametrize("size", [1, 2, 3])
def test_distinct(size):
    texts = ["a b c", "a b", "c", "b c a b c"]
    grams = [" ".join(t.split()[k : k + size]) for t in texts for k in range(len(t.split()))]
    grams = [gram for gram in grams if len(gram.split()) == size]
    found = ka.training.compute_distinct(texts, size)
    assert found == pytest.approx(len(set(grams)) / len(grams))


def test_nothing():
    assert ka.training.compute_distinct([], 1) == ka.training.compute_distinct(["a"], 2) == 0.0
    assert ka.training.compute_repetition([]) == 0.0


def test_commonest():
    assert ka.training.compute_repetition(["a", "b", "a", "a"]) == 0.75
