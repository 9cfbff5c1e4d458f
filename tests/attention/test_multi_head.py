"""MultiHeadAttention against Keras's layers, and its other options."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition
from tests.export.helpers import assert_exports

B, N, T, S, D, H = 2, 3, 5, 7, 13, 11
random = np.random.default_rng(0)
QUERY = random.normal(size=(B, T, D)).astype("float32")
VALUE = random.normal(size=(B, S, D)).astype("float32")
LAST_IS_PADDING = np.arange(S) < np.array([[S], [S - 2]])


def pair(*inputs, **kwargs):
    """Return Keras's layer and ours with the same random weights."""
    theirs = keras.layers.MultiHeadAttention(**kwargs)
    ours = ka.attention.MultiHeadAttention(**kwargs)
    theirs(*inputs), ours(*inputs)
    weights = [random.normal(size=w.shape, scale=0.5) for w in theirs.get_weights()]
    theirs.set_weights(weights), ours.set_weights(weights)
    return theirs, ours


def assert_same(theirs, ours, *inputs, **kwargs):
    expected, expected_weights = theirs(*inputs, return_attention_scores=True, **kwargs)
    output, weights = ours(*inputs, return_attention_scores=True, **kwargs)
    np.testing.assert_allclose(output, expected, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)
    np.testing.assert_allclose(ours(*inputs, **kwargs), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"value_dim": 5},
        {"use_bias": False},
        {"use_gate": True, "value_dim": 4},
        {"output_shape": 6},
        {"output_shape": (2, 3)},
        {"sliding_window": 3},
        {"dropout": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "call", [{}, {"use_causal_mask": True}, {"attention_mask": "drawn"}], ids=str
)
def test_equals_keras(arguments, call):
    theirs, ours = pair(QUERY, VALUE, num_heads=N, key_dim=H, **arguments)
    assert [w.shape for w in ours.weights] == [w.shape for w in theirs.weights]
    assert [w.path.split("/", 1)[1] for w in ours.weights] == [
        w.path.split("/", 1)[1] for w in theirs.weights
    ]
    if call:
        call = {**call}
    if "attention_mask" in call:
        drawn = random.random((B, T, S)) < 0.6
        drawn[:, np.arange(T), np.arange(T)] = True  # no row is empty, even with a window
        call = {"attention_mask": drawn}
    assert_same(theirs, ours, QUERY, VALUE, **call)


def test_equals_keras_with_its_own_key_and_padding():
    key = random.normal(size=(B, S, 4)).astype("float32")
    theirs, ours = pair(QUERY, VALUE, key, num_heads=N, key_dim=H)
    assert_same(theirs, ours, QUERY, VALUE, key, value_mask=LAST_IS_PADDING)
    assert_same(theirs, ours, QUERY, VALUE, key, key_mask=LAST_IS_PADDING)


@pytest.mark.parametrize("axes", [1, 2, (1, 2), -2, None])
def test_equals_keras_over_axes(axes):
    query = random.normal(size=(B, 3, 5, D)).astype("float32")
    same = random.normal(size=(B, 3, 5, D)).astype("float32")
    theirs, ours = pair(query, same, num_heads=N, key_dim=H, attention_axes=axes)
    assert_same(theirs, ours, query, same)
    if axes == (1, 2):
        drawn = random.random((B, 3, 5, 3, 5)) < 0.6
        drawn[:, :, :, 0, 0] = True
        assert_same(theirs, ours, query, same, attention_mask=drawn)


def test_mask_over_one_of_two_axes():
    """Give each sequence along the other axis its own mask, or all the same."""
    x = random.normal(size=(B, 3, 5, D)).astype("float32")
    layer = ka.attention.MultiHeadAttention(N, H, attention_axes=2)
    own = random.random((B, 3, 5, 5)) < 0.7
    together = np.asarray(layer(x, x, attention_mask=own[:, :, None]))
    for i in range(3):
        alone = ka.attention.MultiHeadAttention(N, H)
        alone.build((B, 5, D), (B, 5, D))
        alone.set_weights(layer.get_weights())
        np.testing.assert_allclose(
            together[:, i], alone(x[:, i], x[:, i], attention_mask=own[:, i]), atol=1e-5
        )


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_equals_keras_grouped_queries(groups):
    theirs = keras.layers.GroupQueryAttention(
        head_dim=H, num_query_heads=6, num_key_value_heads=groups
    )
    ours = ka.attention.MultiHeadAttention(6, H, num_key_value_heads=groups)
    theirs(QUERY, VALUE), ours(QUERY, VALUE)
    weights = [random.normal(size=w.shape, scale=0.5) for w in theirs.get_weights()]
    theirs.set_weights(weights), ours.set_weights(weights)
    assert_same(theirs, ours, QUERY, VALUE, value_mask=LAST_IS_PADDING)


