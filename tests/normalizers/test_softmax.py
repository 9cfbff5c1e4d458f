import numpy as np
import pytest

from keras_attention import normalizers


def test_plus_one_gives_low_rows_no_weight_and_does_not_overflow():
    scores = np.array([[-200.0, -300.0], [1e4, 1e4], [0.0, -1e4]], "float32")
    weights = normalizers.Softmax(plus_one=True)(scores)
    np.testing.assert_allclose(weights, [[0, 0], [0.5, 0.5], [0.5, 0]], atol=1e-6)


def test_the_cap_bounds_scores_but_not_the_mask():
    """Mask keys, which a cap after the mask would show."""
    scores, mask = np.array([[1e4, 0.0, 1e4]], "float32"), np.array([[True, True, False]])
    weights = np.asarray(normalizers.Softmax(soft_cap=5.0)(scores, mask))
    assert weights[0, 2] == 0
    assert weights[0, 1] == pytest.approx(1 / (1 + np.exp(5)), rel=1e-5)


def test_temperature_divides_after_the_cap():
    weights = normalizers.Softmax(temperature=5.0, soft_cap=5.0)(np.array([[1e4, 0.0]], "float32"))
    np.testing.assert_allclose(np.asarray(weights)[0, 1], 1 / (1 + np.e), rtol=1e-5)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf"), "hot", True])
def test_temperature_must_be_above_zero(temperature):
    with pytest.raises(ValueError, match=rf"Softmax\(temperature={temperature!r}\).*above 0"):
        normalizers.Softmax(temperature=temperature)


def test_other_errors():
    with pytest.raises(ValueError, match=r"Softmax\(soft_cap=0.0\).*above 0"):
        normalizers.Softmax(soft_cap=0.0)
    with pytest.raises(ValueError, match=r"Softmax\(plus_one=2\)"):
        normalizers.Softmax(plus_one=2)
