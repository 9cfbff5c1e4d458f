"""The convolution module by its definition, with loops."""

import numpy as np
import pytest

import keras_attention as ka

random = np.random.default_rng(0)
B, T, D = 2, 5, 7
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def drawn(layer):
    layer.build((None, T, D))
    for weight in layer.weights:
        positive = "variance" in weight.path
        weight.assign(random.uniform(0.5, 2, weight.shape) if positive else random.normal(
            size=weight.shape))  # fmt: skip
    return layer


def by_definition(layer, x, mask):
    gate, gate_bias, output, output_bias = (
        np.asarray(w) for dense in (layer._gate, layer._output_dense) for w in dense.weights
    )
    kernel = np.asarray(layer._depthwise.kernel)[:, :, 0]  # (kernel size, D)
    gamma, beta, mean, variance = (np.asarray(w) for w in layer._norm.weights)
    size, result = len(kernel), np.zeros_like(x)
    for b in range(B):
        gated = np.zeros((T, D))
        for t in range(T):
            halves = x[b, t] @ gate + gate_bias
            gated[t] = halves[:D] * sigmoid(halves[D:]) * mask[b, t]
        for t in range(T):
            seen = np.zeros(D)
            for i in range(size):
                where = t + i - (size - 1 if layer.causal else (size - 1) // 2)
                if 0 <= where < T:
                    seen += gated[where] * kernel[i]
            normal = (seen - mean) / np.sqrt(variance + 1e-3) * gamma + beta
            result[b, t] = (normal * sigmoid(normal)) @ output + output_bias
    return result


@pytest.mark.parametrize("size", [1, 3, 4, 11])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [np.ones((B, T), bool), PADDING], ids=["full", "padded"])
def test_by_definition(size, causal, mask):
    layer = drawn(ka.blocks.ConvolutionModule(size, causal=causal))
    expected = by_definition(layer, X, mask)
    np.testing.assert_allclose(layer(X, mask=mask), expected, atol=1e-4, rtol=1e-4)


def test_no_later_token_changes_a_causal_output():
    layer = drawn(ka.blocks.ConvolutionModule(3, causal=True, normalization="rms_norm"))
    changed = X.copy()
    changed[:, 3:] += 1
    np.testing.assert_allclose(layer(changed)[:, :3], layer(X)[:, :3], atol=1e-5)
    assert not np.allclose(layer(changed)[:, 3], layer(X)[:, 3])


def test_padding_is_left_out_of_the_statistics():
    """Compare the mean that the batch norm learns with that of the tokens."""
    layer = drawn(ka.blocks.ConvolutionModule(1))
    layer._norm.momentum = 0.0
    padded = np.where(PADDING[..., None], X, 1000).astype("float32")
    trained = layer(padded, mask=PADDING, training=True)
    gate, bias = (np.asarray(w) for w in layer._gate.weights)
    halves = X[PADDING] @ gate + bias
    seen = halves[:, :D] * sigmoid(halves[:, D:]) * np.asarray(layer._depthwise.kernel)[0, :, 0]
    np.testing.assert_allclose(layer._norm.moving_mean, seen.mean(0), atol=1e-5)
    np.testing.assert_allclose(layer._norm.moving_variance, seen.var(0), atol=1e-4)
    np.testing.assert_allclose(
        np.asarray(trained)[PADDING], np.asarray(layer(padded, mask=PADDING))[PADDING], atol=1e-4
    )