@pytest.mark.parametrize("score", ["additive", "concat", "squared_distance", "bilinear", "cosine"])
def test_query_head_uses_key_head_of_its_group(score):
    """Check for every score that head h uses key and value head h // group."""
    grouped = ka.attention.MultiHeadAttention(6, H, num_key_value_heads=2, score=score)
    whole = ka.attention.MultiHeadAttention(6, H, score=score)
    grouped(QUERY, VALUE), whole(QUERY, VALUE)
    for theirs, ours in zip(whole.weights, grouped.weights, strict=True):
        value = random.normal(size=ours.shape)
        ours.assign(value)
        if ours.shape != theirs.shape:
            value = np.repeat(value, 3, axis=-2)
        theirs.assign(value)
    np.testing.assert_allclose(grouped(QUERY, VALUE), whole(QUERY, VALUE), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_grouped_queries_equal_the_definition(groups):
    """Loop over heads. Head h uses keys and values of h // (N / K)."""
    layer = ka.attention.MultiHeadAttention(6, H, value_dim=4, num_key_value_heads=groups)
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    assert layer.key_dense.kernel.shape == (D, groups, H)
    mask = random.random((B, 6, T, S)) < 0.6
    heads, expected = definition.by_head(
        *definition.projected(layer, QUERY, VALUE),
        definition.scaled_dot,
        [definition.softmax] * 6,
        lambda b, n, i, j: mask[b, n, i, j],
    )
    output, weights = layer(QUERY, VALUE, attention_mask=mask, return_attention_scores=True)
    np.testing.assert_allclose(weights, expected, atol=5e-6)
    np.testing.assert_allclose(output, definition.merged(layer, heads), atol=5e-5, rtol=1e-4)


def test_fully_masked_rows_give_zero_weights_and_outputs():
    layer = ka.attention.MultiHeadAttention(N, H, use_bias=False)
    nothing = np.zeros((B, T, S), bool)
    nothing[0, 1:] = True
    output, weights = layer(QUERY, VALUE, attention_mask=nothing, return_attention_scores=True)
    assert np.all(np.asarray(weights)[0, :, 0] == 0) and np.all(np.asarray(weights)[1] == 0)
    assert np.all(np.asarray(output)[0, 0] == 0) and np.all(np.asarray(output)[1] == 0)
    np.testing.assert_array_equal(layer(QUERY, VALUE, attention_mask=nothing), output)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_fully_masked_rows_have_zero_gradients(dtype):
    layer = ka.attention.MultiHeadAttention(N, H, use_bias=False, dtype=dtype)
    query = tf.Variable(QUERY)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(query, VALUE, attention_mask=np.zeros((B, T, S), bool)))
    gradients = tape.gradient(loss, [query, *(w.value for w in layer.weights)])
    assert all(np.all(np.asarray(g) == 0) for g in gradients)


def test_attention_keeps_the_mask_on_its_input_tensor():
    """Attend twice to one masked tensor. In Keras the second layer attends to padding."""
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, D, mask_zero=True)(ids)
    layers = [ka.attention.MultiHeadAttention(N, H) for _ in range(2)]
    model = keras.Model(ids, [layer(x, x) for layer in layers])
    tokens = np.array([[3, 4, 5, 0, 0]])
    for padded, short in zip(model(tokens), model(tokens[:, :3]), strict=True):
        np.testing.assert_allclose(padded[:, :3], short, atol=1e-5)
    eager = keras.layers.Embedding(20, D, mask_zero=True)(tokens)
    layers[0](eager, eager)
    assert eager._keras_mask is not None


