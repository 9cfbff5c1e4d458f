"""Head structures: norms of queries and keys, sinks, talking heads, memory slots."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition

B, N, K, T, S, D, H, M = 2, 4, 2, 5, 7, 13, 6, 3
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
LENGTHS = np.array([S, S - 3])
MASK = random.random((B, N, T, S)) < 0.6
MASK[0, 1, 2] = False  # a row without visible keys
MASKED = dict(attention_mask=MASK, value_mask=np.arange(S) < LENGTHS[:, None])
PADDED = dict(value_mask=np.arange(S) < LENGTHS[:, None], use_causal_mask=True)
SLOPES = [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]  # ALiBi's, for four heads


def rms_norm(x):
    return x / np.sqrt(np.mean(x**2) + 1e-6)


def layer_norm(x):
    return (x - x.mean()) / np.sqrt(np.mean((x - x.mean()) ** 2) + 1e-6)


def rotated(x, position):
    """Rotate by complex numbers with parts h and h + H/2."""
    half = len(x) // 2
    angles = position * 10000.0 ** (-np.arange(half) / half)
    turned = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag])


@pytest.mark.parametrize(
    "kind, norm, scale",
    [("rms_norm", rms_norm, "norm/scale"), ("layer_norm", layer_norm, "norm/gamma")],
)
def test_equals_the_definition_with_head_norm(kind, norm, scale):
    """Use a scale that differs by coordinate, to test the order of norm and position."""
    layer = ka.attention.MultiHeadAttention(
        N, H, num_key_value_heads=K, qk_norm=kind, position="rotary"
    )
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    query, key, value = definition.projected(layer, QUERY, VALUE)
    for x, name in [(query, f"query_{scale}"), (key, f"key_{scale}")]:
        for b, i, n in np.ndindex(x.shape[:3]):
            x[b, i, n] = rotated(norm(x[b, i, n]) * definition.weight(layer, name), i)
    heads, expected = definition.attention(
        query, key, value, definition.scaled_dot, definition.softmax, lambda b, i, j: True
    )
    output, weights = layer(QUERY, VALUE, return_attention_scores=True)
    np.testing.assert_allclose(weights, expected, atol=5e-6)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
def test_normalized_scores_do_not_grow_with_queries_and_keys(kind):
    layer = ka.attention.MultiHeadAttention(N, H, qk_norm=kind, use_bias=False, dtype="float16")
    _, weights = layer(QUERY, VALUE, return_attention_scores=True)
    _, larger = layer(900 * QUERY, 900 * VALUE, return_attention_scores=True)
    np.testing.assert_allclose(larger, weights, atol=5e-3)


def test_refuses_unknown_norms():
    with pytest.raises(ValueError, match="qk_norm='l2'.*'rms_norm', 'layer_norm'"):
        ka.attention.MultiHeadAttention(N, H, qk_norm="l2")


def layer_with_sink(**kwargs):
    layer = ka.attention.MultiHeadAttention(N, H, sink=True, **kwargs)
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    return layer


def allows(b, n, i, j):
    return j < LENGTHS[b] and MASK[b, n, i, j]


def softmax_with(sink, temperature=1.0):
    """Compute the softmax over scores and sink, and drop the sink's weight."""

    def normalize(z):
        return definition.softmax(np.append(z / temperature, sink))[:-1]

    return normalize


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_equals_the_definition_with_sink(temperature):
    layer = layer_with_sink(normalizer=ka.normalizers.Softmax(temperature=temperature))
    output, weights = layer(QUERY, VALUE, return_attention_scores=True, **MASKED)
    heads, expected = definition.by_head(
        *definition.projected(layer, QUERY, VALUE),
        definition.scaled_dot,
        [softmax_with(sink, temperature) for sink in definition.weight(layer, "sink/logits")],
        allows,
    )
    np.testing.assert_allclose(weights, expected, atol=2e-6)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=2e-5, rtol=1e-5)
    assert np.all(np.asarray(weights)[0, 1, 2] == 0)


def test_a_new_sink_equals_plus_one():
    layer = ka.attention.MultiHeadAttention(N, H, sink=True)
    fixed = ka.attention.MultiHeadAttention(N, H, normalizer=ka.normalizers.Softmax(plus_one=True))
    layer(QUERY, VALUE), fixed(QUERY, VALUE)
    fixed.set_weights(layer.get_weights()[:-1])
    np.testing.assert_allclose(layer(QUERY, VALUE), fixed(QUERY, VALUE), atol=1e-6)


