import numpy as np
import pytest
from keras import ops

from keras_attention import normalizers
from tests.normalizers import definition

WIDTHS = pytest.mark.parametrize("width", [1, 2, 7, 300])
SCALES = pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])


@WIDTHS
@SCALES
def test_weights_are_optimal(width, scale):
    """Check that weights are s - τ with one τ, or zero if s is at most τ (equation 2)."""
    scores = scale * np.random.default_rng(0).normal(size=(17, width)).astype("float32")
    weights = definition.array(normalizers.Sparsemax()(scores))
    scores = definition.array(scores)
    scores -= scores.max(-1, keepdims=True)
    tau = np.max(np.where(weights > 0, scores - weights, -np.inf), -1, keepdims=True)
    np.testing.assert_allclose(weights, np.maximum(scores - tau, 0), atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_low_scores_get_exact_zeros():
    weights = normalizers.Sparsemax()(np.array([[2.0, 1.9, 0.9, -3.0]], "float32"))
    np.testing.assert_allclose(weights, [[0.55, 0.45, 0, 0]], atol=1e-6)
    assert np.count_nonzero(weights) == 2


def test_the_gradient_equals_the_papers():
    """Subtract the mean over the support from the gradient. It is zero elsewhere."""
    scores = np.array([[2.0, 1.9, 0.9, -3.0]], "float32")
    upstream = np.array([[1.0, 5.0, 7.0, 11.0]], "float32")
    gradient = definition.gradient(
        lambda x: ops.sum(normalizers.Sparsemax()(x) * upstream), ops.convert_to_tensor(scores)
    )
    np.testing.assert_allclose(gradient, [[-2, 2, 0, 0]], atol=1e-6)
