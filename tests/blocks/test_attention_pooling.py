"""Pooling by attention and a feed-forward network, by its definition in NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from tests.blocks.stand_ins import layer_norm, rms_norm

random = np.random.default_rng(0)
B, T, D, N, H = 2, 5, 7, 3, 4
X = random.normal(size=(B, T, D)).astype("float32")
PADDING = np.arange(T) < np.array([[3], [5]])


def make_pooling(**kwargs):
    """Make a layer with random weights."""
    layer = ka.blocks.AttentionPooling(
        ka.attention.MultiHeadAttention(N, H, name="attention"),
        ka.blocks.FeedForward(11, activation="relu", name="feed_forward"),
        **kwargs,
    )
    layer.build((None, T, D))
    for weight in layer.weights:
        weight.assign(weight + random.normal(size=weight.shape, scale=0.3))
    return layer


def pool(x, layer, normalize):
    """Compute the attention of the learned query to the rows of `x`, (T, D)."""
    w = {weight.path.split("/", 1)[-1]: ops.convert_to_numpy(weight) for weight in layer.weights}

    def project(x, name):
        kernel, bias = w[f"attention/{name}/kernel"], w[f"attention/{name}/bias"]
        return np.einsum("td,dnh->tnh", x, kernel) + bias

    q, k, v = (project(y, n) for y, n in ((w["query"][0], "query"), (x, "key"), (x, "value")))
    pooled = np.zeros((N, H))
    for n in range(N):
        scores = np.exp(k[:, n] @ q[0, n] / np.sqrt(H))
        pooled[n] = scores / scores.sum() @ v[:, n]
    output = w["attention/attention_output/kernel"], w["attention/attention_output/bias"]
    y = np.einsum("nh,nhd->d", pooled, output[0]) + output[1]
    z = normalize(y) * w["norm/gamma" if "norm/gamma" in w else "norm/scale"]
    z = (z + w.get("norm/beta", 0)) @ w["feed_forward/intermediate/kernel"]
    inner = np.maximum(z + w["feed_forward/intermediate/bias"], 0)
    return y + inner @ w["feed_forward/output/kernel"] + w["feed_forward/output/bias"]


@pytest.mark.parametrize(
    "normalization, normalize",
    [("layer_norm", layer_norm), ("layer_norm_no_bias", layer_norm), ("rms_norm", rms_norm)],
)
def test_by_definition(normalization, normalize):
    layer = make_pooling(normalization=normalization)
    expected = [pool(X[b][PADDING[b]], layer, normalize) for b in range(B)]
    np.testing.assert_allclose(layer(X, mask=PADDING), expected, atol=1e-5)
    np.testing.assert_allclose(layer(X)[0], pool(X[0], layer, normalize), atol=1e-5)


def test_pooling_uses_the_mask_of_the_tokens():
    layer, tokens = make_pooling(), keras.Input((None, D))
    model = keras.Model(tokens, layer(keras.layers.Masking()(tokens)))
    padded = np.where(PADDING[..., None], X, 0)
    np.testing.assert_allclose(model(padded), layer(X, mask=PADDING), atol=1e-6)


def test_prefix_tokens_are_left_out():
    layer = make_pooling(num_prefix_tokens=2)
    expected = [pool(x[2:], layer, layer_norm) for x in X]
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)
    shorter = layer(X[:, :3], mask=np.ones((B, 3), bool))
    np.testing.assert_allclose(shorter, [pool(x[2:3], layer, layer_norm) for x in X], atol=1e-5)


def test_weights_are_recorded():
    layer = make_pooling()
    tokens = keras.Input((T, D))
    model = keras.Model(tokens, layer(tokens))
    with ka.visualization.record_attention(model) as maps:
        model(X)
    (pooled,) = maps.values()
    assert pooled.shape == (B, N, 1, T)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"normalization": "batch_norm"}, "'batch_norm'.*must be one of 'layer_norm'"),
        ({"num_prefix_tokens": -1}, "num_prefix_tokens=-1.*at least 0"),
    ],
)
def test_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        make_pooling(**change)


def test_builders_use_attention_pooling():
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12)
    size["pooling"] = make_pooling()
    texts = np.array([[5, 8, 2, 0, 0], [7, 2, 9, 4, 3]])
    size["pooling"] = ka.blocks.AttentionPooling(
        ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(12)
    )
    reader = ka.models.text_classifier(10, 3, **size)
    np.testing.assert_allclose(reader(texts)[:1], reader(texts[:1, :3]), atol=1e-5)
