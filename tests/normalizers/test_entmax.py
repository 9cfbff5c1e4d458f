import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import normalizers
from tests.normalizers import definition

ALPHAS = [1.05, 1.2, 1.5, 1.9, 2.0, 2.5, 4.0]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("width", [1, 7, 300])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_weights_are_optimal(alpha, width, scale):
    """Check that (α - 1) s - p^(α - 1) is one τ if p > 0, and that else (α - 1) s is at most τ."""
    scores = scale * np.random.default_rng(0).normal(size=(17, width)).astype("float32")
    weights = definition.array(normalizers.Entmax(alpha)(scores))
    scores = definition.array(scores)
    scores = (alpha - 1) * (scores - scores.max(-1, keepdims=True))
    tau = -(weights.max(-1, keepdims=True) ** (alpha - 1))
    residual = np.where(weights > 0, scores - weights ** (alpha - 1) - tau, 0)
    np.testing.assert_allclose(residual, 0, atol=1e-6)
    assert np.all(scores[weights == 0] <= np.broadcast_to(tau, scores.shape)[weights == 0] + 1e-6)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_alpha_two_is_sparsemax_and_a_limit():
    scores = definition.scores()
    sparse = np.asarray(normalizers.Sparsemax()(scores))
    assert np.array_equal(normalizers.Entmax(2)(scores), sparse)
    for alpha in (1.9999, 2.0001):
        np.testing.assert_allclose(normalizers.Entmax(alpha)(scores), sparse, atol=2e-3)


def test_bisection_converges_to_the_exact_formula():
    scores = definition.scores()
    exact = np.asarray(normalizers.Entmax(1.5)(scores))
    np.testing.assert_allclose(normalizers.Entmax(1.5 + 1e-6)(scores), exact, atol=1e-5)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
@pytest.mark.parametrize("highest", [0.5, 1.9, 1.99])
def test_one_key_far_above_thousands_of_equal_keys(alpha, highest):
    """Use thousands of weights below the errors of running sums in float32."""
    random = np.random.default_rng(0)
    scores = np.append(1e-3 * random.normal(size=4000), highest / 2 / (alpha - 1))
    scores = scores.astype("float32")
    expected = definition.entmax(alpha)(scores.astype("float64"))
    weights = np.asarray(normalizers.Entmax(alpha)(scores))
    np.testing.assert_allclose(weights, expected, atol=2e-6)
    assert weights.sum(dtype="float64") == pytest.approx(1, abs=1e-5)


def test_the_limit_one_is_softmax():
    scores = definition.scores()
    soft = normalizers.Softmax()(scores)
    np.testing.assert_allclose(normalizers.Entmax(1.001)(scores), soft, atol=5e-3)


def test_larger_alphas_give_fewer_keys_weight():
    scores = 0.5 * definition.scores()
    counts = [np.count_nonzero(normalizers.Entmax(alpha)(scores)) for alpha in (1.01, 1.5, 2, 3)]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) == 4


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradient_is_finite_at_zero_weights(alpha):
    """Use α above 2, for which the derivative of the power is infinite at 0."""
    scores = ops.convert_to_tensor(np.array([[0.0, 0.0, -0.01, -50.0], [3.0] * 4], "float32"))
    upstream = np.array([[1.0, 2.0, 3.0, 4.0]], "float32")
    gradient = definition.gradient(
        lambda x: ops.sum(normalizers.Entmax(alpha)(x) * upstream), scores
    )
    assert np.all(np.isfinite(gradient)) and gradient[0, 3] == pytest.approx(0, abs=1e-8)
    np.testing.assert_allclose(gradient.sum(-1), 0, atol=1e-4)
    assert np.all(gradient[1] != 0)


@pytest.mark.parametrize("alpha", [1.5, 3.0, 6.0])
def test_the_gradient_is_exact_for_a_key_with_nearly_no_weight(alpha):
    """Use α above 2, for which p^(2 - α) is huge and multiplies a difference of near numbers."""
    scores = np.random.default_rng(0).normal(size=(999, 7)).astype("float32") * 0.3
    upstream = np.random.default_rng(1).normal(size=(999, 7)).astype("float32")
    gradient = definition.gradient(
        lambda x: ops.sum(normalizers.Entmax(alpha)(x) * upstream), ops.convert_to_tensor(scores)
    )
    weights = definition.array(normalizers.Entmax(alpha)(scores))
    seen = weights > 0
    s = np.where(seen, np.where(seen, weights, 1) ** (2 - alpha), 0)
    differences = upstream[:, :, None] - upstream[:, None].astype("float64")
    expected = np.einsum("rj,ri,rji->rj", s, s, differences) / s.sum(-1, keepdims=True)
    np.testing.assert_allclose(gradient, expected, rtol=1e-2, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 4.0])
def test_xla_gives_the_same_weights(alpha):
    """Check rows with all keys masked, because XLA may round their maximum differently."""
    normalizer, scores, mask = normalizers.Entmax(alpha), definition.scores(), definition.mask()

    def run(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            loss = ops.sum(normalizer(scores, mask) * ops.cos(scores * 0.0 + scores))
        return normalizer(scores, mask), tape.gradient(loss, scores)

    compiled = tf.function(run, jit_compile=True, autograph=False)
    for ours, theirs in zip(compiled(scores), run(scores), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_row_without_support_is_zero():
    """Use -64 as highest score, as the rounding of XLA may give."""
    from keras_attention.normalizers import entmax, sparsemax

    low = tf.fill((1, 7), -64.0)
    assert np.all(entmax._above_by_sorting(low) == 0)
    for power in (0.3, 1.3, 10.0):
        assert np.all(entmax._above_by_halving(low, power) == 0)
    assert np.all(np.isfinite(sparsemax.compute_threshold(low)))


@pytest.mark.parametrize("alpha", [1, 1.0, 0.5, float("inf"), "1.5"])
def test_errors(alpha):
    with pytest.raises(ValueError, match=rf"Entmax\(alpha={alpha!r}\).*above 1"):
        normalizers.Entmax(alpha)
