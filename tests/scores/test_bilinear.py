import numpy as np
import pytest

from keras_attention import scores
from tests.scores import definition


def rule_of(score):
    kernel = definition.array(score.kernel)
    return lambda q, k, n: q @ kernel[n] @ k


@pytest.mark.parametrize("key_width", [11, 13])
def test_bilinear_equals_the_definition(key_width):
    definition.assert_is(scores.Bilinear, rule_of, key_width)


@pytest.mark.parametrize("key_width", [11, 13])
def test_fold_equals_the_call(key_width):
    definition.assert_fold_is_call(scores.Bilinear(), key_width)


def test_fold_builds_the_weights():
    query, key = definition.tensors(key_width=13)
    score = scores.Bilinear()
    score.fold(query, key)
    assert score.kernel.shape == (3, 11, 13)


@pytest.mark.parametrize("name, least", [("bilinear", 0.7), ("concat", 0.3), ("additive", 0.3)])
@pytest.mark.parametrize("heads", [2, 16])
def test_scores_start_with_variance_near_one(name, least, heads):
    """Check several numbers of heads, which Keras's initializers would count in the fan."""
    random = np.random.default_rng(0)
    query = random.normal(size=(2, 32, heads, 64)).astype("float32")
    key = random.normal(size=(2, 32, heads, 48)).astype("float32")
    assert least < np.var(scores.get(name)(query, key)) < 1.4


def test_the_kernel_initializer_is_used():
    score = scores.Bilinear(kernel_initializer="ones")
    score(*definition.tensors())
    assert np.all(score.kernel == 1)
    assert score.get_config()["kernel_initializer"]["class_name"] == "Ones"
