"""Convolutions along time by their definition, with loops, and with padding."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

random = np.random.default_rng(0)
B, T, F, D = 2, 11, 7, 5
X = random.normal(size=(B, T, F)).astype("float32")


def by_definition(layer, x):
    """Of one row (T, F)."""
    for number, convolution in enumerate(layer._convolutions):
        kernel, bias = (np.asarray(w) for w in convolution.weights)
        stride, around = (2 if number else 1), len(kernel) // 2
        after = np.zeros((-(-len(x) // stride), D))
        for t in range(len(after)):
            total = bias.astype("float64")
            for i in range(len(kernel)):
                place = stride * t + i - around
                if 0 <= place < len(x):
                    total = total + x[place] @ kernel[i]
            after[t] = keras.activations.gelu(total.astype("float32"))
        x = after
    return x


@pytest.mark.parametrize("factor, kernel_size", [(1, 3), (2, 3), (4, 5)])
def test_by_definition_with_padding(factor, kernel_size):
    layer = ka.blocks.FrameConvolutions(D, factor, kernel_size)
    layer.build((None, T, F))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.4))
    lengths = np.array([T, 6])
    found = layer(X, mask=np.arange(T) < lengths[:, None])
    assert found.shape == (B, layer.count_vectors(T), D)
    mask = np.asarray(keras_internals.get_mask(found))
    for row, x, kept, length in zip(np.asarray(found), X, mask, lengths, strict=True):
        expected = by_definition(layer, x[:length])
        assert kept.sum() == len(expected) == layer.count_vectors(int(length))
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-4, rtol=1e-4)


def test_refuses_other_sizes():
    with pytest.raises(ValueError, match="factor=3.*power of two"):
        ka.blocks.FrameConvolutions(D, factor=3)
    with pytest.raises(ValueError, match="kernel_size=4.*an odd number"):
        ka.blocks.FrameConvolutions(D, kernel_size=4)
