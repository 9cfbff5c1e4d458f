"""Linear attention against its definition with loops, in pieces, and as an estimate of softmax."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.attention import linear
from tests.contract import Case
from tests.export.helpers import assert_exports

B, N, T, S, D, H, V = 2, 3, 7, 5, 13, 11, 4
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
LENGTHS = np.array([T, T - 3])
MAPS = ["elu", "relu", ka.attention.feature_maps.FavorFeatures(19)]


def built(num_heads=N, scale=0.5, **kwargs):
    layer = ka.attention.LinearAttention(num_heads, H, value_dim=V, **kwargs)
    layer.build((B, T, D), (B, S, D))
    for weight in layer.trainable_weights:
        weight.assign(random.normal(size=weight.shape, scale=scale))
    return layer


def features(layer, x):
    """Compute φ of one query or key, without factors that divide out."""
    if isinstance(layer.feature_map, ka.attention.feature_maps.EluFeatures):
        return np.array([number + 1 if number > 0 else np.exp(number) for number in x])
    if isinstance(layer.feature_map, ka.attention.feature_maps.ReLUFeatures):
        return np.array([max(number, 0) for number in x])
    drawn = np.asarray(layer.non_trainable_weights[0], "float64")
    x = x / H**0.25
    return np.array([np.exp(w @ x - x @ x / 2) for w in drawn.T])


def by_definition(layer, query, value, allows):
    """Compute the output, one query, head and key at a time."""
    weights = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}

    def heads(name, x):
        return np.einsum("btd,dnh->btnh", x, weights[f"{name}/kernel"]) + weights[f"{name}/bias"]

    q, k, v = heads("query", query), heads("key", value), heads("value", value)
    output = np.zeros((*query.shape[:2], D))
    for b in range(len(query)):
        for i in range(query.shape[1]):
            for n in range(layer.num_heads):
                g = n // (layer.num_heads // layer.num_key_value_heads)
                numerator, denominator = np.zeros(V), 0.0
                for j in range(value.shape[1]):
                    if allows(b, i, j):
                        weight = features(layer, q[b, i, n]) @ features(layer, k[b, j, g])
                        numerator += weight * v[b, j, g]
                        denominator += weight
                if denominator > 0:
                    mixed = numerator / denominator
                    output[b, i] += mixed @ weights["attention_output/kernel"][n]
    return output + weights["attention_output/bias"]


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("groups", [None, 2], ids=["each its key head", "grouped"])
def test_equals_the_definition(feature_map, groups):
    layer = built(4 if groups else N, feature_map=feature_map, num_key_value_heads=groups)
    lengths = np.array([S, S - 2])
    output = layer(QUERY, VALUE, value_mask=np.arange(S) < lengths[:, None])
    expected = by_definition(layer, QUERY, VALUE, lambda b, i, j: j < lengths[b])
    np.testing.assert_allclose(output, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("groups", [None, 2], ids=["each its key head", "grouped"])
@pytest.mark.parametrize("chunk_size", [1, 3, 128])
def test_causal_equals_the_definition(feature_map, groups, chunk_size):
    layer = built(
        4 if groups else N,
        feature_map=feature_map,
        num_key_value_heads=groups,
        mask="causal",
        chunk_size=chunk_size,
    )
    output = layer(QUERY, QUERY, value_mask=np.arange(T) < LENGTHS[:, None])
    expected = by_definition(layer, QUERY, QUERY, lambda b, i, j: j <= i and j < LENGTHS[b])
    np.testing.assert_allclose(output, expected, atol=1e-4, rtol=1e-4)


def test_use_causal_mask_equals_the_causal_mask():
    by_mask = built(mask="causal")
    by_call = built()
    by_call.set_weights(by_mask.get_weights())
    np.testing.assert_array_equal(
        by_call(QUERY, QUERY, use_causal_mask=True), by_mask(QUERY, QUERY)
    )
    assert not np.allclose(by_call(QUERY, QUERY), by_mask(QUERY, QUERY), atol=1e-2)


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("pieces", [[1] * 6, [4, 2]], ids=str)
@pytest.mark.parametrize("groups", [None, 2], ids=["each its key head", "grouped"])
def test_pieces_equal_the_whole(feature_map, pieces, groups):
    layer = built(
        4 if groups else N,
        feature_map=feature_map,
        num_key_value_heads=groups,
        mask="causal",
        chunk_size=3,
    )
    x = random.normal(size=(B, 6, D)).astype("float32")
    tokens = random.random((B, 6)) < 0.7
    whole, final = layer(x, x, value_mask=tokens, return_state=True)
    state, outputs, start = layer.get_initial_state(B), [], 0
    for length in pieces:
        new = slice(start, start + length)
        output, state = layer(
            x[:, new], x[:, new], value_mask=tokens[:, new], initial_state=state, return_state=True
        )
        outputs.append(output)
        start += length
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), whole, atol=2e-5, rtol=1e-4)
    np.testing.assert_allclose(state, final, atol=1e-5, rtol=1e-5)


def test_state_of_all_keys_is_the_sum_over_pieces():
    layer = built()
    _, state = layer(QUERY, VALUE[:, :2], return_state=True)
    output, state = layer(QUERY, VALUE[:, 2:], initial_state=state, return_state=True)
    expected, final = layer(QUERY, VALUE, return_state=True)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(state, final, atol=1e-5)


def test_symbolic_state_has_the_shape_of_the_eager_state():
    layer = ka.attention.LinearAttention(N, H, value_dim=V, feature_map="favor")
    x = keras.Input((None, D), batch_size=B)
    _, symbol = layer(x, x, return_state=True)
    _, state = layer(QUERY, QUERY, return_state=True)
    assert tuple(symbol.shape) == tuple(state.shape) == (B, N, 256, V + 1)
    assert layer.get_initial_state(B).shape == state.shape
    assert symbol.dtype == "float32" == keras.backend.standardize_dtype(state.dtype)


class Streaming(keras.layers.Layer):
    """The state as input and output, squared, because sums of features are not below 0."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def build(self, x_shape, state_shape):
        self.attention.build(x_shape, x_shape)

    def call(self, x, state):
        state = keras.ops.square(state)
        return self.attention(x, x, initial_state=state, return_state=True)

    def compute_output_spec(self, x, state):
        return self.attention.compute_output_spec(x, return_state=True)


