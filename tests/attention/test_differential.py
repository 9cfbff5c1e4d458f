"""Differential attention against its definition with loops, and its properties."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition

B, N, T, S, D, H = 2, 3, 5, 7, 13, 11
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
LENGTHS = np.array([S, S - 2])
PADDING = np.arange(S) < LENGTHS[:, None]


def built(num_heads=N, key_dim=H, **kwargs):
    layer = ka.attention.DifferentialAttention(num_heads, key_dim, **kwargs)
    layer.build((B, T, D), (B, S, D))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.5))
    return layer


def lambda_of(layer):
    """Compute λ and λ_init (section 2.1, equation 2)."""
    l_init = 0.8 if layer.depth is None else 0.8 - 0.6 * np.exp(-0.3 * (layer.depth - 1))
    weights = weights_of(layer)
    first = weights["lambda_query_1"] @ weights["lambda_key_1"]
    second = weights["lambda_query_2"] @ weights["lambda_key_2"]
    return np.exp(first) - np.exp(second) + l_init, l_init


def weights_of(layer):
    return {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}


def by_definition(layer, query, value, allows):
    """Return output and weights of a layer without biases, one query, head and map at a time.

    Heads 2n and 2n + 1 of the flat projections are the two maps of head n, as in the authors' code
    (microsoft/unilm). With grouped keys the two maps may share a key head there, but not here.
    """
    weights, (factor, l_init) = weights_of(layer), lambda_of(layer)
    n_heads, groups, size = layer.num_heads, layer.num_key_value_heads, layer.key_dim

    def heads(name, x, count):
        kernel = weights[f"{name}/kernel"]
        return (x @ kernel.reshape(len(kernel), -1)).reshape(*x.shape[:2], count, -1)

    q = heads("query", query, 2 * n_heads)
    k, v = heads("key", value, 2 * groups), heads("value", value, groups)
    output = np.zeros((*query.shape[:2], D))
    shown = np.zeros((len(query), n_heads, query.shape[1], value.shape[1]))
    for b in range(len(query)):
        for i in range(query.shape[1]):
            seen = [j for j in range(value.shape[1]) if allows(b, i, j)]
            for n in range(n_heads if seen else 0):
                g = n // (n_heads // groups)
                maps = []
                for s in (0, 1):
                    scores = [q[b, i, 2 * n + s] @ k[b, j, 2 * g + s] / size**0.5 for j in seen]
                    maps.append(definition.softmax(np.array(scores)))
                shown[b, n, i, seen] = maps[0] - factor * maps[1]
                mixed = sum(shown[b, n, i, j] * v[b, j, g] for j in seen)
                mixed = mixed / np.sqrt(np.mean(mixed**2) + 1e-5) * weights["head_norm/scale"]
                output[b, i] += (1 - l_init) * mixed @ weights["attention_output/kernel"][n]
    return output, shown


def recorded(layer, *inputs, **kwargs):
    with ka.visualization.record_attention(layer) as maps:
        output = layer(*inputs, **kwargs)
    (weights,) = maps.values()
    return np.asarray(output), np.asarray(weights)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"depth": 1}, {"depth": 4, "value_dim": 5}, {"num_heads": 4, "num_key_value_heads": 2}],
    ids=str,
)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_equals_the_definition(arguments, causal):
    layer = built(**arguments)
    expected, expected_weights = by_definition(
        layer, QUERY, VALUE, lambda b, i, j: j < LENGTHS[b] and (j <= i or not causal)
    )
    output, weights = recorded(layer, QUERY, VALUE, value_mask=PADDING, use_causal_mask=causal)
    np.testing.assert_allclose(output, expected, atol=5e-5, rtol=1e-4)
    np.testing.assert_allclose(weights, expected_weights, atol=2e-5, rtol=1e-4)


def test_lambda_grows_with_depth():
    """Compare with section 2.1: 0.2 in the first layer, 0.8 in the limit."""
    layers = [ka.attention.DifferentialAttention(1, 1, depth=depth) for depth in (1, 2, 12, None)]
    starts = [layer.lambda_init for layer in layers]
    np.testing.assert_allclose(starts, [0.2, 0.35551, 0.77787, 0.8], atol=1e-5)


def test_rows_sum_to_one_minus_lambda():
    layer = built()
    _, weights = recorded(layer, QUERY, VALUE, value_mask=PADDING)
    np.testing.assert_allclose(weights.sum(-1), 1 - lambda_of(layer)[0], atol=1e-4)


def test_identical_attention_maps_cancel_when_lambda_is_one():
    """Give queries and keys equal halves."""
    layer = built()
    for dense in (layer._query_dense, layer._key_dense):
        half = np.asarray(dense.kernel)[..., :H]
        dense.kernel.assign(np.concatenate([half, half], axis=-1))
    for name in ("query_1", "key_1", "query_2", "key_2"):
        getattr(layer, f"_lambda_{name}").assign(np.zeros(H))
    layer._lambda_query_1.assign(np.eye(H)[0] * np.log(1.2))  # exp(log 1.2) - 1 + 0.8 = 1
    layer._lambda_key_1.assign(np.eye(H)[0])
    output, weights = recorded(layer, QUERY, VALUE)
    np.testing.assert_allclose(weights, 0, atol=1e-6)
    assert np.abs(output).max() < 1e-2


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_an_empty_row_gives_zeros_and_no_gradient(dtype):
    layer = built(dtype=dtype)
    nothing = np.ones((B, T, S), bool)
    nothing[0, 1] = nothing[1] = False
    query = tf.Variable(QUERY)
    with tf.GradientTape() as tape:
        output = layer(query, VALUE, attention_mask=nothing)
        empty = tf.reduce_sum(output[1]) + tf.reduce_sum(output[0, 1])
    assert np.all(np.asarray(output)[1] == 0) and np.all(np.asarray(output)[0, 1] == 0)
    assert np.all(np.asarray(output)[0, 0] != 0)
    gradients = tape.gradient(empty, [query, *(w.value for w in layer.weights)])
    assert all(g is None or np.all(np.asarray(g) == 0) for g in gradients)


def test_implicit_padding_does_not_change_outputs():
    table = keras.layers.Embedding(20, D, mask_zero=True)
    layer = built()
    padded, short = (table(np.array([[3, 4, 5, 0, 0]]))[:, :n] for n in (5, 3))
    padded._keras_mask = np.array([[True, True, True, False, False]])
    output = layer(padded, padded)
    np.testing.assert_allclose(output[:, :3], layer(short, short), atol=1e-5)
    assert np.all(np.asarray(output)[:, 3:] == 0)
    np.testing.assert_array_equal(output._keras_mask, padded._keras_mask)


def test_masks_and_positions_reach_both_maps():
    layer = built(key_dim=10, mask=ka.masks.Window(2), position=["rotary", "alibi"])
    _, weights = recorded(layer, QUERY, QUERY)
    far = np.abs(np.subtract.outer(np.arange(T), np.arange(T))) >= 2
    assert np.all(weights[:, :, far] == 0) and np.all(weights[:, :, ~far] != 0)
    shifted = np.arange(T) + 100
    moved = layer(QUERY, QUERY, query_positions=shifted, value_positions=shifted)
    np.testing.assert_allclose(layer(QUERY, QUERY), moved, atol=1e-3)
    bare = built(key_dim=10, mask=ka.masks.Window(2))
    bare.set_weights(layer.get_weights())
    assert not np.allclose(bare(QUERY, QUERY), moved, atol=1e-2)


def test_a_score_with_weights_serves_both_maps():
    layer = built(score="additive")
    assert layer(QUERY, VALUE).shape == (B, T, D)
    assert layer.score.built and all(w.shape[0] == N for w in layer.score.weights)


def test_packed_documents_equal_single_ones():
    layer = built()
    packed = layer(QUERY, QUERY, segment_ids=np.array([[1, 1, 1, 2, 2]] * B))
    np.testing.assert_allclose(packed[:, :3], layer(QUERY[:, :3], QUERY[:, :3]), atol=1e-5)
    np.testing.assert_allclose(packed[:, 3:], layer(QUERY[:, 3:], QUERY[:, 3:]), atol=1e-5)


def test_fits_an_encoder_block():
    block = ka.blocks.EncoderBlock(
        attention=ka.attention.DifferentialAttention(N, 10, position="rotary"),
        feed_forward=ka.blocks.FeedForward(9),
    )
    segments = np.array([[1, 1, 1, 2, 2]] * B)
    output = block(QUERY, segment_ids=segments, positions=np.array([0, 1, 2, 0, 1]))
    np.testing.assert_allclose(output[:, :3], block(QUERY[:, :3]), atol=1e-5)
    np.testing.assert_allclose(output[:, 3:], block(QUERY[:, 3:]), atol=1e-5)


@pytest.mark.parametrize("kernel", [None, "banded", "chunked"])
def test_every_kernel_equals_dense(kernel):
    """Compare output and gradients for a window, which the banded kernel needs."""
    results = []
    for name in ("dense", kernel):
        layer = built(mask=ka.masks.Window(2), implementation=name)
        layer.set_weights(results[0][-1] if results else layer.get_weights())
        query = tf.Variable(QUERY)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(query, query, use_causal_mask=True) ** 2)
        results.append([loss, tape.gradient(loss, query), layer.get_weights()])
    for dense, other in zip(results[0][:2], results[1][:2], strict=True):
        np.testing.assert_allclose(dense, other, atol=1e-4, rtol=1e-4)


def test_dropout_acts_only_in_training():
    layer = built(dropout=0.5, seed=1)
    still = layer(QUERY, VALUE)
    np.testing.assert_array_equal(still, layer(QUERY, VALUE, training=False))
    assert not np.allclose(still, layer(QUERY, VALUE, training=True), atol=1e-3)


def test_it_has_as_many_weights_as_attention_with_twice_the_heads():
    layer = built(4, 8)
    other = keras.layers.MultiHeadAttention(8, 8, use_bias=False)
    other.build((B, T, D), (B, S, D))
    assert layer.count_params() == other.count_params() + 4 * 8 + 16


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_heads=0, key_dim=4), "num_heads=0"),
        (dict(num_heads=2, key_dim=4, depth=0), "depth=0"),
        (dict(num_heads=6, key_dim=4, num_key_value_heads=4), "num_key_value_heads=4.*num_heads=6"),
        (dict(num_heads=2, key_dim=4, score=None), "score=None"),
        (dict(num_heads=2, key_dim=4, normalizer=None), "normalizer=None"),
        (dict(num_heads=2, key_dim=4, position="sinusoidal"), "Sinusoidal.*embedding"),
        (dict(num_heads=2, key_dim=4, mask="causl"), "causl"),
    ],
    ids=str,
)
def test_refuses_at_construction(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.attention.DifferentialAttention(**arguments)
