"""Segment recurrence against its definition, the full pass, and exported files."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition
from tests.export.helpers import assert_exports, randomize
from tests.grids import sampled, thinned

B, N, T, M, D, H = 2, 3, 5, 7, 12, 4
random = np.random.default_rng(0)
SEGMENTS = random.normal(size=(4, B, T, D)).astype("float32")


def recurrent(memory_length=M, **arguments):
    """Build one self-attention with a memory, which is called on the text itself."""
    x = keras.Input((None, D))
    padding = keras.Input((None,), dtype="bool")
    layer = ka.attention.MultiHeadAttention(N, H, **arguments)
    model = keras.Model([x, padding], layer(x, x, value_mask=padding))
    randomize(model)
    return ka.attention.SegmentRecurrence(model, memory_length), layer


def labeler(**arguments):
    sizes = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
    model = ka.models.sequence_labeler(20, 5, **{**sizes, "mask": "causal", **arguments})
    randomize(model)
    return model


def run(layer, segments, memory=None):
    """Return the outputs for all segments in order, and the last memory."""
    outputs = []
    for segment in segments:
        output, memory = layer(segment, memory)
        outputs.append(np.asarray(output))
    return outputs, memory


def test_equals_the_definition():
    """Put the newest M hidden states of each row, without padding, before the segment."""
    layer, attention = recurrent(mask="causal", position="alibi")
    padding = random.random((len(SEGMENTS), B, T)) < 0.7
    padding[0, 0] = False  # only padding
    project = [np.asarray(w, "float64") for w in attention.get_weights()]
    (wq, bq, wk, bk, wv, bv, wo, bo), slopes = project, ka.positions.alibi.compute_slopes(N)
    memory, past = None, [np.zeros((0, D))] * B
    for segment, is_token in zip(SEGMENTS, padding, strict=True):
        output, memory = layer([segment, is_token], memory)
        for b in range(B):
            remembered = past[b][-M:]
            before = len(remembered)
            tokens = np.concatenate([remembered, segment[b]])
            seen = np.concatenate([np.ones(before, bool), is_token[b]])
            q, k, v = (
                np.einsum("td,dnh->tnh", x, w) + bias
                for x, w, bias in [(segment[b], wq, bq), (tokens, wk, bk), (tokens, wv, bv)]
            )
            for i in range(T):
                expected = bo.copy()
                for n in range(N):
                    visible = [j for j in range(before + i + 1) if seen[j]]
                    if visible:
                        far = np.array([before + i - j for j in visible])
                        scores = k[visible, n] @ q[i, n] / np.sqrt(H) - slopes[n] * far
                        expected += definition.softmax(scores) @ v[visible, n] @ wo[n]
                np.testing.assert_allclose(output[b, i], expected, atol=1e-4)
            past[b] = np.concatenate([past[b], segment[b][is_token[b]]])
    counts = [min(M, len(tokens)) for tokens in past]
    hidden, number = memory.values()
    np.testing.assert_array_equal(number, counts)
    for b, count in enumerate(counts):
        np.testing.assert_array_equal(hidden[b, M - count :], past[b][-M:].astype("float32"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "lengths, mask, position",
    thinned(
        [(4, 4, 4), (1, 6, 2, 3)],
        ["causal", ka.masks.Causal() & ka.masks.Window(4)],
        ["rotary", "alibi", "relative_bias", None],
    ),
    ids=str,
)
def test_a_memory_of_all_tokens_equals_the_full_pass(lengths, mask, position):
    model = labeler(position=position, mask=mask)
    tokens = random.integers(1, 20, size=(B, sum(lengths)))
    segments = np.split(tokens, np.cumsum(lengths)[:-1], axis=1)
    outputs, _ = run(ka.attention.SegmentRecurrence(model, len(tokens[0])), segments)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), model(tokens), atol=2e-4)


@pytest.mark.slow
def test_each_layer_extends_the_range_of_the_model():
    """Check that L layers with M tokens of memory see L · M tokens back (section 3.2)."""
    model = labeler(position="alibi")
    layer = ka.attention.SegmentRecurrence(model, 4)
    tokens = random.integers(1, 20, size=(1, 16))
    for changed, is_seen in [(12 - 9, False), (12 - 8, True), (12 - 4, True)]:
        other = tokens.copy()
        other[0, changed] = 1 + other[0, changed] % 19
        last = [run(layer, np.split(x, 4, axis=1))[0][-1][0, 0] for x in (tokens, other)]
        assert np.array_equal(*last) != is_seen


@pytest.mark.slow
def test_a_short_row_continues_after_its_last_token():
    """Compare a batch of rows padded at the end with single rows."""
    model = labeler(position="rotary")
    layer = ka.attention.SegmentRecurrence(model, 6)
    lengths = [[3, 5], [5, 1], [2, 4]]  # for each segment and row
    rows = [random.integers(1, 20, size=sum(row)) for row in zip(*lengths, strict=True)]
    alone = []
    for row, cuts in zip(rows, zip(*lengths, strict=True), strict=True):
        segments = [x[None] for x in np.split(row, np.cumsum(cuts)[:-1])]
        alone.append(run(layer, segments)[0])
    memory = None
    for step, counts in enumerate(lengths):
        batch = np.zeros((2, 5), "int32")
        for b, count in enumerate(counts):
            start = sum(lengths[s][b] for s in range(step))
            batch[b, :count] = rows[b][start : start + count]
        output, memory = layer(batch, memory)
        for b, count in enumerate(counts):
            np.testing.assert_allclose(output[b, :count], alone[b][step][0], atol=1e-4)


def test_padding_in_front_is_not_stored():
    layer = ka.attention.SegmentRecurrence(labeler(position="rotary"), 6)
    _, left = layer(np.array([[0, 0, 3, 4, 5]]))
    _, short = layer(np.array([[3, 4, 5]]))
    for key in left:
        filled = 3 if left[key].ndim > 1 else 0
        np.testing.assert_allclose(
            left[key][..., -filled:, :] if filled else left[key],
            short[key][..., -filled:, :] if filled else short[key],
            atol=1e-5,
        )


def test_an_empty_memory_changes_nothing():
    model = labeler(position="relative_bias")
    tokens = random.integers(1, 20, size=(B, T))
    output, _ = ka.attention.SegmentRecurrence(model, M)(tokens)
    np.testing.assert_allclose(output, model(tokens), atol=1e-5)


def test_the_gradient_stops_at_the_memory():
    layer, _ = recurrent(mask="causal", position="rotary")
    ones = np.ones((B, T), bool)
    first, second = (tf.Variable(x) for x in SEGMENTS[:2])
    weights = [w.value for w in layer.model.trainable_weights]
    with tf.GradientTape(persistent=True) as tape:
        _, memory = layer([first, ones])
        output, _ = layer([second, ones], memory)
        loss = tf.reduce_sum(output**2)
    assert tape.gradient(loss, first) is None
    through = tape.gradient(loss, weights)
    memory = {key: tf.constant(value) for key, value in memory.items()}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer([second, ones], memory)[0] ** 2)
    constant = tape.gradient(loss, weights)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer([second, ones])[0] ** 2)
    without = tape.gradient(loss, weights)
    for a, b in zip(through, constant, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-4)
    assert not np.allclose(through[2], without[2], atol=1e-3)  # the memory has keys too


@pytest.mark.parametrize("shape", [(T, T), (B, T, T), (B, N, T, T), (B, 1, 1, T), (B, T, 1)])
def test_a_mask_of_the_segment_shows_the_memory(shape):
    x = keras.Input((None, D))
    mask = keras.Input(batch_shape=shape, dtype="bool")
    layer = ka.attention.MultiHeadAttention(N, H)
    layer.build((None, None, D), (None, None, D))
    drawn = random.random(shape) < 0.6
    whole = np.broadcast_to(drawn, (*shape[:-1], T))
    wide = np.concatenate([np.ones((*shape[:-1], 3), bool), whole], axis=-1)
    if shape[-1] == 1:
        wide = np.broadcast_to(drawn, (*shape[:-1], 3 + T))
    model = keras.Model([x, mask], layer(x, x, attention_mask=mask))
    recurrence = ka.attention.SegmentRecurrence(model, 3)
    _, memory = recurrence([SEGMENTS[0], np.ones(shape, bool)])
    output, _ = recurrence([SEGMENTS[1], drawn], memory)
    text = np.concatenate([SEGMENTS[0][:, -3:], SEGMENTS[1]], axis=1)
    expected = layer(SEGMENTS[1], text, attention_mask=wide)
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.slow
def test_the_memory_has_the_positions_before_explicit_ones():
    x, where = keras.Input((None, D)), keras.Input((None,), dtype="int32")
    block = ka.blocks.EncoderBlock(
        ka.attention.MultiHeadAttention(N, H, mask="causal", position=["rotary", "alibi"]),
        ka.blocks.FeedForward(10),
    )
    with_positions = keras.Model([x, where], block(x, positions=where))
    plain = keras.Model(x, block(x))
    memory = also = None
    for step, segment in enumerate(SEGMENTS):
        output, memory = ka.attention.SegmentRecurrence(plain, M)(segment, memory)
        steps = np.tile(np.arange(step * T, (step + 1) * T), (B, 1))
        placed, also = ka.attention.SegmentRecurrence(with_positions, M)([segment, steps], also)
        np.testing.assert_allclose(placed, output, atol=1e-4)


def test_use_causal_mask_counts_from_the_segment():
    x = keras.Input((None, D))
    asked = ka.attention.MultiHeadAttention(N, H)
    model = keras.Model(x, asked(x, x, use_causal_mask=True))
    text = np.concatenate(list(SEGMENTS), axis=1)
    outputs, _ = run(ka.attention.SegmentRecurrence(model, 20), SEGMENTS)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), model(text), atol=1e-4)


def test_cross_attention_has_no_memory():
    x, y = keras.Input((None, D)), keras.Input((None, D))
    own = ka.attention.MultiHeadAttention(N, H, name="own")
    cross = ka.attention.MultiHeadAttention(N, H, name="cross")
    layer = ka.attention.SegmentRecurrence(keras.Model([x, y], cross(own(x, x), y)), M)
    assert set(layer.initial_memory(1)) == {"own_hidden", "own_num_hidden"}


def test_a_layer_that_runs_twice_has_two_memories():
    x = keras.Input((None, D))
    shared = ka.attention.MultiHeadAttention(N, H, mask="causal", position="alibi", name="shared")
    y = shared(x, x)
    model = keras.Model(x, shared(y, y))
    layer = ka.attention.SegmentRecurrence(model, 20)
    assert len(layer.initial_memory(1)) == 4
    outputs, _ = run(layer, SEGMENTS)
    text = np.concatenate(list(SEGMENTS), axis=1)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), model(text), atol=1e-4)


def test_recorded_attention_maps_cover_the_memory():
    model = labeler()
    layer = ka.attention.SegmentRecurrence(model, M)
    with ka.visualization.record_attention(model) as maps:
        layer(np.ones((B, T), "int32"))
    assert {w.shape for w in maps.values()} == {(B, 2, T, M + T)}
    assert np.all(np.asarray(maps["block_0/attention"])[..., :M] == 0)  # the memory is empty


def test_the_model_does_not_change():
    model = labeler(position="rotary")
    tokens = random.integers(1, 20, size=(B, T))
    before = np.asarray(model(tokens))
    layer = ka.attention.SegmentRecurrence(model, M)
    run(layer, [tokens, tokens])
    np.testing.assert_array_equal(model(tokens), before)
    assert [id(w) for w in layer.weights] == [id(w) for w in model.weights]


@pytest.mark.slow
def test_explicit_memory_is_saved_and_loaded(tmp_path):
    model = ka.attention.with_memory(labeler(), 6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(*(explicit(m, TOKENS) for m in (model, loaded)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


TOKENS = random.integers(1, 20, size=(3, 2, 5)).astype("int32")
TOKENS[1, 0, 3:] = 0  # a short row in the middle of a text


def explicit(call, segments, rows=2):
    """Return the logits of all segments in order. `call` is a model or a loaded file."""
    memory = {f"block_{i}_attention_hidden": np.zeros((rows, 6, 8), "float32") for i in (0, 1)}
    memory |= {f"block_{i}_attention_num_hidden": np.zeros(rows, "int32") for i in (0, 1)}
    logits = []
    for tokens in segments:
        outputs = call({"token_ids": tokens, **memory})
        memory = {key: np.asarray(outputs[key]) for key in memory}
        logits.append(np.asarray(outputs["logits"]))
    return logits


@pytest.mark.slow
@pytest.mark.parametrize(
    "position",
    ["alibi", *(pytest.param(p, marks=pytest.mark.slow) for p in ("rotary", "relative_bias"))],
)
def test_explicit_memory_exports(position):
    assert_exports(ka.attention.with_memory(labeler(position=position, num_layers=1), 6))


@pytest.mark.slow
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_exported_files_equal_the_model_over_segments(tmp_path, quantization):
    model = ka.attention.with_memory(labeler(position="rotary"), 6)
    ka.export.to_litert(model, tmp_path / "m.tflite", quantization=quantization)
    expected = explicit(model, TOKENS)
    for xnnpack in (True, False):
        file = ka.export.checks.runner.LiteRT(tmp_path / "m.tflite", xnnpack=xnnpack)
        for ours, theirs in zip(explicit(file, TOKENS), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=5e-4 if quantization is None else 0.5)
    if quantization is None:
        ka.export.to_saved_model(model, tmp_path / "saved_model")
        file = ka.export.load(tmp_path / "saved_model")
        for ours, theirs in zip(explicit(file, TOKENS), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.slow
def test_a_stored_memory_equals_an_explicit_one():
    model = labeler(position="rotary")
    stateful = ka.attention.with_memory(model, 6, batch_size=2)
    expected = explicit(ka.attention.with_memory(model, 6), TOKENS)
    for _ in range(2):
        for tokens, logits in zip(TOKENS, expected, strict=True):
            np.testing.assert_allclose(stateful(tokens), logits, atol=1e-5)
        stateful.get_layer("recurrence").reset_state()
    assert [id(w) for w in stateful.trainable_weights] == [id(w) for w in model.trainable_weights]


@pytest.mark.slow
def test_a_stored_memory_is_saved_and_loaded(tmp_path):
    model = ka.attention.with_memory(labeler(position="rotary"), 6, batch_size=2)
    model(TOKENS[0])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(TOKENS[1]), model(TOKENS[1]), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_a_memory_has_the_dtype_of_its_layer(dtype):
    keras.config.set_dtype_policy(dtype)
    try:
        layer = ka.attention.SegmentRecurrence(labeler(position="rotary"), 6)
    finally:
        keras.config.set_dtype_policy("float32")
    exact = labeler(position="rotary")
    exact.set_weights(layer.model.get_weights())
    outputs, memory = run(layer, TOKENS)
    assert memory["block_0_attention_hidden"].dtype == dtype.removeprefix("mixed_")
    expected, _ = run(ka.attention.SegmentRecurrence(exact, 6), TOKENS)
    np.testing.assert_allclose(outputs, expected, atol=0.3, rtol=0.1)


def test_a_new_text_in_one_row_begins_with_a_count_of_zero():
    layer = ka.attention.SegmentRecurrence(labeler(position="rotary"), 6)
    _, memory = layer(TOKENS[0])
    for key in memory:
        if "num_hidden" in key:
            memory[key] = memory[key] * np.array([1, 0])
    output, _ = layer(TOKENS[2], memory)
    np.testing.assert_allclose(output[1], layer.model(TOKENS[2])[1], atol=1e-5)
    assert not np.allclose(output[0], layer.model(TOKENS[2])[0], atol=1e-2)


@pytest.mark.slow
def test_models_of_several_inputs_and_outputs_keep_their_names():
    ids = {name: keras.Input((None,), dtype="int32", name=name) for name in ("words", "tags")}
    x = keras.layers.Add()([ka.blocks.TokenEmbedding(20, 8)(x) for x in ids.values()])
    x = ka.attention.MultiHeadAttention(2, 4, name="look")(x, x)
    outputs = [keras.layers.Dense(2, name="a")(x), keras.layers.Dense(3, name="b")(x)]
    tokens = {name: np.ones((B, T), "int32") for name in ids}
    memory = {
        "look_hidden": np.zeros((B, 3, 8), "float32"),
        "look_num_hidden": np.zeros(B, "int32"),
    }
    for model_outputs in (outputs, {"first": outputs[0], "second": outputs[1]}):
        results = ka.attention.with_memory(keras.Model(ids, model_outputs), 3)({**tokens, **memory})
        names = list(model_outputs) if isinstance(model_outputs, dict) else ["a", "b"]
        assert set(results) == {*names, *memory}
        assert results[names[1]].shape == (B, T, 3)
    taken = keras.Model(ids, {"look_hidden": x})
    with pytest.raises(ValueError, match="both have the name look_hidden"):
        ka.attention.with_memory(taken, 3)


def other(**arguments):
    x = keras.Input((None, D))
    ids = keras.Input((None,), dtype="int32")
    return keras.Model([x, ids], ka.attention.MultiHeadAttention(N, H)(x, x, segment_ids=ids))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.attention.SegmentRecurrence("no", 3), "model='no'.*functional"),
        (lambda: ka.attention.SegmentRecurrence(labeler(), -1), "memory_length=-1"),
        (lambda: ka.attention.SegmentRecurrence(labeler(), 3, batch_size=0), "batch_size=0"),
        (lambda: ka.attention.SegmentRecurrence(labeler(), 0), "memory_length=0.*Memorizing"),
        (lambda: ka.attention.SegmentRecurrence(other(), 3), "segment_ids packs"),
        (
            lambda: ka.attention.SegmentRecurrence(labeler(), 3)(
                TOKENS[0], {"nothing": np.zeros(1)}
            ),
            "block_0_attention_hidden.*received nothing",
        ),
        (
            lambda: ka.attention.SegmentRecurrence(labeler(), 3, 2)(np.ones((3, 5), "int32")),
            "batch_size=2.*batch of 3",
        ),
        (lambda: ka.attention.SegmentRecurrence(labeler(), 3).reset_state(), "initial_memory"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        make()


def test_a_scope_is_for_one_call_of_the_model():
    layer = ka.attention.SegmentRecurrence(labeler(), 3)
    memory = layer.initial_memory(2)
    with ka.core.scope.SegmentMemory(memory, length=3, paths=layer._paths):
        layer.model(TOKENS[0])
        with pytest.raises(RuntimeError, match="attention ran 2 times"):
            layer.model(TOKENS[0])


def showing(rng, rows, back, segments=4, length=4, symbols=7):
    """Return segments that begin with a symbol, int (segments, rows, length), and answers.

    The answer for a segment from `back` on is the symbol `back` segments before.
    """
    tokens = np.full((segments, rows, length), symbols + 1, "int32")
    tokens[..., 0] = rng.integers(1, symbols + 1, size=(segments, rows))
    return tokens, tokens[:-back, :, 0]


def learn(memory_length, back=2, steps=80):
    """Train a small model, and return its share of right answers on new segments."""
    keras.utils.set_random_seed(0)
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=32, dropout=0.0)
    model = ka.models.sequence_labeler(9, 8, **sizes, mask="causal", position="rotary")
    layer = ka.attention.SegmentRecurrence(model, memory_length)
    optimizer = keras.optimizers.Adam(0.01)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def answers(segments):
        memory, logits = None, []
        for tokens in segments:
            output, memory = layer(tokens, memory)
            logits.append(output[:, -1])
        return tf.stack(logits[back:])

    @tf.function
    def step(tokens, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, answers(tf.unstack(tokens)))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    rng = np.random.default_rng(0)
    for _ in range(steps):
        step(*showing(rng, 32, back))
    tokens, labels = showing(rng, 200, back)
    return np.mean(np.argmax(answers(tokens), axis=-1) == labels)


@pytest.mark.sweep
def test_memory_helps():
    """Learn the symbol two segments ago, with a memory that is long enough and one that is not."""
    assert learn(memory_length=12) > 0.95
    assert learn(memory_length=2) < 0.35  # chance is 1 in 7


@pytest.mark.slow
def test_earlier_training_does_not_change_the_measured_segment_loss():
    labeler = ka.models.sequence_labeler(
        *(20, 4), num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, mask="causal"
    )
    tokens = np.random.default_rng(0).integers(1, 20, size=(2, 5))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    labeler.compile("sgd", loss)
    labeler.fit(tokens, tokens % 4, verbose=0)
    segmented = ka.attention.with_memory(labeler, 3, batch_size=2)
    segmented.compile(keras.optimizers.SGD(0.0), loss)
    measured = segmented.evaluate(tokens, tokens % 4, batch_size=2, verbose=0)
    segmented.get_layer("recurrence").reset_state()
    expected = loss(tokens % 4, segmented(tokens.astype("int32")))
    np.testing.assert_allclose(measured, float(expected), rtol=1e-5)


def test_a_fixed_batch_size_stays_fixed():
    x = keras.Input(batch_shape=(2, 5, D))
    model = keras.Model(x, ka.attention.MultiHeadAttention(N, H)(x, x))
    segmented = ka.attention.with_memory(model, memory_length=3)
    assert (2, 5, D) in [tensor.shape for tensor in segmented.inputs]
    assert {tensor.shape[0] for tensor in segmented.inputs} == {2}
