import numpy as np
import pytest
from keras import ops

from keras_attention import positions
from keras_attention.positions.alibi import compute_slopes

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
def test_slopes_equal_the_papers(heads, expected):
    np.testing.assert_allclose(compute_slopes(heads), expected, rtol=1e-12)


def test_slopes_of_many_heads_are_all_different():
    for heads in range(1, 70):
        assert len(np.unique(compute_slopes(heads))) == heads == len(compute_slopes(heads))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("batch", [False, True])
def test_biases_equal_the_definition(causal, batch):
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


def test_distances_are_exact_beyond_half_precision():
    where, query = np.arange(600), ops.zeros((1, 600, 8, 4), "bfloat16")
    last = np.asarray(positions.ALiBi().bias(where, where, query))[0, 0, -1]
    np.testing.assert_array_equal(last, -0.5 * np.arange(599, -1, -1))


@pytest.mark.slow
@pytest.mark.parametrize("heads", [3, 8])
def test_parity_with_keras_hub_under_a_causal_mask(heads):
    """Compare weights with a causal mask, because their bias depends only on the key."""
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


RANDOM = np.random.default_rng(0)


def built(heads, **kwargs):
    position = positions.LearnedALiBi(**kwargs)
    position.build((None, None, heads, 4))
    return position


@pytest.mark.parametrize("heads", [1, 3, 6, 8, 12])
@pytest.mark.parametrize("causal", [False, True])
def test_learned_slopes_begin_as_alibi(heads, causal):
    query = np.zeros((2, 5, heads, 4), "float32")
    i, j = RANDOM.integers(0, 50, (2, 5)), RANDOM.integers(0, 50, (2, 7))
    fixed = positions.ALiBi(causal).bias(i, j, query)
    np.testing.assert_allclose(built(heads, causal=causal).bias(i, j, query), fixed, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_learned_biases_equal_the_definition(causal):
    position = built(3, causal=causal)
    position.log_slopes.assign(RANDOM.normal(size=3))
    m = np.exp(position.get_weights()[0])
    i, j = np.array([4, 9]), np.array([0, 5, 11])
    bias = position.bias(i, j, np.zeros((1, 2, 3, 4)))
    for n in range(3):
        for t in range(2):
            for s in range(3):
                far = int(i[t] - j[s])
                far = max(far, 0) if causal else abs(far)
                assert float(bias[0, n, t, s]) == pytest.approx(-m[n] * far, rel=1e-5)


def test_the_config_keeps_the_initial_slopes():
    assert positions.LearnedALiBi().get_config()["initializer"] is None
    zeros = built(4, initializer="zeros")
    assert np.all(zeros.get_weights()[0] == 0)
    again = positions.LearnedALiBi.from_config(zeros.get_config())
    again.build((None, None, 4, 4))
    assert np.all(again.get_weights()[0] == 0)


def test_weights_stay_float32_under_a_mixed_policy():
    position = built(3, dtype="mixed_bfloat16")
    assert position.log_slopes.dtype == "float32"
    assert "float32" in str(position.bias(None, None, np.zeros((1, 5, 3, 4), "float16")).dtype)


def test_learned_arguments_are_checked():
    with pytest.raises(ValueError, match=r"LearnedALiBi\(causal='yes'\)"):
        positions.LearnedALiBi("yes")
    with pytest.raises(ValueError, match="LearnedALiBi needs queries"):
        positions.LearnedALiBi().build((2, 5, 3))
