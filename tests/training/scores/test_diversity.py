"""Distinct n-grams, and the most common text."""

import pytest

import keras_attention as ka


@pytest.mark.parametrize("size", [1, 2, 3])
def test_distinct_equals_the_definition(size):
    texts = ["a b c", "a b", "c", "b c a b c"]
    grams = [" ".join(t.split()[k : k + size]) for t in texts for k in range(len(t.split()))]
    grams = [gram for gram in grams if len(gram.split()) == size]
    actual = ka.training.compute_distinct(texts, size)
    assert actual == pytest.approx(len(set(grams)) / len(grams))


def test_no_texts_score_zero():
    assert ka.training.compute_distinct([], 1) == ka.training.compute_distinct(["a"], 2) == 0.0
    assert ka.training.compute_repetition([]) == 0.0


def test_repetition_counts_the_most_common_text():
    assert ka.training.compute_repetition(["a", "b", "a", "a"]) == 0.75