def test_symbolic_weights_have_the_shape_of_eager_weights():
    layer = ka.attention.MultiHeadAttention(N, H)
    query, value = keras.Input((T, D)), keras.Input((S, D))
    _, weights = layer(query, value, return_attention_scores=True)
    assert weights.shape == (None, N, T, S)
    after = keras.layers.Dense(4)(weights)
    assert keras.Model([query, value], after)([QUERY, VALUE]).shape == (B, N, T, 4)


@pytest.mark.parametrize("size", [-3e4, 3e4])
def test_large_float16_scores_neither_leak_nor_overflow(size):
    """Use scores near the largest float16."""
    weights = ka.normalizers.Softmax()(
        np.full((1, 1, 2, 4), size, "float16"), mask=np.array([True, True, False, False])
    )
    np.testing.assert_allclose(weights, [[[[0.5, 0.5, 0, 0]] * 2]], atol=1e-3)


def test_rows_emptied_by_two_masks_are_zero():
    """Combine left padding and a causal mask."""
    layer = ka.attention.MultiHeadAttention(N, H, mask="causal", use_bias=False)
    padding = np.array([[False, False, True, True, True]] * B)
    output, weights = layer(QUERY, QUERY, value_mask=padding, return_attention_scores=True)
    assert np.all(np.asarray(weights)[:, :, :2] == 0) and np.all(np.asarray(output)[:, :2] == 0)
    np.testing.assert_allclose(np.asarray(weights)[:, :, 2:].sum(-1), 1, atol=1e-6)


def test_causal_mask_counts_from_first_key_or_by_positions():
    layer = ka.attention.MultiHeadAttention(N, H, mask="causal")
    _, weights = layer(QUERY[:, :2], VALUE, return_attention_scores=True)
    assert np.all((np.asarray(weights) > 0) == np.tri(2, S, dtype=bool))
    _, weights = layer(
        QUERY[:, :2], VALUE, query_positions=np.array([S - 2, S - 1]), return_attention_scores=True
    )
    assert np.all((np.asarray(weights) > 0) == np.tri(2, S, S - 2, dtype=bool))


def test_window_of_one_attends_only_to_itself():
    layer = ka.attention.MultiHeadAttention(N, H, mask=ka.masks.Window(1))
    _, weights = layer(QUERY, QUERY, return_attention_scores=True)
    weights = np.asarray(weights)[0, 0]
    np.testing.assert_allclose(weights, np.eye(T), atol=1e-6)  # 1 - 6e-8 on some processors
    assert np.all(weights[~np.eye(T, dtype=bool)] == 0)


def test_gate_and_window_both_affect_the_output():
    layer = ka.attention.MultiHeadAttention(N, H, use_gate=True, sliding_window=1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(QUERY, QUERY) ** 2)
    gate = [w for w in layer.weights if "gate" in w.path]
    assert len(gate) == 2
    assert all(np.any(np.asarray(g) != 0) for g in tape.gradient(loss, [w.value for w in gate]))


def test_explicit_and_implicit_masks_are_combined():
    embedded = keras.layers.Embedding(20, D, mask_zero=True)(np.array([[3, 4, 5, 6, 0]] * B))
    also = np.array([[[True, False, True, True, True]]] * B)
    layer = ka.attention.MultiHeadAttention(N, H)
    _, weights = layer(embedded, embedded, attention_mask=also, return_attention_scores=True)
    assert np.all((np.asarray(weights)[:, :, :4] > 0) == np.array([True, False, True, True, False]))


def test_true_means_may_attend_in_every_mask():
    layer = ka.attention.MultiHeadAttention(N, H)
    first = np.arange(S) < 1
    ways = [
        dict(attention_mask=np.broadcast_to(first, (B, T, S))),
        dict(value_mask=np.broadcast_to(first, (B, S))),
        dict(key_mask=np.broadcast_to(first, (B, S))),
    ]
    for way in ways:
        _, weights = layer(QUERY, VALUE, return_attention_scores=True, **way)
        np.testing.assert_allclose(np.asarray(weights)[..., 0], 1, atol=1e-6)
        assert np.all(np.asarray(weights)[..., 1:] == 0)
    prefix = ka.attention.MultiHeadAttention(N, H, mask=ka.masks.Prefix(1))
    prefix(QUERY, VALUE)
    prefix.set_weights(layer.get_weights())
    np.testing.assert_allclose(prefix(QUERY, VALUE), layer(QUERY, VALUE, **ways[0]), atol=1e-6)


