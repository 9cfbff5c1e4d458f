import numpy as np
import pytest
from keras import ops

from keras_attention import scores
from tests.scores import definition


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_squared_distance_equals_the_definition(scale):
    definition.assert_is(
        lambda: scores.SquaredDistance(scale),
        lambda score: lambda q, k, n: -scale * np.sum((q - k) ** 2),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_near_neighbours_have_different_scores_in_half_precision(dtype):
    """Use distances below the rounding errors of products in half precision."""
    random = np.random.default_rng(0)
    query = ops.cast(5 + random.normal(size=(1, 3, 1, 64)), dtype)
    key = query + ops.cast(0.1 * random.normal(size=(1, 3, 1, 64)), dtype)
    expected = definition.table(lambda q, k, n: -np.sum((q - k) ** 2), query, key)
    near = np.eye(3, dtype=bool)[None, None]
    assert np.all(expected[near] > -2)
    scores_of_keys = definition.array(scores.SquaredDistance()(query, key))
    np.testing.assert_allclose(scores_of_keys[near], expected[near], rtol=0.01)


def test_the_gradient_at_distance_zero_is_zero():
    query, _ = definition.tensors()
    score = scores.SquaredDistance()
    _, (gradient,) = definition.gradients(
        lambda: ops.sum(score(query, query) * np.eye(5, dtype="float32")), query
    )
    np.testing.assert_allclose(gradient, np.zeros(query.shape), atol=1e-5)


def test_errors():
    with pytest.raises(ValueError, match=r"SquaredDistance\(scale=0\)"):
        scores.SquaredDistance(0)