@pytest.mark.slow
@pytest.mark.parametrize("feature_map, size, groups", [("elu", H, 2), ("favor", 256, None)])
def test_streaming_exports(feature_map, size, groups):
    """Export any number of new tokens and the state as inputs, output and state as outputs."""

    def make():
        return Streaming(
            ka.attention.LinearAttention(
                4,
                H,
                V,
                feature_map,
                num_key_value_heads=groups,
                mask="causal",
                chunk_size=3,
            )
        )

    assert_exports(Case(make, (f"B T {D}", f"B {groups or 4} {size} {V + 1}")))


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_an_empty_row_gives_zeros_and_no_gradient(causal, feature_map, dtype):
    layer = built(
        feature_map=feature_map, use_bias=False, dtype=dtype, mask="causal" if causal else None
    )
    tokens = np.ones((B, T), bool)
    tokens[1] = False
    tokens[0, :2] = False  # left padding: with the causal mask the first rows are empty
    query = tf.Variable(QUERY)
    with tf.GradientTape() as tape:
        output = layer(query, QUERY, value_mask=tokens)
        empty = tf.reduce_sum(output[1])
        if causal:
            empty += tf.reduce_sum(output[0, :2])
    output = np.asarray(output)
    assert np.all(output[1] == 0) and np.all(output[0, :2] == 0) == causal
    assert np.all(np.isfinite(output)) and np.any(output[0, 2:] != 0)
    gradients = tape.gradient(empty, [query, *(w.value for w in layer.trainable_weights)])
    assert all(g is None or np.all(np.asarray(g) == 0) for g in gradients)


def test_relu_queries_without_features_give_zeros():
    layer = built(feature_map="relu", use_bias=False)
    layer._query_dense.kernel.assign(-np.abs(layer._query_dense.kernel))
    query = tf.Variable(np.abs(QUERY))
    with tf.GradientTape() as tape:
        output = layer(query, VALUE)
        loss = tf.reduce_sum(output)
    assert np.all(np.asarray(output) == 0)
    assert np.all(np.asarray(tape.gradient(loss, query)) == 0)