@pytest.mark.parametrize("function", [lambda f: f, tf.function], ids=["eager", "tf.function"])
def test_implicit_masks_apply_under_tf_function_and_with_dropout(function):
    """Test for Keras issues 17655 and 23038: masks lost in graphs or with dropout."""
    table = keras.layers.Embedding(20, D, mask_zero=True)
    layer = ka.attention.MultiHeadAttention(N, H, dropout=0.5)

    @function
    def run(tokens):
        x = table(tokens)
        return layer(x, x, use_causal_mask=True, return_attention_scores=True)[1]

    weights = np.asarray(run(tf.constant([[3, 4, 0, 5]])))
    np.testing.assert_array_equal(
        weights[0, 0] > 0, [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 1]]
    )


def test_returning_weights_does_not_change_the_output():
    """Compare outputs with and without weights, which differ in Keras."""
    layer = ka.attention.MultiHeadAttention(N, H)
    with_weights, _ = layer(QUERY, VALUE, value_mask=LAST_IS_PADDING, return_attention_scores=True)
    np.testing.assert_array_equal(layer(QUERY, VALUE, value_mask=LAST_IS_PADDING), with_weights)


@pytest.mark.parametrize("slots", [0, 2])
def test_dropout_does_not_change_masks_or_returned_weights(slots):
    """Use one-hot values, so that the output shows the dropped weights.

    As in Keras, the returned weights are those before dropout.
    """
    share, length = 0.4, 40
    keys = length + slots
    layer = ka.attention.MultiHeadAttention(
        1, H, value_dim=keys, dropout=share, use_bias=False, seed=3, num_memory_slots=slots
    )
    values = np.eye(length, keys, dtype="float32")[None]
    queries = random.normal(size=(1, length, keys)).astype("float32")
    layer(queries, values)
    layer.value_dense.kernel.assign(np.eye(keys)[:, None])
    layer.output_dense.kernel.assign(np.eye(keys)[None])
    if slots:
        layer._structures.slots.values.assign(np.eye(keys)[length:, None])
    mask = np.tri(length, k=-1, dtype=bool)  # the first query sees no token
    met, weights = layer(
        queries, values, attention_mask=mask[None], training=True, return_attention_scores=True
    )
    met, weights = np.asarray(met)[0], np.asarray(weights)[0, 0]
    mask = np.pad(mask, [(0, 0), (0, slots)], constant_values=True)
    assert np.all(met[~mask] == 0) and np.all(weights[~mask] == 0)
    np.testing.assert_allclose(weights.sum(-1), mask.any(-1), atol=1e-6)
    is_kept = met != 0
    np.testing.assert_allclose(met[is_kept], weights[is_kept] / (1 - share), rtol=1e-5)
    assert abs(is_kept[mask].mean() - (1 - share)) < 0.06
    assert not slots or 0 < is_kept[:, length:].mean() < 1


def test_a_subclass_may_override_compute_attention_as_in_keras():
    """Override `_compute_attention` with the arguments of Keras's."""

    class Means(ka.attention.MultiHeadAttention):
        def _compute_attention(
            self,
            query,
            key,
            value,
            attention_mask=None,
            training=None,
            return_attention_scores=False,
        ):
            mean = keras.ops.mean(value, axis=1, keepdims=True)
            return mean + keras.ops.zeros_like(query), keras.ops.zeros((B, N, T, S))

    layer = Means(N, H)
    output = np.asarray(layer(QUERY, VALUE))
    np.testing.assert_allclose(output, output[:, :1].repeat(T, axis=1), atol=1e-6)


