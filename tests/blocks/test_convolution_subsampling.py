"""Convolution subsampling by its definition, with loops, and with padding."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

random = np.random.default_rng(0)
B, T, F, D = 2, 11, 7, 5
X = random.normal(size=(B, T, F)).astype("float32")


def by_definition(layer, x, causal):
    """Of one row (T, F)."""
    x = x[:, :, None]
    for convolution in layer._convolutions:
        kernel, bias = (np.asarray(w) for w in convolution.weights)
        frames, features = -(-len(x) // 2), -(-x.shape[1] // 2)
        after = np.zeros((frames, features, kernel.shape[-1]))
        for t, f in np.ndindex(frames, features):
            total = bias.astype("float64")
            for i, j in np.ndindex(3, 3):
                a, b = 2 * t + i - (2 if causal else 1), 2 * f + j - 1
                if 0 <= a < len(x) and 0 <= b < x.shape[1]:
                    total = total + x[a, b] @ kernel[i, j]
            after[t, f] = np.maximum(total, 0)
        x = after
    kernel, bias = (np.asarray(w) for w in layer._projection.weights)
    return x.reshape(len(x), -1) @ kernel + bias


def make(factor, causal):
    layer = ka.blocks.ConvolutionSubsampling(D, factor, filters=3, causal=causal)
    layer.build((None, T, F))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize("factor", [1, 2, 4])
@pytest.mark.parametrize("causal", [False, True])
def test_by_definition_with_padding(factor, causal):
    layer = make(factor, causal)
    lengths = np.array([T, 6])
    found = layer(X, mask=np.arange(T) < lengths[:, None])
    assert found.shape == (B, layer.count_vectors(T), D)
    mask = np.asarray(keras_internals.get_mask(found))
    for row, x, kept, length in zip(np.asarray(found), X, mask, lengths, strict=True):
        expected = by_definition(layer, x[:length], causal)
        assert kept.sum() == len(expected) == layer.count_vectors(int(length))
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-4, rtol=1e-4)


def test_no_later_frame_changes_a_causal_vector():
    layer, other = make(4, causal=True), X.copy()
    other[:, 5:] += 1
    np.testing.assert_allclose(layer(X)[:, :2], layer(other)[:, :2], atol=1e-6)
    assert not np.allclose(layer(X)[:, 2], layer(other)[:, 2], atol=1e-3)


def test_refuses_other_factors():
    with pytest.raises(ValueError, match="factor=3.*power of two"):
        ka.blocks.ConvolutionSubsampling(D, factor=3)
