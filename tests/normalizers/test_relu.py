import numpy as np
import pytest

from keras_attention import normalizers


def test_the_length_is_the_number_of_visible_keys():
    scores = np.full((1, 1, 3, 7), 12.0, "float32")
    causal = np.tri(3, 7, dtype=bool)
    weights = np.asarray(normalizers.ReLU(divide_by_length=True)(scores, causal))[0, 0]
    np.testing.assert_allclose(weights[:, 0], [12, 6, 4], rtol=1e-6)
    weights = normalizers.ReLU(divide_by_length=True)(scores)
    np.testing.assert_allclose(weights, scores / 7, rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match=r"ReLU\(divide_by_length='length'\)"):
        normalizers.ReLU(divide_by_length="length")