@pytest.mark.parametrize("mask", [None, "causal"])
def test_implicit_padding_does_not_change_outputs(mask):
    """Give implicit masks. Padded queries give zeros."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, D, mask_zero=True)(ids)
    layer = ka.attention.LinearAttention(N, H, mask=mask, use_bias=False)
    model = keras.Model(ids, layer(x, x))
    tokens = np.array([[3, 4, 5, 0, 0]])
    output = np.asarray(model(tokens))
    np.testing.assert_allclose(output[:, :3], model(tokens[:, :3]), atol=1e-5)
    assert np.all(output[:, 3:] == 0)


def test_a_later_token_changes_no_earlier_output():
    layer = built(mask="causal", chunk_size=2, feature_map="favor")
    changed = QUERY.copy()
    changed[:, 4] *= 10
    before, after = np.asarray(layer(QUERY, QUERY)), np.asarray(layer(changed, changed))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert not np.allclose(before[:, 4:], after[:, 4:], atol=1e-3)


def test_state_stays_float32():
    """Count beyond 2048, where float16 cannot add 1."""
    layer = built(dtype="mixed_float16", mask="causal", scale=0.0)
    x = np.zeros((1, 3000, D), "float16")
    _, state = layer(x, x, return_state=True)
    np.testing.assert_array_equal(np.asarray(state)[..., -1], 3000)
    output, state = layer(x[:, :1], x[:, :1], initial_state=state, return_state=True)
    assert output.dtype == "float16"
    np.testing.assert_array_equal(np.asarray(state)[..., -1], 3001)


def largest(graph):
    """Return the number of elements of the largest tensor in a TensorFlow graph."""
    tensors = [output for op in graph.get_operations() for output in op.outputs]
    return max(tensor.shape.num_elements() or 0 for tensor in tensors)


@pytest.mark.parametrize("mask", [None, "causal"])
def test_memory_grows_linearly_in_both_passes(mask):
    """Find no tensor that grows with the square of the length."""
    layer = ka.attention.LinearAttention(2, 8, mask=mask, chunk_size=16)
    layer.build((1, None, D), (1, None, D))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, x) ** 2)
        return tape.gradient(loss, [w.value for w in layer.weights])

    sizes = []
    for length in (512, 2048):
        graph = tf.function(step).get_concrete_function(tf.TensorSpec((1, length, D))).graph
        sizes.append(largest(graph))
    assert sizes[1] <= 4 * sizes[0] and sizes[1] < 2 * 2048 * 2048 / 20


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 9])
def test_any_length_fits_any_chunk(length, dynamic):
    """Compare with one product of all queries and keys, also under `tf.function`."""
    q, k = random.random((2, B, 2, length, 3)).astype("float32")
    v = random.normal(size=(B, 2, length, 5)).astype("float32")
    expected = np.tril(q @ np.swapaxes(k, 2, 3)) @ v

    @tf.function(input_signature=[tf.TensorSpec((None, 2, None, w)) for w in (3, 3, 5)])
    def run(q, k, v):
        return linear.over_earlier(q, k, v, chunk_size=4)

    output, state = run(q, k, v) if dynamic else linear.over_earlier(q, k, v, chunk_size=4)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(state, np.swapaxes(k, 2, 3) @ v, atol=1e-5)


def softmax_attention(q, k, v):
    weights = np.exp(q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[-1]))
    return weights / weights.sum(-1, keepdims=True) @ v


def favor_error(num_features, draws=24):
    """Return the mean distance of FAVOR+ attention from softmax attention over several seeds."""
    numbers = np.random.default_rng(5)
    q, k, v = numbers.normal(size=(3, 1, 33, 8)) * np.array([0.5, 0.5, 1])[:, None, None, None]
    exact, errors = softmax_attention(q, k, v), []
    for seed in range(draws):
        favor = ka.attention.feature_maps.FavorFeatures(num_features, seed)
        drawn = favor.draw(8)
        queries = favor.queries(q[None].astype("float32"), drawn)
        keys = favor.keys(k[None].astype("float32"), drawn)
        weights = np.asarray(queries)[0] @ np.swapaxes(np.asarray(keys)[0], 1, 2)
        estimate = weights / weights.sum(-1, keepdims=True) @ v
        errors.append(np.sqrt(np.mean((estimate - exact) ** 2)))
    return np.mean(errors)


@pytest.mark.slow
def test_favor_converges_to_softmax_attention():
    """Check that the error falls as 1 / √F."""
    numbers = np.array([32, 128, 512, 2048])
    errors = np.array([favor_error(number) for number in numbers])
    slope, _ = np.polyfit(np.log(numbers), np.log(errors), 1)
    assert np.all(np.diff(errors) < 0) and -0.58 < slope < -0.42, errors
    assert errors[-1] < 0.01


def test_favor_is_unbiased():
    """Compare the mean of φ(q) · φ(k) / F over seeds with exp(q · k / √H)."""
    numbers = np.random.default_rng(1)
    q, k = numbers.normal(size=(2, 1, 1, 1, 4)).astype("float32")
    maps = [ka.attention.feature_maps.FavorFeatures(4, seed) for seed in range(3000)]
    drawn = np.concatenate([favor.draw(4) for favor in maps], axis=1)
    products = np.asarray(maps[0].keys(q, drawn) * maps[0].keys(k, drawn), "float64")
    estimates = np.mean(products.reshape(3000, 4), axis=1)
    expected = np.exp(np.sum(q * k) / 2)
    deviation = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - expected) < 4 * deviation < 0.1 * expected


def test_favor_directions_are_orthogonal_and_cover_the_sphere():
    drawn = ka.attention.feature_maps.FavorFeatures(20, seed=3).draw(8)  # two blocks and a half
    directions = drawn / np.linalg.norm(drawn, axis=0)
    for block in (directions[:, :8], directions[:, 8:16], directions[:, 16:]):
        np.testing.assert_allclose(block.T @ block, np.eye(block.shape[1]), atol=1e-6)
    many = ka.attention.feature_maps.FavorFeatures(40_000, seed=0).draw(8)
    np.testing.assert_allclose(many.mean(axis=1), 0, atol=0.03)
    np.testing.assert_allclose(many @ many.T / 40_000, np.eye(8), atol=0.05)
    np.testing.assert_allclose(np.mean(many**4, axis=1), 3, atol=0.2)  # as of Gaussian vectors


def test_favor_features_are_fixed_by_the_seed_and_saved(tmp_path):
    favor = ka.attention.feature_maps.FavorFeatures
    np.testing.assert_array_equal(favor(9, seed=1).draw(4), favor(9, seed=1).draw(4))
    assert not np.array_equal(favor(9, seed=1).draw(4), favor(9, seed=2).draw(4))
    x = keras.Input((None, D))
    layer = ka.attention.LinearAttention(N, H, feature_map="favor")
    model = keras.Model(x, layer(x, x))
    assert [w.shape for w in layer.non_trainable_weights] == [(H, 256)]
    other = keras.Model(x, ka.attention.LinearAttention(N, H, feature_map="favor")(x, x))
    for ours, theirs in zip(other.trainable_weights, model.trainable_weights, strict=True):
        ours.assign(theirs)
    assert not np.array_equal(model(QUERY), other(QUERY))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(QUERY), model(QUERY), atol=1e-6)


@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("size", [1e-3, 30.0, 1e3])
def test_favor_is_finite_for_any_keys(mask, size):
    layer = built(feature_map="favor", mask=mask, scale=size)
    x = tf.Variable(QUERY)
    with tf.GradientTape() as tape:
        output = layer(x, x)
        loss = tf.reduce_sum(output)
    assert np.all(np.isfinite(output))
    assert np.all(np.isfinite(tape.gradient(loss, x)))


def test_no_weights_are_recorded():
    layer = built()
    with ka.visualization.record_attention(layer) as maps:
        layer(QUERY, VALUE)
    assert not maps


def test_fits_an_encoder_block():
    block = ka.blocks.EncoderBlock(
        attention=ka.attention.LinearAttention(N, H), feed_forward=ka.blocks.FeedForward(9)
    )
    assert block(QUERY, training=True).shape == (B, T, D)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_heads=0, key_dim=4), "num_heads=0"),
        (dict(num_heads=2, key_dim=4, chunk_size=0), "chunk_size=0"),
        (dict(num_heads=6, key_dim=4, num_key_value_heads=4), "num_key_value_heads=4.*num_heads=6"),
        (dict(num_heads=2, key_dim=4, mask=ka.masks.Window(3)), "Window.*MultiHeadAttention"),
        (dict(num_heads=2, key_dim=4, feature_map="softmax"), "'softmax'.*elu, relu, favor"),
        (dict(num_heads=2, key_dim=4, feature_map=None), "feature_map=None"),
    ],
    ids=str,
)
def test_refuses_at_construction(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.attention.LinearAttention(**arguments)


def test_refuses_zero_features():
    with pytest.raises(ValueError, match="num_features=0"):
        ka.attention.feature_maps.FavorFeatures(0)


def test_causal_attention_refuses_other_numbers_of_keys_than_queries():
    with pytest.raises(ValueError, match="7 queries and 5 keys"):
        ka.attention.LinearAttention(N, H, mask="causal")(QUERY, VALUE)
