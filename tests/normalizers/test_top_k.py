import numpy as np
import pytest
import tensorflow as tf

from keras_attention import normalizers
from tests.normalizers import definition


def test_only_the_highest_get_weight():
    weights = np.asarray(normalizers.TopK(3)(definition.scores()))
    assert np.all(np.count_nonzero(weights, axis=-1) == 3)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_ties_are_all_kept():
    scores = np.array([[2.0, 1.0, 1.0, 1.0, 0.0]], "float32")
    weights = np.asarray(normalizers.TopK(2)(scores))
    assert np.count_nonzero(weights) == 4 and weights[0, 1] == weights[0, 3] and weights[0, 4] == 0


def test_masked_keys_take_no_place():
    scores, mask = (
        np.array([[5.0, 3.0, 2.0, 1.0]], "float32"),
        np.array([[False, True, True, True]]),
    )
    weights = np.asarray(normalizers.TopK(2)(scores, mask))
    assert np.array_equal(weights > 0, [[False, True, True, False]])


@pytest.mark.parametrize("k", [3, 100])
def test_a_length_that_is_known_only_when_it_runs(k):
    normalizer = normalizers.TopK(k)
    run = tf.function(normalizer, input_signature=[tf.TensorSpec((None, None))], autograph=False)
    for width in (1, 2, 7):
        scores = np.random.default_rng(0).normal(size=(5, width)).astype("float32")
        np.testing.assert_allclose(run(scores), normalizer(scores), atol=1e-6)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_errors(k):
    with pytest.raises(ValueError, match=rf"TopK\(k={k!r}\).*whole number"):
        normalizers.TopK(k)
