import numpy as np
import pytest

from keras_attention import scores
from tests.scores import definition


def rule_of(score):
    """Bahdanau et al., 2015, appendix A.1.2."""
    query_kernel, key_kernel, vector = map(definition.array, score.weights)
    return lambda q, k, n: vector[n] @ np.tanh(q @ query_kernel[n] + k @ key_kernel[n])


@pytest.mark.parametrize("units, key_width", [(None, 11), (5, 13), (8, 11), (19, 13)])
def test_definition(units, key_width):
    definition.assert_is(lambda: scores.Additive(units), rule_of, key_width)


def test_units_default_to_the_width_of_the_query():
    score = scores.Additive()
    score(*definition.tensors(key_width=13))
    assert [w.shape for w in score.weights] == [(3, 11, 11), (3, 13, 11), (3, 11)]
    assert [w.name for w in score.weights] == ["query_kernel", "key_kernel", "vector"]


def test_errors():
    with pytest.raises(ValueError, match=r"Additive\(units=2.5\)"):
        scores.Additive(units=2.5)
