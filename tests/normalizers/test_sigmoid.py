import numpy as np
import pytest

from keras_attention import normalizers
from tests.normalizers import definition


def test_the_length_is_the_number_of_visible_keys():
    """Use masks with one column for all keys, or one row for all queries."""
    scores = np.zeros((1, 1, 3, 7), "float32")
    causal = np.tri(3, 7, dtype=bool)
    weights = np.asarray(normalizers.Sigmoid("-log_length")(scores, causal))[0, 0]
    np.testing.assert_allclose(weights[:, 0], [1 / 2, 1 / 3, 1 / 4], rtol=1e-6)
    queries = np.array([True, False, True])[:, None]
    weights = np.asarray(normalizers.Sigmoid("-log_length")(scores, queries))[0, 0]
    np.testing.assert_allclose(weights, np.where(queries, 1 / 8, np.zeros((3, 7))), rtol=1e-6)


def test_without_a_mask_the_length_is_the_number_of_keys():
    weights = normalizers.Sigmoid("-log_length")(np.zeros((2, 7), "float32"))
    np.testing.assert_allclose(weights, np.full((2, 7), 1 / 8), rtol=1e-6)


def test_a_weight_does_not_depend_on_other_keys():
    scores = definition.scores()
    alone = np.asarray(normalizers.Sigmoid()(scores[..., :1]))
    np.testing.assert_allclose(normalizers.Sigmoid()(scores)[..., :1], alone, rtol=1e-6)


@pytest.mark.parametrize("bias", ["log_length", None, float("nan")])
def test_errors(bias):
    with pytest.raises(ValueError, match=rf"Sigmoid\(bias={bias!r}\)"):
        normalizers.Sigmoid(bias)
