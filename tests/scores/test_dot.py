import numpy as np

from keras_attention import scores
from tests.scores import definition


def test_dot_equals_the_definition():
    definition.assert_is(scores.Dot, lambda score: lambda q, k, n: q @ k)


def test_dot_fold_equals_the_call():
    definition.assert_fold_is_call(scores.Dot())


def test_scaled_dot_equals_the_definition():
    definition.assert_is(scores.ScaledDot, lambda score: lambda q, k, n: q @ k / np.sqrt(len(q)))


def test_scaled_dot_fold_equals_the_call():
    definition.assert_fold_is_call(scores.ScaledDot())


def test_scaling_comes_before_the_product():
    """Use q · k = 65536, which float16 cannot hold, with a score that it can."""
    query = key = np.full((1, 1, 1, 16384), 2.0, "float16")
    assert scores.ScaledDot()(query, key) == 512