@pytest.mark.parametrize("sink", [-300.0, -1e30])
def test_a_very_low_sink_changes_nothing(sink):
    layer = layer_with_sink()
    plain = ka.attention.MultiHeadAttention(N, H)
    plain.build(QUERY.shape, VALUE.shape)
    plain.set_weights(layer.get_weights()[:-1])
    layer.weights[-1].assign([sink] * N)
    np.testing.assert_allclose(
        layer(QUERY, VALUE, **MASKED), plain(QUERY, VALUE, **MASKED), atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("size", [-3e4, 3e4])
def test_large_scores_and_sinks_neither_overflow_nor_vanish(size):
    sink = ka.attention.MultiHeadAttention(1, H, sink=True)
    sink.build((B, T, D), (B, S, D))
    sink.weights[-1].assign([size])
    normalizer = sink._structures.wrap_normalizer(ka.normalizers.Softmax())
    weights = normalizer(np.full((1, 1, 2, 4), size, "float16"), np.array([True] * 3 + [False]))
    np.testing.assert_allclose(weights, [[[[0.25] * 3 + [0]] * 2]], atol=1e-3)


def test_an_empty_row_gives_the_sink_no_gradient():
    layer = layer_with_sink()
    with tf.GradientTape() as tape:
        _, weights = layer(
            QUERY,
            VALUE,
            attention_mask=np.zeros((B, T, S), bool),
            return_attention_scores=True,
        )
        loss = tf.reduce_sum(weights * random.normal(size=weights.shape))
    sink = layer.weights[-1]
    assert np.all(np.asarray(weights) == 0)
    assert np.all(np.asarray(tape.gradient(loss, sink.value)) == 0)


@pytest.mark.parametrize(
    "normalizer, message",
    [
        ("sparsemax", "sink=True.*Sparsemax.*denominator"),
        ("sigmoid", "sink=True.*Sigmoid.*denominator"),
        (ka.normalizers.Softmax(plus_one=True), "sink=True.*plus_one=True.*fixed at 0"),
    ],
    ids=str,
)
def test_a_sink_refuses_other_normalizers_than_softmax(normalizer, message):
    with pytest.raises(ValueError, match=message):
        ka.attention.MultiHeadAttention(N, H, sink=True, normalizer=normalizer)


def talking(**kwargs):
    layer = ka.attention.MultiHeadAttention(N, H, talking_heads=True, **kwargs)
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    return layer


@pytest.mark.parametrize("masked_by", ["no mask", "one mask", "a mask for each head"])
@pytest.mark.parametrize(
    "name, normalize", [("softmax", definition.softmax), ("sparsemax", definition.entmax(2.0))]
)
def test_equals_the_definition_with_talking_heads(name, normalize, masked_by):
    layer = talking(normalizer=name)
    mask = random.random((B, N if masked_by == "a mask for each head" else 1, T, S)) < 0.5
    mask[1, :, 2] = False  # no visible keys
    mask |= masked_by == "no mask"
    query, key, value = definition.projected(layer, QUERY, VALUE)
    before, after = (
        definition.weight(layer, f"talking_heads/{x}_kernel") for x in ("score", "weight")
    )
    heads, expected = np.zeros((B, T, N, H)), np.zeros((B, N, T, S))
    for b, i in np.ndindex(B, T):
        scores = [
            [definition.scaled_dot(query[b, i, m], k, m) for k in key[b, :, m]] for m in range(N)
        ]
        mixed = [sum(before[m, n] * np.array(scores[m]) for m in range(N)) for n in range(N)]
        weights = np.zeros((N, S))
        for n in range(N):
            seen = mask[b, n % mask.shape[1], i]
            if seen.any():
                weights[n, seen] = normalize(mixed[n][seen])
        for n in range(N):
            for j in np.flatnonzero(mask[b, n % mask.shape[1], i]):
                expected[b, n, i, j] = sum(weights[m, j] * after[m, n] for m in range(N))
                heads[b, i, n] += expected[b, n, i, j] * value[b, j, n]
    arguments = {} if masked_by == "no mask" else {"attention_mask": mask}
    output, weights = layer(QUERY, VALUE, return_attention_scores=True, **arguments)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=5e-5, rtol=1e-4)
    assert np.all(np.asarray(weights)[np.broadcast_to(~mask, weights.shape)] == 0)


