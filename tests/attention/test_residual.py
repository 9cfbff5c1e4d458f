"""RealFormer: a layer adds the scores of the layer below."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition
from tests.export.helpers import assert_exports

B, N, T, D, H = 2, 3, 5, 13, 11
random = np.random.default_rng(0)
X = random.normal(size=(B, T, D)).astype("float32")
SLOPES = [2.0**-4, 2.0**-8, 2.0**-2]  # ALiBi's, for three heads
LENGTHS = np.array([T, T - 2])
PADDING = np.arange(T) < LENGTHS[:, None]


def layers(number=2, **kwargs):
    made = []
    for _ in range(number):
        layer = ka.attention.ResidualAttention(N, H, **kwargs)
        layer.build(X.shape, X.shape)
        definition.randomize(layer, scale=0.4)
        made.append(layer)
    return made


def chain(**kwargs):
    """Build two layers with residuals, x -> y. The second adds the scores of the first."""
    x = keras.Input((None, D))
    first, second = (ka.attention.ResidualAttention(N, H, **kwargs) for _ in range(2))
    added, scores = first(x, x, return_raw_scores=True)
    y = keras.layers.Add()([x, added])
    return keras.Model(x, second(y, y, previous_scores=scores, use_causal_mask=True))


@pytest.mark.parametrize("groups", [1, 3])
def test_equals_the_definition(groups):
    first, second = layers(num_key_value_heads=groups, position="alibi", mask="causal")
    middle, raw = first(X, X, value_mask=PADDING, return_raw_scores=True)
    arguments = dict(value_mask=PADDING, previous_scores=raw, return_attention_scores=True)
    output, weights, total = second(middle, middle, **arguments, return_raw_scores=True)

    sums, x = np.zeros((B, N, T, T)), X
    for layer in (first, second):
        query, key, value = definition.projected(layer, x, x)
        expected, heads = np.zeros((B, N, T, T)), np.zeros((B, T, N, H))
        for b, n, i in np.ndindex(B, N, T):
            for j in range(T):
                sums[b, n, i, j] += definition.scaled_dot(query[b, i, n], key[b, j, n], n)
            seen = [j for j in range(T) if j <= i and j < LENGTHS[b]]
            biased = [sums[b, n, i, j] - SLOPES[n] * (i - j) for j in seen]
            expected[b, n, i, seen] = definition.softmax(np.array(biased))
            heads[b, i, n] = expected[b, n, i] @ value[b, :, n]
        x = definition.merged(layer, heads)
    np.testing.assert_allclose(total, sums, atol=1e-4)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(output, x, atol=1e-4)


def test_the_first_layer_equals_multi_head_attention():
    (layer,) = layers(1)
    plain = ka.attention.MultiHeadAttention(N, H)
    plain.build(X.shape, X.shape)
    plain.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(X, X), plain(X, X), atol=1e-6)


def test_scores_over_several_axes_have_the_shape_of_the_weights():
    x = random.normal(size=(B, 3, 2, 5, D)).astype("float32")
    layer = ka.attention.ResidualAttention(N, H, attention_axes=(1, 3))
    _, weights, raw = layer(x, x, return_attention_scores=True, return_raw_scores=True)
    assert raw.shape == weights.shape == (B, 2, N, 3, 5, 3, 5)
    _, twice = layer(x, x, previous_scores=raw, return_raw_scores=True)
    np.testing.assert_allclose(twice, 2 * np.asarray(raw), atol=1e-5)


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_symbolic_shapes_equal_eager_shapes(flags):
    names = dict(zip(("return_attention_scores", "return_raw_scores"), flags, strict=True))
    layer = ka.attention.ResidualAttention(N, H, num_memory_slots=2)
    query, value = keras.Input((T, D)), keras.Input((7, D))
    symbols = keras.tree.flatten(layer(query, value, **names))
    values = keras.tree.flatten(layer(X, np.zeros((B, 7, D)), **names))
    assert [x.shape[1:] for x in symbols] == [x.shape[1:] for x in values]
    assert len(symbols) == 1 + sum(flags)


def test_gradients_reach_the_layer_below_through_its_scores():
    first, second = layers()
    with tf.GradientTape() as tape:
        _, raw = first(X, X, return_raw_scores=True)
        loss = tf.reduce_sum(second(X, X, previous_scores=raw) ** 2)
    gradient = tape.gradient(loss, first.query_dense.kernel.value)
    assert np.any(np.asarray(gradient) != 0)


@pytest.mark.slow
def test_a_chain_exports():
    assert_exports(chain(position="alibi"))


def test_a_chain_is_saved(tmp_path):
    model = chain(qk_norm="rms_norm", sink=True)
    definition.randomize(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_chain_computes_in_mixed_precision(dtype):
    exact, mixed = chain(), chain(dtype=f"mixed_{dtype}")
    definition.randomize(exact, scale=0.3)
    mixed.set_weights(exact.get_weights())
    output = mixed(X)
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    np.testing.assert_allclose(keras.ops.cast(output, "float32"), exact(X), atol=0.1, rtol=0.1)


@pytest.mark.parametrize("shape", [(B, N + 1, T, T), (B, N, T, T + 1), (B, T, T)])
def test_refuses_scores_of_other_shapes(shape):
    layer = ka.attention.ResidualAttention(N, H)
    x = keras.Input((T, D))
    for query, scores in [(X, np.zeros(shape)), (x, keras.Input(shape[1:]))]:
        with pytest.raises(ValueError, match=r"previous_scores has shape.*\(\w+, 3, 5, 5\)"):
            layer(query, query, previous_scores=scores)


def test_refuses_kernels_other_than_dense():
    with pytest.raises(
        ValueError, match="implementation='chunked'.*ResidualAttention need the dense"
    ):
        ka.attention.ResidualAttention(N, H, implementation="chunked")