STRUCTURES = {
    "qk_norm": dict(qk_norm="rms_norm"),
    "gate": dict(use_gate=True),
    "sink": dict(sink=True),
    "talking heads": dict(talking_heads=True),
    "slots": dict(num_memory_slots=2),
    "sink and talking heads": dict(sink=True, talking_heads=True, qk_norm="layer_norm"),
    "all": dict(sink=True, talking_heads=True, qk_norm="layer_norm", num_memory_slots=1),
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_masks_are_exact_in_every_structure(name, dtype):
    """Mask each head differently, with empty rows, and check weights and gradients."""
    arguments = STRUCTURES[name]
    layer = ka.attention.MultiHeadAttention(N, H, dtype=dtype, **arguments)
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer, scale=0.2)  # no weight underflows in float16
    mask = random.random((B, N, T, S)) < 0.5
    mask[0, :, 1] = False
    with tf.GradientTape() as tape:
        output, weights = layer(QUERY, VALUE, attention_mask=mask, return_attention_scores=True)
        loss = tf.reduce_sum(tf.cast(output, "float32") ** 2)
    seen = np.asarray(keras.ops.cast(weights, "float32"))[..., :S]
    assert np.all(seen[~mask] == 0) and np.all(seen[mask] != 0)
    gradients = tape.gradient(loss, [w.value for w in layer.trainable_weights])
    assert all(np.all(np.isfinite(keras.ops.cast(g, "float32"))) for g in gradients)


@pytest.mark.parametrize("name", STRUCTURES)
def test_padding_does_not_change_outputs_in_any_structure(name):
    layer = ka.attention.MultiHeadAttention(N, 10, position="rotary", **STRUCTURES[name])
    layer.build(QUERY.shape, VALUE.shape)
    definition.randomize(layer)
    padded = layer(QUERY, VALUE, value_mask=np.arange(S)[None] < S - 3)
    np.testing.assert_allclose(padded, layer(QUERY, VALUE[:, :-3]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["banded", "chunked"])
@pytest.mark.parametrize("name", ["qk_norm", "sink", "talking heads", "sink and talking heads"])
def test_structures_in_slices_equal_dense_with_gradients(name, kernel):
    arguments = dict(STRUCTURES[name], mask=ka.masks.Window(9) | ka.masks.Global(2))
    x = tf.Variable(random.normal(size=(2, 200, D)).astype("float32"))
    padding = np.arange(200) < np.array([[200], [120]])
    results, weights = [], None
    for way in ("dense", kernel):
        layer = ka.attention.MultiHeadAttention(N, H, implementation=way, **arguments)
        layer.build(x.shape, x.shape)
        definition.randomize(layer, scale=0.3)
        with tf.GradientTape() as tape:
            output = layer(x, x, value_mask=padding)
            loss = tf.reduce_sum(output**2)
        weights = [x, *(w.value for w in layer.trainable_weights)]
        results.append([output, *tape.gradient(loss, weights)])
    names = ["output", "x", *(w.path for w in layer.trainable_weights)]
    for name, ours, theirs in zip(names, *results, strict=True):
        scale = max(1.0, np.abs(np.asarray(theirs)).max())
        np.testing.assert_allclose(ours, theirs, atol=2e-5 * scale, err_msg=name)


@pytest.mark.slow
def test_all_structures_train_in_mixed_precision():
    """Check that a few steps lower the loss, change every weight, and give no NaN."""
    x = keras.Input((None, D))
    arguments = dict(STRUCTURES["all"], use_gate=True, dropout=0.1, mask="causal")
    layer = ka.attention.MultiHeadAttention(N, 10, **arguments, dtype="mixed_float16")
    model = keras.Model(x, keras.layers.Activation("linear", dtype="float32")(layer(x, x)))
    adam = keras.optimizers.Adam(0.03)
    model.compile(keras.optimizers.LossScaleOptimizer(adam, initial_scale=1024.0), "mse")
    before = [np.array(w) for w in layer.trainable_weights]
    losses = model.fit(QUERY, QUERY[:, ::-1], epochs=20, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses)) and losses[-1] < 0.8 * losses[0]
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert np.any(np.asarray(weight) != old), weight.path


@pytest.mark.slow
def test_all_structures_export_with_padding():
    ids = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, D)(ids)
    arguments = dict(STRUCTURES["all"], use_gate=True, position=["rotary", "alibi"], mask="causal")
    layer = ka.attention.MultiHeadAttention(N, 10, **arguments)
    assert_exports(keras.Model(ids, layer(x, x)))


def test_packed_documents_equal_single_ones():
    layer = ka.attention.MultiHeadAttention(N, 10, mask="causal", position="rotary")
    x = random.normal(size=(1, 5, D)).astype("float32")
    packed = layer(
        x,
        x,
        segment_ids=np.array([[1, 1, 1, 2, 2]]),
        query_positions=np.array([[0, 1, 2, 0, 1]]),
        value_positions=np.array([[0, 1, 2, 0, 1]]),
    )
    np.testing.assert_allclose(packed[:, :3], layer(x[:, :3], x[:, :3]), atol=1e-5)
    np.testing.assert_allclose(packed[:, 3:], layer(x[:, 3:], x[:, 3:]), atol=1e-5)