def test_new_talking_heads_do_not_mix():
    layer = ka.attention.MultiHeadAttention(N, H, talking_heads=True)
    plain = ka.attention.MultiHeadAttention(N, H)
    layer(QUERY, VALUE), plain(QUERY, VALUE)
    plain.set_weights(layer.get_weights()[:-2])
    np.testing.assert_allclose(layer(QUERY, VALUE), plain(QUERY, VALUE), atol=1e-6)


def test_talking_heads_mix_slots_and_sinks():
    """Mix slots like other keys, with the sink in the denominator of each head."""
    layer = talking(sink=True, num_memory_slots=2)
    query, key, value = definition.projected(layer, QUERY, VALUE)
    slots, slot_values = (definition.weight(layer, f"memory_slots/{x}") for x in ("keys", "values"))
    slots, slot_values = (np.stack([x] * B) for x in (slots, slot_values))
    key, value = np.concatenate([key, slots], axis=1), np.concatenate([value, slot_values], axis=1)
    before, after = (
        definition.weight(layer, f"talking_heads/{x}_kernel") for x in ("score", "weight")
    )
    scores = np.einsum("btnh,bsnh->bnts", query, key) / np.sqrt(H)
    mixed = np.einsum("bmts,mn->bnts", scores, before)
    exponentials = np.exp(mixed)
    sink = np.exp(definition.weight(layer, "sink/logits"))[:, None, None]
    weights = exponentials / (exponentials.sum(-1, keepdims=True) + sink)
    expected = np.einsum("bmts,mn->bnts", weights, after)
    output, weights = layer(QUERY, VALUE, return_attention_scores=True)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    heads = np.einsum("bnts,bsnh->btnh", expected, value)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=5e-5, rtol=1e-4)


def layer_with_slots(**kwargs):
    kwargs = {"num_key_value_heads": K, "num_memory_slots": M, **kwargs}
    layer = ka.attention.MultiHeadAttention(N, H, **kwargs)
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    return layer


