"""Tests against mistakes with positions in other libraries."""

import numpy as np
import pytest
from keras import ops

from keras_attention import positions


def tensor2tensor(length, width):
    """Compute all sines, then all cosines, with exponents divided by one less than in the paper."""
    n = width // 2
    rates = np.exp(-np.arange(n) * np.log(10000) / (n - 1))
    angle = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


def test_longer_wavelength_reproduces_waves_of_tensor2tensor():
    """Check that other waves are equal for another wavelength."""
    width, n = 8, 4
    theirs = tensor2tensor(5, width)
    plain = positions.Sinusoidal("concatenated").waves(ops.arange(5), width)[0]
    assert not np.allclose(plain, theirs, atol=0.01)
    position = positions.Sinusoidal("concatenated", max_wavelength=10000 ** (n / (n - 1)))
    np.testing.assert_allclose(position.waves(ops.arange(5), width)[0], theirs, atol=1e-6)
    # OpenNMT counts from 1
    counted = position.embed(np.zeros((1, 4, width), "float32"), np.arange(1, 5))
    np.testing.assert_allclose(counted[0], theirs[1:], atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_sinusoidal_positions_are_finite_at_small_widths(layout, width):
    x = np.zeros((1, 6, width), "float32")
    parts = positions.Sinusoidal(layout), positions.Sinusoidal2D((2, 3), layout=layout)
    for position in parts:
        result = np.asarray(position.embed(x))
        assert result.shape == x.shape and np.all(np.isfinite(result))


def test_alibi_bias_is_symmetric_without_a_causal_mask():
    """Compare with a ramp over keys, which is equal for every query and so not a distance."""
    bias = np.asarray(positions.ALiBi().bias(None, None, np.zeros((1, 5, 2, 4))))[0, 0]
    np.testing.assert_allclose(bias, bias.T)
    assert np.argmax(bias, axis=1).tolist() == list(range(5))


def test_relative_bias_uses_the_position_of_a_decoding_step():
    """Give one query at position 6."""
    position = positions.RelativeBias(8, 20, bidirectional=False)
    query = np.zeros((1, 7, 2, 4), "float32")
    position.build(query.shape)
    whole = np.asarray(position.bias(None, None, query))
    step = position.bias([6], None, query[:, 6:], query)
    np.testing.assert_array_equal(step, whole[:, :, 6:])
    assert not np.array_equal(step, position.bias([0], None, query[:, 6:], query))


def test_learned_positions_refuse_lengths_beyond_their_table():
    """Refuse them with an error about the length."""
    position = positions.Learned(4)
    position.build((None, None, 3))
    with pytest.raises(ValueError, match=r"length 5 .*longer with extend\(\)"):
        position.embed(np.zeros((1, 5, 3), "float32"))
    with pytest.raises(ValueError, match=r"Positions 4 to 4 .*0 to 3\. .*extend\(\)"):
        position.embed(np.zeros((1, 1, 3), "float32"), [4])


def test_zero_row_replaces_a_missing_class_token_position():
    """Add a zero vector for the class token to big_vision's table to get vit_jax's."""
    random = np.random.default_rng(0)
    table = random.normal(size=(4, 3)).astype("float32")
    x = random.normal(size=(1, 5, 3)).astype("float32")
    position = positions.Learned(5)
    position.build(x.shape)
    position.table.assign(np.concatenate([np.zeros((1, 3)), table]))
    before = np.concatenate([x[:, :1], x[:, 1:] + table], axis=1)
    np.testing.assert_allclose(position.embed(x), before, atol=1e-6)
    larger = position.interpolate((2, 2), (3, 3), prefix=1)
    np.testing.assert_array_equal(larger.table[0], np.zeros(3))
