from keras_attention import scores
from tests.scores import definition


def test_definition():
    definition.assert_is(scores.Dot, lambda score: lambda q, k, n: q @ k)


def test_fold():
    definition.assert_fold_is_call(scores.Dot())
