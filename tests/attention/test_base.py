"""Self-attention in every layer: positions of one stand for both, also where Keras casts them."""

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
def test_positions_of_either_are_those_of_both(name, dtype):
    layer = LAYERS[name](mask="causal", position="rotary", dtype=dtype)
    expected = np.asarray(layer(X, X, query_positions=WHERE, value_positions=WHERE), "float32")
    for given in ({"query_positions": WHERE}, {"value_positions": WHERE}):
        output = np.asarray(layer(query=X, value=X, **given), "float32")
        np.testing.assert_array_equal(output, expected)
    assert not np.allclose(layer(X, X), expected)
    other = np.asarray(layer(X, X.copy(), query_positions=WHERE), "float32")
    assert not np.allclose(other, expected)  # attention to something else, which counts


def test_in_a_model():
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
