import numpy as np

from keras_attention import scores
from tests.scores import definition


def test_definition():
    definition.assert_is(scores.Dot, lambda score: lambda q, k, n: q @ k)


def test_fold():
    definition.assert_fold_is_call(scores.Dot())


def test_scaled_definition():
    definition.assert_is(scores.ScaledDot, lambda score: lambda q, k, n: q @ k / np.sqrt(len(q)))


def test_scaled_fold():
    definition.assert_fold_is_call(scores.ScaledDot())


def test_scaling_comes_before_the_product():
    """q · k = 65536 is over float16's largest number, the score is not."""
    query = key = np.full((1, 1, 1, 16384), 2.0, "float16")
    assert scores.ScaledDot()(query, key) == 512
