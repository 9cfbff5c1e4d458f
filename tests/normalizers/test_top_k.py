import numpy as np
import pytest
import tensorflow as tf

from keras_attention import normalizers
from tests.normalizers import definition


def test_only_the_k_highest_scores_get_weight():
    weights = np.asarray(normalizers.TopK(3)(definition.scores()))
    assert np.all(np.count_nonzero(weights, axis=-1) == 3)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_all_ties_get_weight():
    scores = np.array([[2.0, 1.0, 1.0, 1.0, 0.0]], "float32")
    weights = np.asarray(normalizers.TopK(2)(scores))
    assert np.count_nonzero(weights) == 4 and weights[0, 1] == weights[0, 3] and weights[0, 4] == 0


def test_masked_keys_are_not_among_the_k():
    scores, mask = (
        np.array([[5.0, 3.0, 2.0, 1.0]], "float32"),
        np.array([[False, True, True, True]]),
    )
    weights = np.asarray(normalizers.TopK(2)(scores, mask))
    assert np.array_equal(weights > 0, [[False, True, True, False]])


@pytest.mark.parametrize("k", [3, 100])
def test_the_length_may_be_unknown_in_a_graph(k):
    normalizer = normalizers.TopK(k)
    run = tf.function(normalizer, input_signature=[tf.TensorSpec((None, None))], autograph=False)
    for width in (1, 2, 7):
        scores = np.random.default_rng(0).normal(size=(5, width)).astype("float32")
        np.testing.assert_allclose(run(scores), normalizer(scores), atol=1e-6)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_errors(k):
    with pytest.raises(ValueError, match=rf"TopK\(k={k!r}\).*whole number"):
        normalizers.TopK(k)