@pytest.mark.parametrize(
    "name, normalize",
    [("softmax", definition.softmax), ("sigmoid", lambda z: 1 / (1 + np.exp(-z)))],
)
def test_equals_the_definition_with_memory_slots(name, normalize):
    """Apply rotary, ALiBi and masks only to tokens."""
    layer = layer_with_slots(normalizer=name, position=["rotary", "alibi"], mask=ka.masks.Window(3))
    query, key, value = definition.projected(layer, QUERY, VALUE)
    slots = [definition.weight(layer, f"memory_slots/{x}") for x in ("keys", "values")]
    expected, heads = np.zeros((B, N, T, S + M)), np.zeros((B, T, N, H))
    for b, n, i in np.ndindex(B, N, T):
        seen = [j for j in range(S) if j < LENGTHS[b] and i - 3 < j <= i]
        scores = [
            rotated(query[b, i, n], i) @ rotated(key[b, j, n], j) / np.sqrt(H)
            - SLOPES[n] * abs(i - j)
            for j in seen
        ]
        scores += [query[b, i, n] @ slots[0][m, n // 2] / np.sqrt(H) for m in range(M)]
        columns, values = seen + [S + m for m in range(M)], [value[b, j, n] for j in seen]
        values += [slots[1][m, n // 2] for m in range(M)]
        for column, weight, v in zip(columns, normalize(np.array(scores)), values, strict=True):
            expected[b, n, i, column] = weight
            heads[b, i, n] += weight * v
    output, weights = layer(QUERY, VALUE, return_attention_scores=True, **PADDED)
    np.testing.assert_allclose(weights, expected, atol=5e-6)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize("score", sorted(ka.scores.NAMES))
def test_every_score_works_with_slots(score):
    """Copy the key and value of a token into a slot, which then gets half of its weight."""
    layer = layer_with_slots(score=score, num_key_value_heads=N, num_memory_slots=1)
    one = VALUE[:1, :1]
    slot = layer._structures.slots
    slot.keys.assign(np.asarray(layer.key_dense(one))[0])
    slot.values.assign(np.asarray(layer.value_dense(one))[0])
    _, weights = layer(QUERY, np.repeat(one, B, axis=0), return_attention_scores=True)
    np.testing.assert_allclose(weights, np.full((B, N, T, 2), 0.5), atol=1e-5)


def test_slots_have_no_position():
    """Move all positions by the same number, which changes nothing with a relative position."""
    layer = layer_with_slots(position="rotary")
    moved = dict(query_positions=np.arange(T) + 50, value_positions=np.arange(S) + 50)
    np.testing.assert_allclose(layer(QUERY, VALUE, **moved), layer(QUERY, VALUE), atol=1e-4)


@pytest.mark.parametrize(
    "mask",
    [
        dict(attention_mask=np.zeros((B, T, S), bool)),
        dict(attention_mask=np.zeros((B, 1, 1), bool)),
        dict(value_mask=np.zeros((B, S), bool)),
        dict(query_mask=np.zeros((B, T), bool)),
    ],
    ids=["pairs", "one for all", "keys", "queries"],
)
def test_no_mask_hides_slots(mask):
    layer = layer_with_slots()
    _, weights = layer(QUERY, VALUE, return_attention_scores=True, **mask)
    weights = np.asarray(weights)
    assert np.all(weights[..., :S] == 0) and np.all(weights[..., S:] > 0)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_weights_with_slots_have_all_keys_in_one_axis():
    x = random.normal(size=(B, 3, 5, D)).astype("float32")
    layer = ka.attention.MultiHeadAttention(N, H, num_memory_slots=M)
    _, weights = layer(x, x, return_attention_scores=True)
    assert weights.shape == (B, N, 3, 5, 3 * 5 + M)
    for shape, keys in [((3, 5, D), 3 * 5 + M), ((None, 5, D), None)]:
        symbol = keras.Input(shape)
        _, weights = layer(symbol, symbol, return_attention_scores=True)
        assert weights.shape == (None, N, shape[0], 5, keys)


def test_weights_with_slots_over_one_of_two_axes():
    x = random.normal(size=(B, 3, 5, D)).astype("float32")
    layer = ka.attention.MultiHeadAttention(N, H, num_memory_slots=M, attention_axes=2)
    output, weights = layer(x, x, return_attention_scores=True)
    symbol = keras.Input((3, 5, D))
    assert weights.shape == (B, 3, N, 5, 5 + M)
    assert layer(symbol, symbol, return_attention_scores=True)[1].shape[1:] == weights.shape[1:]
    alone = ka.attention.MultiHeadAttention(N, H, num_memory_slots=M)
    alone.build((B, 5, D), (B, 5, D))
    alone.set_weights(layer.get_weights())
    for i in range(3):
        np.testing.assert_allclose(output[:, i], alone(x[:, i], x[:, i]), atol=1e-5)


def test_recorded_weights_have_slots_last():
    x = keras.Input((None, D))
    model = keras.Model(x, layer_with_slots()(x, x))
    with ka.visualization.record_attention(model) as maps:
        model(QUERY)
    (weights,) = maps.values()
    assert weights.shape == (B, N, T, T + M)


class Distances(ka.positions.Position):
    """Adds the mean distance of the attended keys to all numbers of the output."""

    roles = frozenset({"bias"})

    def values(self, query_positions, key_positions, weights):
        far = keras.ops.cast(ka.positions.distances(query_positions, key_positions), "float32")
        mean = keras.ops.sum(weights * far, axis=-1)  # (B, N, T)
        return keras.ops.expand_dims(keras.ops.transpose(mean, (0, 2, 1)), axis=3)


def test_value_positions_apply_to_tokens_but_not_memory_slots():
    layer, plain = layer_with_slots(position=Distances()), layer_with_slots()
    plain.set_weights(layer.get_weights())
    output, weights = layer(QUERY, VALUE, return_attention_scores=True)
    far = np.sum(np.asarray(weights)[..., :S] * (np.arange(S) - np.arange(T)[:, None]), axis=-1)
    kernel = definition.weight(layer, "attention_output/kernel").sum(1)  # of each head, (N, D)
    added = np.tensordot(far.transpose(0, 2, 1), kernel, axes=1)
    np.testing.assert_allclose(output - plain(QUERY, VALUE), added, atol=1e-4)


def test_slots_refuse_other_kernels_than_dense():
    with pytest.raises(ValueError, match="implementation='banded'.*memory slots.*dense"):
        ka.attention.MultiHeadAttention(N, H, num_memory_slots=M, implementation="banded")
    layer = ka.attention.MultiHeadAttention(N, H, num_memory_slots=M, mask=ka.masks.Window(9))
    assert ka.attention.explain(layer, 4096).implementation == "dense"


def test_refuses_a_negative_number_of_slots():
    with pytest.raises(ValueError, match="num_memory_slots=-1.*at least 0"):
        ka.attention.MultiHeadAttention(N, H, num_memory_slots=-1)
