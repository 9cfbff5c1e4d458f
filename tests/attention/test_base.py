"""AttentionLayer: positions in self-attention, caches, and the steps of a subclass."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka

B, T, D = 2, 5, 8
X = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
WHERE = np.array([[3, 4, 0, 1, 2], [7, 5, 3, 1, 0]])
LAYERS = {
    "multi_head": lambda **kw: ka.attention.MultiHeadAttention(2, 4, **kw),
    "differential": lambda **kw: ka.attention.DifferentialAttention(2, 4, **kw),
    "latent": lambda **kw: ka.attention.LatentAttention(2, 4, 4, 4, **kw),
    "residual": lambda **kw: ka.attention.ResidualAttention(2, 4, **kw),
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_in_self_attention_positions_of_queries_or_values_are_enough(name, dtype):
    layer = LAYERS[name](mask="causal", position="rotary", dtype=dtype)
    expected = np.asarray(layer(X, X, query_positions=WHERE, value_positions=WHERE), "float32")
    for positions in ({"query_positions": WHERE}, {"value_positions": WHERE}):
        output = np.asarray(layer(query=X, value=X, **positions), "float32")
        np.testing.assert_array_equal(output, expected)
    assert not np.allclose(layer(X, X), expected)
    other = np.asarray(layer(X, X.copy(), query_positions=WHERE), "float32")
    assert not np.allclose(other, expected)  # not self-attention


def test_positions_in_a_model():
    x, where = keras.Input((None, D)), keras.Input((None,), dtype="int32")
    layer = LAYERS["multi_head"](mask="causal", position="rotary")
    model = keras.Model([x, where], layer(x, x, query_positions=where))
    expected = layer(X, X, query_positions=WHERE, value_positions=WHERE)
    np.testing.assert_allclose(model([X, WHERE]), expected, atol=1e-6)


def test_an_array_keeps_its_mask():
    embed = keras.layers.Embedding(9, D, mask_zero=True)
    x = embed(np.array([[3, 4, 0], [5, 0, 0]]))
    layer = ka.attention.MultiHeadAttention(2, 4, dtype="mixed_bfloat16")
    output = layer(x, x)
    bare = keras.ops.convert_to_tensor(np.asarray(x))
    expected = layer(bare, bare, query_mask=x._keras_mask, value_mask=x._keras_mask)
    np.testing.assert_array_equal(np.asarray(output, "float32"), np.asarray(expected, "float32"))
    assert np.array_equal(output._keras_mask, x._keras_mask)


class OneHead(ka.attention.AttentionLayer):
    """A layer without projections that adds a number of each key to its scores."""

    num_heads = 1

    def project_query(self, query):
        return keras.ops.expand_dims(query, axis=2)

    def project_key_value(self, value, key, visibility):
        heads = keras.ops.expand_dims(value, axis=2)
        return {"key": heads, "value": heads, "bias": value[..., :1]}

    def attend_heads(self, query, heads, equation, visibility, *how):
        bias = keras.ops.transpose(heads["bias"], (0, 2, 1))[:, :, None]  # (B, 1, 1, S)
        equation = dataclasses.replace(equation, bias=bias)
        return super().attend_heads(query, heads, equation, visibility, *how)

    def project_output(self, output, query):
        return keras.ops.squeeze(output, axis=2)


class Caching(OneHead):
    stated = {"key": (1, D), "value": (1, D), "bias": (1,)}

    @property
    def cache_shapes(self):
        return self.stated


def decode(layer):
    """Return outputs for X, computed as a whole and token by token with a cache."""
    x = keras.Input((None, D))
    model = keras.Model(x, layer(x, x))
    cache = ka.generation.initial_cache(model, B, T)
    outputs = []
    for i in range(T):
        with ka.generation.decoding_scope(cache, i) as scope:
            outputs.append(np.asarray(model(X[:, i : i + 1])))
        cache = scope.cache
    return np.asarray(model(X)), np.concatenate(outputs, axis=1)


def test_a_cache_stores_additional_entries_of_a_layer():
    whole, pieces = decode(Caching(mask="causal", position="rotary"))
    np.testing.assert_allclose(pieces, whole, atol=1e-6)
    scores = np.einsum("btd,bsd->bts", X, X) / D**0.5 + X[:, None, :, 0]
    weights = np.where(np.tri(T), np.exp(scores), 0.0)
    weights /= weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(Caching(mask="causal")(X, X), weights @ X, atol=1e-5)


def test_a_layer_without_cache_shapes_says_what_to_add():
    with pytest.raises(NotImplementedError, match="OneHead has no cache_shapes.*Add the property"):
        decode(OneHead(mask="causal"))


@pytest.mark.parametrize(
    "stated",
    [
        {"key": (1, D), "value": (1, D)},
        Caching.stated | {"more": (3,)},
        Caching.stated | {"bias": (2,)},
    ],
)
def test_cache_entries_other_than_cache_shapes_are_refused(stated):
    layer = Caching(mask="causal", name="odd")
    layer.stated = stated
    with pytest.raises(ValueError, match="odd gives its cache.*'bias': \\(1,\\).*cache_shapes are"):
        decode(layer)


def test_a_bias_of_a_subclass_does_not_change_the_sink():
    class Biased(ka.attention.MultiHeadAttention):
        def attend_heads(self, query, heads, equation, visibility, *how):
            equation = dataclasses.replace(equation, bias=np.full((1, 1, 1, T), 2.0))
            return super().attend_heads(query, heads, equation, visibility, *how)

    own = ka.attention.MultiHeadAttention(2, 4, sink=True)
    biased = Biased(2, 4, sink=True)
    own(X, X), biased(X, X)
    biased.set_weights(own.get_weights())
    _, weights = own(X, X, return_attention_scores=True)
    _, more = biased(X, X, return_attention_scores=True)
    assert not np.allclose(weights, more, atol=1e-3)  # the sink got no bias
    (sink,) = [w for w in own.weights if "sink" in w.path]
    sink.assign(sink - 2.0)
    _, weights = own(X, X, return_attention_scores=True)
    np.testing.assert_allclose(more, weights, atol=1e-6)
