"""Convolutions before encoders of sound by their definition, with loops, and with padding."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals

random = np.random.default_rng(0)
B, T, F, D = 2, 11, 7, 5
X = random.normal(size=(B, T, F)).astype("float32")


def subsample(layer, x):
    """Compute `ConvolutionSubsampling` of one row (T, F)."""
    x = x[:, :, None]
    for convolution in layer._convolutions:
        kernel, bias = (np.asarray(w) for w in convolution.weights)
        frames, features = -(-len(x) // 2), -(-x.shape[1] // 2)
        after = np.zeros((frames, features, kernel.shape[-1]))
        for t, f in np.ndindex(frames, features):
            total = bias.astype("float64")
            for i, j in np.ndindex(3, 3):
                a, b = 2 * t + i - (2 if layer.causal else 1), 2 * f + j - 1
                if 0 <= a < len(x) and 0 <= b < x.shape[1]:
                    total = total + x[a, b] @ kernel[i, j]
            after[t, f] = np.maximum(total, 0)
        x = after
    kernel, bias = (np.asarray(w) for w in layer._projection.weights)
    return x.reshape(len(x), -1) @ kernel + bias


def convolve_frames(layer, x):
    """Compute `FrameConvolutions` of one row (T, F)."""
    for number, convolution in enumerate(layer._convolutions):
        kernel, bias = (np.asarray(w) for w in convolution.weights)
        stride, around = (2 if number else 1), len(kernel) // 2
        after = np.zeros((-(-len(x) // stride), D))
        for t in range(len(after)):
            total = bias.astype("float64")
            for i in range(len(kernel)):
                frame = stride * t + i - around
                if 0 <= frame < len(x):
                    total = total + x[frame] @ kernel[i]
            after[t] = keras.activations.gelu(total.astype("float32"))
        x = after
    return x


LAYERS = {
    f"{factor}{', causal' if causal else ''}": (
        lambda factor=factor, causal=causal: ka.blocks.ConvolutionSubsampling(
            D, factor, filters=3, causal=causal
        ),
        subsample,
    )
    for factor in (1, 2, 4)
    for causal in (False, True)
} | {
    f"frames, {factor}, {size}": (
        lambda factor=factor, size=size: ka.blocks.FrameConvolutions(D, factor, size),
        convolve_frames,
    )
    for factor, size in ((1, 3), (2, 3), (4, 5))
}


def make(name):
    layer = LAYERS[name][0]()
    layer.build((None, T, F))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.5))
    return layer


@pytest.mark.parametrize("name", LAYERS)
def test_by_definition_with_padding(name):
    layer, define = make(name), LAYERS[name][1]
    lengths = np.array([T, 6])
    output = layer(X, mask=np.arange(T) < lengths[:, None])
    assert output.shape == (B, layer.count_vectors(T), D)
    masks = np.asarray(keras_internals.get_mask(output))
    for row, x, mask, length in zip(np.asarray(output), X, masks, lengths, strict=True):
        expected = define(layer, x[:length])
        assert mask.sum() == len(expected) == layer.count_vectors(int(length))
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-4, rtol=1e-4)


def test_no_later_frame_changes_a_causal_vector():
    layer, changed = make("4, causal"), X.copy()
    changed[:, 5:] += 1
    np.testing.assert_allclose(layer(X)[:, :2], layer(changed)[:, :2], atol=1e-6)
    assert not np.allclose(layer(X)[:, 2], layer(changed)[:, 2], atol=1e-3)


def test_refuses_other_sizes():
    with pytest.raises(ValueError, match="ConvolutionSubsampling.factor=3.*power of two"):
        ka.blocks.ConvolutionSubsampling(D, factor=3)
    with pytest.raises(ValueError, match="FrameConvolutions.factor=3.*power of two"):
        ka.blocks.FrameConvolutions(D, factor=3)
    with pytest.raises(ValueError, match="kernel_size=4.*an odd number"):
        ka.blocks.FrameConvolutions(D, kernel_size=4)
