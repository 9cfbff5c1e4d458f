"""Tests of all normalizers: the definition, masks, empty rows, dtypes, gradients."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_attention import normalizers
from keras_attention.core import scope
from tests.normalizers import definition
from tests.normalizers.definition import EXAMPLES, SIMPLEX, B, N, S, T
from tests.tables import assert_lists

every = pytest.mark.parametrize("name", EXAMPLES)
MASKS = {
    "all": (B, N, T, S),
    "heads alike": (B, 1, T, S),
    "padding": (B, 1, 1, S),
    "queries": (B, 1, T, 1),
    "structure": (1, 1, T, S),
}


def test_there_is_an_example_of_every_normalizer():
    table = "EXAMPLES of tests/normalizers/definition.py"
    listed = [type(part) for part, _ in EXAMPLES.values()]
    assert_lists(table, listed, normalizers.NAMES.values())


@every
@pytest.mark.parametrize("shape", [None, *MASKS])
def test_weights_equal_the_definition(name, shape):
    normalizer, normalize = EXAMPLES[name]
    scores = definition.scores()
    mask = None if shape is None else definition.mask(MASKS[shape])
    expected = definition.table(normalize, scores, True if mask is None else mask)
    np.testing.assert_allclose(normalizer(scores, mask), expected, rtol=1e-5, atol=1e-5)


@every
@pytest.mark.parametrize("dtype, atol", [("float16", 1e-3), ("bfloat16", 8e-3)])
def test_half_precision_is_computed_in_float32(name, dtype, atol):
    """Compare with the weights of the rounded scores, rounded once."""
    normalizer, normalize = EXAMPLES[name]
    scores, mask = definition.scores(dtype), definition.mask()
    weights = normalizer(scores, mask)
    assert weights.dtype == dtype
    expected = definition.table(normalize, scores, mask)
    np.testing.assert_allclose(definition.array(weights), expected, rtol=atol, atol=atol)


@every
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_empty_rows_are_zero_with_zero_gradient(name, dtype):
    """Mask whole rows of small and large scores."""
    normalizer, _ = EXAMPLES[name]
    random = np.random.default_rng(0).normal(size=(B, N, T, S)).astype("float32")
    for scale, mask in ((1.0, definition.mask()), (1e4, np.zeros((1, 1, 1, S), bool))):
        scores = definition.scores(dtype, scale)
        empty = np.broadcast_to(~mask.any(-1), (B, N, T))
        assert np.all(definition.array(normalizer(scores, mask))[empty] == 0)
        gradient = definition.gradient(
            lambda x, mask=mask: ops.sum(ops.cast(normalizer(x, mask), "float32") * random),
            scores,
        )
        assert np.all(np.isfinite(gradient)) and np.all(gradient[empty] == 0)


@every
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_masked_keys_have_no_weight_and_change_no_weight(name, dtype):
    """Give masked keys much higher scores, which an added constant would not hide."""
    normalizer, normalize = EXAMPLES[name]
    mask = definition.mask()
    scores = ops.cast(np.where(mask, definition.scores(scale=3.0) - 1e4, 6e4), dtype)
    weights = definition.array(normalizer(scores, mask))
    assert np.all(weights[np.broadcast_to(~mask, weights.shape)] == 0)
    expected = definition.table(normalize, scores, mask)
    np.testing.assert_allclose(weights, expected, rtol=2e-3, atol=1e-5)


@every
def test_a_mild_mask_constant_hides_keys(name):
    """Use the constant of full int8: weights are exactly zero, or near the exact ones."""
    normalizer, normalize = EXAMPLES[name]
    scores, mask = definition.scores(), definition.mask()
    with scope.Export(mask_constant=-100.0):
        weights = np.asarray(normalizer(scores, mask))
    assert np.all(weights[np.broadcast_to(~mask, weights.shape)] == 0)
    expected = definition.table(normalize, scores, mask)
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-5)


@every
def test_gradients_equal_finite_differences(name):
    """Compare with finite differences of the definition in float64."""
    normalizer, normalize = EXAMPLES[name]
    scores, mask = definition.scores(scale=1.0), definition.mask()
    random = np.random.default_rng(2).normal(size=(B, N, T, S))
    gradient = definition.gradient(
        lambda x: ops.sum(normalizer(x, mask) * random.astype("float32")), scores
    )
    expected = np.zeros(gradient.shape)
    for row in np.ndindex(B, N, T):
        seen = np.broadcast_to(mask, gradient.shape)[row]
        if seen.any():
            expected[row][seen] = definition.slope(
                lambda z, row=row, seen=seen: normalize(z) @ random[row][seen],
                definition.array(scores)[row][seen],
            )
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)


ROWS = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=9)


@tf.function(
    input_signature=[tf.TensorSpec((None, None)), tf.TensorSpec((None, None), "bool")],
    autograph=False,
)
def of_all(scores, mask):
    """Return the weights of every normalizer for a row of any length."""
    return {name: normalizer(scores, mask) for name, (normalizer, _) in EXAMPLES.items()}


def weights_of(row, mask=None):
    row = np.array([row], "float32")
    mask = np.ones(row.shape, bool) if mask is None else np.array([mask])
    return {name: weights[0].numpy() for name, weights in of_all(row, mask).items()}


def assert_same(result, expected):
    for name in result:
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
@settings(max_examples=50)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(row, random):
    order = list(range(len(row)))
    random.shuffle(order)
    expected = {name: weights[order] for name, weights in weights_of(row).items()}
    assert_same(weights_of(np.array(row)[order]), expected)


@settings(max_examples=50)
@given(ROWS, st.integers(1, 5), st.floats(-1e4, 1e4, width=32))
def test_padding_does_not_change_weights(row, more, padding):
    by_name = weights_of(row + [padding] * more, [True] * len(row) + [False] * more)
    assert_same({name: weights[: len(row)] for name, weights in by_name.items()}, weights_of(row))


@settings(max_examples=50)
@given(ROWS, st.integers(-100, 100))
def test_rows_are_on_the_simplex(row, shift):
    """Check signs, sums and the order of weights, and that a shift of the scores changes none."""
    shifted = np.array(row, "float32") + np.float32(shift)
    row = shifted - np.float32(shift)  # as rounded by the sum
    by_name, of_shifted = weights_of(row), weights_of(shifted)
    for name in SIMPLEX:
        weights = by_name[name]
        assert np.all(weights >= 0) and weights.sum() == pytest.approx(1, abs=1e-6), name
        assert np.all(np.diff(weights[np.argsort(row, kind="stable")]) >= -1e-6), name
        np.testing.assert_allclose(of_shifted[name], weights, atol=2e-5, err_msg=name)


@every
@pytest.mark.parametrize("shape", [(S,), (T, S), (N, T, S)])
def test_scores_may_have_any_rank(name, shape):
    normalizer, normalize = EXAMPLES[name]
    scores = np.random.default_rng(3).normal(size=shape).astype("float32")
    expected = definition.table(normalize, scores)
    np.testing.assert_allclose(normalizer(scores), expected, rtol=1e-5, atol=1e-5)


def test_one_key_takes_all_weight_with_zero_gradient():
    for name in SIMPLEX:
        normalizer, _ = EXAMPLES[name]
        assert np.all(np.asarray(normalizer(np.array([[3.0]], "float32"))) == 1), name
        gradient = definition.gradient(lambda x, n=normalizer: ops.sum(n(x)), tf.ones((1, 1)))
        assert gradient == 0, name


def test_a_subclass_without_normalize_is_an_error():
    class Unfinished(normalizers.Normalizer):
        pass

    with pytest.raises(NotImplementedError, match="Unfinished.normalize"):
        Unfinished()(definition.scores())


@every
def test_weights_of_whole_numbers_are_floats(name):
    """Cast whole numbers, because as ints all weights below 1 would be 0."""
    normalizer, _ = EXAMPLES[name]
    scores = np.round(3 * definition.scores()).astype("int32")
    for mask in (None, definition.mask(MASKS["all"])):
        expected = normalizer(scores.astype("float32"), mask)
        np.testing.assert_array_equal(normalizer(scores, mask), expected)
        of_slices = normalizer.loose(scores, mask)
        np.testing.assert_array_equal(of_slices, normalizer.loose(scores.astype("float32"), mask))
