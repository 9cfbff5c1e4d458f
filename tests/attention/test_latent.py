"""Latent attention against its definition with loops, its cache, and its two forms."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.attention import Visibility
from tests.attention import definition
from tests.litert import assert_converts

B, N, T, S, D = 2, 3, 5, 7, 13
H, C, R = 11, 17, 6
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
LENGTHS = np.array([S, S - 2])
PADDING = np.arange(S) < LENGTHS[:, None]
VARIANTS = [{}, {"query_latent_dim": 5}, {"value_dim": 4}, {"position": None}]


def built(**kwargs):
    layer = ka.attention.LatentAttention(N, H, latent_dim=C, rotary_dim=R, **kwargs)
    layer.build((B, T, D), (B, S, D))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape, scale=0.5))
    return layer


def by_definition(layer, query, value, allows):
    """Compute output, weights and cache, one token, query and head at a time."""
    weights = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}

    def normalized(x, name):
        return x / np.sqrt(np.mean(x**2) + 1e-6) * weights[f"{name}/scale"]

    def turned(x, position):
        if layer.position is None:
            return x
        rates = 10000.0 ** (-2 * np.arange(R // 2) / R)
        z = (x[: R // 2] + 1j * x[R // 2 :]) * np.exp(1j * position * rates)
        return np.concatenate([z.real, z.imag])

    cache = np.zeros((B, S, C + R))
    for b in range(B):
        for j in range(S):
            latent = normalized(value[b, j] @ weights["latent/kernel"], "latent_norm")
            key = turned(value[b, j] @ weights["rotary_key/kernel"][:, 0], j)
            cache[b, j] = [*latent, *key]
    output, shown = np.zeros((B, T, D)), np.zeros((B, N, T, S))
    for b in range(B):
        for i in range(T):
            seen = [j for j in range(S) if allows(b, i, j)]
            x = query[b, i]
            if layer.query_latent_dim:
                x = normalized(x @ weights["query_down/kernel"], "query_norm")
            for n in range(N if seen else 0):
                q = x @ weights["query/kernel"][:, n]
                scores = []
                for j in seen:
                    content = q[:H] @ (cache[b, j, :C] @ weights["key_up/kernel"][:, n])
                    scores.append((content + turned(q[H:], i) @ cache[b, j, C:]) / np.sqrt(H + R))
                shown[b, n, i, seen] = definition.softmax(np.array(scores))
                value_up = weights["value_up/kernel"][:, n]
                mixed = sum(shown[b, n, i, j] * (cache[b, j, :C] @ value_up) for j in seen)
                output[b, i] += mixed @ weights["attention_output/kernel"][n]
    return output, shown, cache


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_equals_the_definition(variant, causal):
    layer = built(**variant)
    expected, expected_weights, cache = by_definition(
        layer, QUERY, VALUE, lambda b, i, j: j < LENGTHS[b] and (j <= i or not causal)
    )
    with ka.visualization.record_attention(layer) as maps:
        output = layer(QUERY, VALUE, value_mask=PADDING, use_causal_mask=causal)
    np.testing.assert_allclose(output, expected, atol=1e-4, rtol=1e-4)
    (weights,) = maps.values()
    np.testing.assert_allclose(weights, expected_weights, atol=2e-5)
    np.testing.assert_allclose(layer.compress(VALUE), cache, atol=2e-5)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_absorbed_form_equals_the_plain_form(variant):
    """Compare output, weights and gradients with masks and an empty row."""
    layer = built(**variant)
    allowed = random.random((B, T, S)) < 0.6
    allowed[1, 2] = False
    results = []
    for absorb in (False, True):
        query, value = tf.Variable(QUERY), tf.Variable(VALUE)
        with tf.GradientTape() as tape, ka.visualization.record_attention(layer) as maps:
            output = layer.attend_compressed(
                query,
                layer.compress(value),
                Visibility(attention_mask=allowed[:, None]),
                absorb=absorb,
            )
            loss = tf.reduce_sum(output**2)
        (weights,) = maps.values()
        variables = [query, value, *(w.value for w in layer.weights)]
        results.append([output, weights, *tape.gradient(loss, variables)])
        assert np.all(np.asarray(output)[1, 2] == 0)
    for plain, absorbed in zip(*results, strict=True):
        size = max(1, np.abs(plain).max())
        np.testing.assert_allclose(plain, absorbed, atol=2e-5 * size, rtol=1e-4)


@pytest.mark.parametrize("absorb", [False, True], ids=["plain", "absorbed"])
@pytest.mark.parametrize("pieces", [[1] * S, [3, 1, 3]], ids=["one by one", "in pieces"])
def test_decoding_from_the_cache_equals_the_full_pass(pieces, absorb):
    layer = built(mask="causal", query_latent_dim=5)
    whole = layer(VALUE, VALUE)
    cache, outputs, start = np.zeros((B, 0, C + R), "float32"), [], 0
    for length in pieces:
        new, where = VALUE[:, start : start + length], np.arange(start, start + length)
        cache = np.concatenate([cache, layer.compress(new, where)], axis=1)
        visibility = Visibility(query_positions=where)
        outputs.append(layer.attend_compressed(new, cache, visibility, absorb=absorb))
        start += length
    assert cache.shape == (B, S, C + R)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), whole, atol=1e-5)


def test_decoding_rows_of_different_lengths():
    """Give each row its own positions, and padding in the cache."""
    layer = built()
    new = random.normal(size=(B, 1, D)).astype("float32")
    cache = layer.compress(np.concatenate([VALUE, new], axis=1), [[*range(S), n] for n in LENGTHS])
    output = layer.attend_compressed(
        new,
        cache,
        Visibility(
            query_positions=LENGTHS[:, None],
            key_mask=np.concatenate([PADDING, np.ones((B, 1), bool)], axis=1),
        ),
    )
    for b, length in enumerate(LENGTHS):
        alone = np.concatenate([VALUE[b : b + 1, :length], new[b : b + 1]], axis=1)
        expected = layer(alone, alone)[:, -1:]
        np.testing.assert_allclose(output[b : b + 1], expected, atol=1e-5)


@pytest.mark.slow
def test_a_step_exports_with_its_cache():
    """Export any number of new tokens and a cache as inputs, the longer cache as output."""
    layer = built(mask="causal")

    def step(tokens, cache):
        length, new = tf.shape(cache)[1], tf.shape(tokens)[1]
        positions = tf.range(length, length + new)
        cache = tf.concat([cache, layer.compress(tokens, positions)], axis=1)
        visibility = Visibility(query_positions=positions)
        return {"output": layer.attend_compressed(tokens, cache, visibility), "c": cache}

    arrays = {"tokens": VALUE[:, 4:], "cache": np.asarray(layer.compress(VALUE[:, :4]))}
    np.testing.assert_allclose(
        step(**{k: tf.constant(v) for k, v in arrays.items()})["output"],
        layer(VALUE, VALUE)[:, 4:],
        atol=1e-5,
    )
    assert_converts(step, arrays, dynamic=2, variables=[w.value for w in layer.weights])


@pytest.mark.slow
def test_a_step_exports_with_a_cache_of_fixed_size():
    """Write at an index. The causal mask hides later tokens."""
    layer = built(mask="causal")

    def step(token, index, cache):
        where = tf.reshape(index, (1,))
        new = layer.compress(token, where)
        cache = keras.ops.slice_update(cache, (0, index, 0), new)
        visibility = Visibility(query_positions=where)
        return {"output": layer.attend_compressed(token, cache, visibility), "c": cache}

    whole = np.asarray(layer(VALUE, VALUE))
    cache = np.zeros((B, S, C + R), "float32")
    for i in range(S):
        result = step(tf.constant(VALUE[:, i : i + 1]), tf.constant(i), tf.constant(cache))
        cache = np.asarray(result["c"])
        np.testing.assert_allclose(result["output"], whole[:, i : i + 1], atol=1e-5)
    arrays = {"token": VALUE[:, 3:4], "index": np.array(3, "int32"), "cache": cache}
    assert_converts(step, arrays, dynamic=1, variables=[w.value for w in layer.weights])


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("absorb", [False, True], ids=["plain", "absorbed"])
def test_an_empty_row_gives_zeros_and_no_gradient(dtype, absorb):
    layer = built(dtype=dtype)
    nothing = np.ones((B, T, S), bool)
    nothing[0, 1] = nothing[1] = False
    query = tf.Variable(QUERY)
    with tf.GradientTape() as tape:
        compressed = layer.compress(VALUE)
        visibility = Visibility(attention_mask=nothing[:, None])
        output = layer.attend_compressed(query, compressed, visibility, absorb=absorb)
        empty = tf.reduce_sum(output[1]) + tf.reduce_sum(output[0, 1])
    assert compressed.dtype == output.dtype == layer.compute_dtype
    assert np.all(np.asarray(output)[1] == 0) and np.all(np.asarray(output)[0, 1] == 0)
    assert np.all(np.asarray(output)[0, 0] != 0)
    gradients = tape.gradient(empty, [query, *(w.value for w in layer.weights)])
    assert all(g is None or np.all(np.asarray(g) == 0) for g in gradients)


def test_only_the_rotated_part_depends_on_positions():
    layer = built()
    first, moved_keys = layer.compress(VALUE), layer.compress(VALUE, np.arange(S) + 100)
    np.testing.assert_array_equal(first[:, :, :C], moved_keys[:, :, :C])
    assert not np.allclose(first[:, :, C:], moved_keys[:, :, C:], atol=0.1)
    moved = layer(
        QUERY, VALUE, query_positions=np.arange(T) + 100, value_positions=np.arange(S) + 100
    )
    np.testing.assert_allclose(layer(QUERY, VALUE), moved, atol=1e-3)


ROTATIONS = [
    name for name, cls in ka.positions.NAMES.items() if getattr(cls, "roles", None) == {"rotate"}
]


@pytest.mark.parametrize("name", ROTATIONS)
def test_every_rotation_depends_only_on_distances(name):
    layer = built(position=name)
    moved = layer(QUERY, QUERY, query_positions=range(40, 45), value_positions=range(40, 45))
    np.testing.assert_allclose(layer(QUERY, QUERY), moved, atol=1e-3)
    stretched = layer(
        QUERY, QUERY, query_positions=range(0, 10, 2), value_positions=range(0, 10, 2)
    )
    assert not np.allclose(stretched, moved, atol=1e-2)


def test_implicit_padding_does_not_change_outputs():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, D, mask_zero=True)(ids)
    model = keras.Model(ids, ka.attention.LatentAttention(N, H, C, R, query_latent_dim=5)(x, x))
    tokens = np.array([[3, 4, 5, 0, 0]])
    output = np.asarray(model(tokens))
    np.testing.assert_allclose(output[:, :3], model(tokens[:, :3]), atol=1e-5)
    assert np.all(output[:, 3:] == 0)


def test_quantized_projections_are_not_absorbed():
    layer = built()
    exact, compressed = layer(QUERY, VALUE), layer.compress(VALUE)
    layer._key_up.quantize("int8")
    quantized = layer.attend_compressed(QUERY, compressed, absorb=False)
    assert np.abs(quantized - exact).max() < 0.1 * np.abs(exact).max()
    with pytest.raises(ValueError, match="'key_up'.*int8.*absorb=False"):
        layer.attend_compressed(QUERY, compressed)


def test_the_absorbed_form_includes_lora():
    layer = built()
    layer._key_up.enable_lora(2)
    layer._key_up.lora_kernel_b.assign(np.ones(layer._key_up.lora_kernel_b.shape))
    absorbed = layer.attend_compressed(QUERY, layer.compress(VALUE))
    np.testing.assert_allclose(absorbed, layer(QUERY, VALUE), atol=1e-4)


def test_fits_an_encoder_block():
    block = ka.blocks.EncoderBlock(
        attention=ka.attention.LatentAttention(N, H, C, R), feed_forward=ka.blocks.FeedForward(9)
    )
    segments = np.array([[1, 1, 1, 2, 2]] * B)
    output = block(QUERY, segment_ids=segments, positions=np.array([0, 1, 2, 0, 1]))
    np.testing.assert_allclose(output[:, :3], block(QUERY[:, :3]), atol=1e-5)
    np.testing.assert_allclose(output[:, 3:], block(QUERY[:, 3:]), atol=1e-5)


def test_refuses_to_compress_before_it_is_built():
    layer = ka.attention.LatentAttention(N, H, C, R, name="early")
    with pytest.raises(ValueError, match="early has no weights.*build"):
        layer.compress(VALUE)


@pytest.mark.parametrize("absorb", [False, True], ids=["plain", "absorbed"])
@pytest.mark.parametrize("kernel", [None, "banded", "chunked"])
def test_every_kernel_equals_dense(kernel, absorb):
    """Compare output and gradients for a window, which the banded kernel needs."""
    results = []
    for name in ("dense", kernel):
        layer = built(mask=ka.masks.Window(2), implementation=name)
        layer.set_weights(results[0][-1] if results else layer.get_weights())
        query = tf.Variable(QUERY)
        with tf.GradientTape() as tape:
            compressed = layer.compress(query)
            output = layer.attend_compressed(query, compressed, Visibility("causal"), absorb=absorb)
            loss = tf.reduce_sum(output**2)
        results.append([output, tape.gradient(loss, query), layer.get_weights()])
    for dense, other in zip(results[0][:2], results[1][:2], strict=True):
        size = max(1, np.abs(dense).max())
        np.testing.assert_allclose(dense, other, atol=1e-5 * size, rtol=1e-4)


def test_dropout_acts_only_in_training():
    layer = built(dropout=0.5, seed=1)
    still = layer(QUERY, VALUE)
    np.testing.assert_array_equal(still, layer(QUERY, VALUE, training=False))
    assert not np.allclose(still, layer(QUERY, VALUE, training=True), atol=1e-3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_heads=0), "num_heads=0"),
        (dict(latent_dim=0), "latent_dim=0"),
        (dict(rotary_dim=2.5), "rotary_dim=2.5"),
        (dict(query_latent_dim=0), "query_latent_dim=0"),
        (dict(position="alibi"), "ALiBi.*bias.*rotary"),
        (dict(position="sinusoidal"), "Sinusoidal.*embedding"),
        (dict(normalizer=None), "normalizer=None"),
    ],
    ids=str,
)
def test_refuses_at_construction(arguments, message):
    sizes = dict(num_heads=2, key_dim=4, latent_dim=4, rotary_dim=2)
    with pytest.raises(ValueError, match=message):
        ka.attention.LatentAttention(**{**sizes, **arguments})