def test_permuting_keys_with_their_values_changes_nothing():
    layer = ka.attention.MultiHeadAttention(N, H)
    order = random.permutation(S)
    np.testing.assert_allclose(layer(QUERY, VALUE), layer(QUERY, VALUE[:, order]), atol=1e-5)


def test_a_later_token_changes_no_earlier_output():
    layer = ka.attention.MultiHeadAttention(N, 10, mask="causal", position=["rotary", "alibi"])
    changed = QUERY.copy()
    changed[:, 3] += 1
    before, after = np.asarray(layer(QUERY, QUERY)), np.asarray(layer(changed, changed))
    np.testing.assert_allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert not np.allclose(before[:, 3:], after[:, 3:], atol=1e-3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(num_heads=6, key_dim=4, num_key_value_heads=4), "num_key_value_heads=4.*num_heads=6"),
        (dict(num_heads=0, key_dim=4), "num_heads=0"),
        (dict(num_heads=2, key_dim=4, score="scaled"), "'scaled'.*scaled_dot"),
        (dict(num_heads=2, key_dim=4, score=None), "score=None"),
        (dict(num_heads=2, key_dim=4, position="sinusoidal"), "Sinusoidal.*embedding"),
        (dict(num_heads=2, key_dim=4, attention_axes="x"), "attention_axes=x"),
        (dict(num_heads=2, key_dim=4, value_dim=-1), "value_dim=-1"),
        (dict(num_heads=2, key_dim=4, sink=3), "sink=3.*True, False"),
        (dict(num_heads=2, key_dim=4, talking_heads="yes"), "talking_heads='yes'.*True, False"),
        (dict(num_heads=2, key_dim=4, flash_attention="yes"), "flash_attention='yes'"),
        (dict(num_heads=2, key_dim=4, flash_attention=True, dropout=0.1), "dropout=0.1"),
        (
            dict(num_heads=2, key_dim=4, flash_attention=True, implementation="dense"),
            "implementation='dense'",
        ),
    ],
    ids=str,
)
def test_refuses_at_construction(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ka.attention.MultiHeadAttention(**arguments)


def test_refuses_missing_axes():
    layer = ka.attention.MultiHeadAttention(2, 4, attention_axes=3)
    with pytest.raises(ValueError, match=r"attention_axes=\(3,\).*rank 4"):
        layer(np.ones((2, 3, 4, 5)), np.ones((2, 3, 4, 5)))


def test_flash_attention_is_an_argument_as_in_keras():
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    plain = ka.attention.MultiHeadAttention(2, 4)
    expected = plain(x, x)
    for asked in (None, False):
        layer = ka.attention.MultiHeadAttention(2, 4, flash_attention=asked)
        layer.build(x.shape, x.shape)
        layer.set_weights(plain.get_weights())
        np.testing.assert_allclose(layer(x, x), expected, atol=1e-6)
    again = type(layer).from_config(layer.get_config())
    assert again.flash_attention is False and again.get_config() == layer.get_config()


@pytest.mark.tensorflow
def test_requested_flash_attention_is_an_error_if_impossible():
    x = np.ones((2, 5, 8), "float32")
    layer = ka.attention.MultiHeadAttention(2, 4, flash_attention=True)
    with pytest.raises(ValueError, match="flash_attention=True.*tensorflow has no att"):
        layer(x, x)
    with pytest.raises(ValueError, match="flash_attention=True.*tensorflow has no att"):
        ka.attention.explain(layer, 5)
    with pytest.raises(ValueError, match="Returning attention scores is not supported when flash"):
        layer(x, x, return_attention_scores=True)


def test_keras_can_disable_flash_attention():
    keras.config.disable_flash_attention()
    try:
        layer = ka.attention.MultiHeadAttention(2, 4)
        asking = ka.attention.MultiHeadAttention(2, 4, flash_attention=True)
    finally:
        keras.config.enable_flash_attention()
    assert layer._flash_attention is False and layer.flash_attention is None
    assert asking._flash_attention is True
