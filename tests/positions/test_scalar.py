import numpy as np
import pytest
from keras import ops

from keras_attention import positions

X = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")


@pytest.mark.parametrize("scaled", [True, False])
def test_embeddings_equal_the_definition(scaled):
    result = positions.Scalar(scaled).embed(X)
    for b in range(2):
        for p in range(5):
            for c in range(3):
                expected = X[b, p, c] + (p / 4 if scaled else p)
                assert float(result[b, p, c]) == pytest.approx(expected, abs=1e-6)


def test_a_single_token_is_at_zero():
    np.testing.assert_array_equal(positions.Scalar().embed(X[:, :1]), X[:, :1])


def test_a_slice_needs_the_length_of_the_whole():
    with pytest.raises(ValueError, match=r"Set the length: Scalar\(length=...\)"):
        positions.Scalar().embed(X[:, 2:], [2, 3, 4])
    whole = positions.Scalar().embed(X)
    part = positions.Scalar(length=5).embed(X[:, 2:], [2, 3, 4])
    np.testing.assert_allclose(part, whole[:, 2:], atol=1e-6)


def test_half_precision_counts_in_float32():
    rows = positions.Scalar().embed(ops.zeros((1, 600, 1), "bfloat16"))
    expected = np.arange(600) / 599
    np.testing.assert_allclose(ops.cast(rows, "float32")[0, :, 0], expected, atol=2e-3)


@pytest.mark.parametrize(
    "arguments", [{"scaled": 2}, {"scaled": None}, {"length": 1}, {"length": 2.5}]
)
def test_arguments_are_checked(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=rf"Scalar\({name}={value!r}\)"):
        positions.Scalar(**arguments)
