import numpy as np
import pytest
from keras import ops

from keras_attention import positions
from keras_attention.positions.alibi import slopes

SQRT = 2**-0.5


@pytest.mark.parametrize(
    "heads, expected",
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (
            12,
            [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
            + [SQRT, SQRT / 2, SQRT / 4, SQRT / 8],
        ),
    ],
)
def test_slopes(heads, expected):
    np.testing.assert_allclose(slopes(heads), expected, rtol=1e-12)


def test_slopes_of_many_heads_are_all_different():
    for heads in range(1, 70):
        assert len(np.unique(slopes(heads))) == heads == len(slopes(heads))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_by_definition(causal, batch):
    random = np.random.default_rng(0)
    i, j = random.integers(0, 50, (2, 5)), random.integers(0, 50, (2, 7))
    if not batch:
        i, j = i[0], j[0]
    bias = positions.ALiBi(causal).bias(i, j, np.zeros((2, 5, 3, 4)))
    assert bias.shape == (2 if batch else 1, 3, 5, 7) and "float32" in str(bias.dtype)
    i, j = np.reshape(i, (-1, 5)), np.reshape(j, (-1, 7))
    for b in range(len(i)):
        for n, m in enumerate([1 / 16, 1 / 256, 1 / 4]):
            for t in range(5):
                for s in range(7):
                    far = int(i[b, t] - j[b, s])
                    far = max(far, 0) if causal else abs(far)
                    assert float(bias[b, n, t, s]) == pytest.approx(-m * far)


def test_the_causal_form_is_exact_on_visible_keys():
    where, query = np.arange(11), np.zeros((1, 11, 6, 4))
    symmetric, causal = (positions.ALiBi(c).bias(where, where, query) for c in (False, True))
    past = np.tri(11, dtype=bool)
    np.testing.assert_array_equal(np.asarray(causal)[:, :, past], np.asarray(symmetric)[:, :, past])
    assert not np.asarray(causal)[:, :, ~past].any()


def test_distances_count_past_half_precision():
    where, query = np.arange(600), ops.zeros((1, 600, 8, 4), "bfloat16")
    last = np.asarray(positions.ALiBi().bias(where, where, query))[0, 0, -1]
    np.testing.assert_array_equal(last, -0.5 * np.arange(599, -1, -1))


@pytest.mark.parametrize("heads", [3, 8])
def test_parity_with_keras_hub_under_a_causal_mask(heads):
    """Their bias depends on the key alone: under softmax, with a causal mask, the same weights."""
    keras_hub = pytest.importorskip("keras_hub")
    scores = np.random.default_rng(0).normal(size=(2, heads, 7, 7)).astype("float32")
    hidden = np.where(np.tri(7, dtype=bool), 0.0, -1e9).astype("float32")
    theirs = ops.softmax(keras_hub.layers.AlibiBias()(scores) + hidden)
    for causal in (False, True):
        bias = positions.ALiBi(causal).bias(None, None, np.zeros((2, 7, heads, 4)))
        np.testing.assert_allclose(ops.softmax(scores + bias + hidden), theirs, atol=1e-6)


@pytest.mark.parametrize("causal", [None, "yes", 3])
def test_causal_is_checked(causal):
    with pytest.raises(ValueError, match=rf"ALiBi\(causal={causal!r}\)"):
        positions.ALiBi(causal)
