"""Memorizing attention against its definition: the k best keys of a memory, and a gate."""

import importlib.util
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.attention import definition
from tests.export.helpers import assert_exports, randomize
from tests.grids import quick, sampled, thinned

B, N, T, M, D, H, K = 2, 3, 5, 7, 12, 4, 3
random = np.random.default_rng(0)
SEGMENTS = random.normal(size=(4, B, T, D)).astype("float32")
PADDING = random.random((4, B, T)) < 0.8
PADDING[0, 0] = False
needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="faiss is not installed"
)


def memorizing(**arguments):
    defaults = {"mask": "causal", "position": "rotary", "memory_length": M, "name": "far"}
    return ka.attention.MemorizingAttention(N, H, num_neighbors=K, **defaults | arguments)


def model_of(layer):
    x, padding = keras.Input((None, D)), keras.Input((None,), dtype="bool")
    model = keras.Model([x, padding], layer(x, x, value_mask=padding))
    randomize(model)
    return model


def run(layer, segments=SEGMENTS, padding=PADDING, memory=None):
    outputs = []
    for segment, is_token in zip(segments, padding, strict=True):
        output, memory = layer([segment, is_token], memory)
        outputs.append(np.asarray(output))
    return outputs, memory


def without_memory(layer, **arguments):
    """Return a `MultiHeadAttention` with the weights of a `MemorizingAttention`."""
    same = ka.attention.MultiHeadAttention(N, H, **arguments)
    same.build((None, None, D), (None, None, D))
    same.set_weights([np.asarray(w) for w in layer.weights if "memory_gate" not in w.path])
    return same


def local(layer, segment, is_token):
    """Compute the local attention before the output projection, (B, T, N, H)."""
    same = without_memory(layer, score="cosine", mask="causal", position="rotary")
    heads = same._query_dense(segment), same._key_dense(segment), same._value_dense(segment)
    output, _ = same._compute_attention(*heads, is_token[:, None, None])
    return np.asarray(output)


def test_equals_the_definition():
    layer = memorizing()
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 0)
    w = {w.path.split("/", 1)[1]: np.asarray(w, "float64") for w in layer.weights}
    scale = np.exp(np.minimum(w[next(name for name in w if "log_scale" in name)], np.log(100)))
    gate = 1 / (1 + np.exp(-w["memory_gate"]))

    def project(x, name):
        return np.einsum("td,dnh->tnh", x, w[f"{name}/kernel"]) + w[f"{name}/bias"]

    keys, values, memory = [np.zeros((0, N, H))] * B, [np.zeros((0, N, H))] * B, None
    for segment, is_token in zip(SEGMENTS, PADDING, strict=True):
        output, memory = recurrence([segment, is_token], memory)
        near = local(layer, segment, is_token)
        for b in range(B):
            queries = project(segment[b], "query")
            for i in range(T):
                expected = w["attention_output/bias"].copy()
                for n in range(N):
                    mixed = near[b, i, n].astype("float64")
                    if len(keys[b]):
                        q, k = queries[i, n], keys[b][:, n]
                        cosine = k @ q / np.linalg.norm(k, axis=-1) / np.linalg.norm(q)
                        best = np.argsort(-cosine)[:K]
                        weights = definition.softmax(scale[n] * cosine[best])
                        mixed = gate[n] * weights @ values[b][best, n] + (1 - gate[n]) * mixed
                    expected += mixed @ w["attention_output/kernel"][n]
                np.testing.assert_allclose(output[b, i], expected, atol=2e-4)
            new = segment[b][is_token[b]]
            keys[b] = np.concatenate([keys[b], project(new, "key")])[-M:]
            values[b] = np.concatenate([values[b], project(new, "value")])[-M:]
    for b in range(B):
        assert memory["far_num_keys"][b] == len(keys[b])
        for name, expected_rows in [("keys", keys[b]), ("values", values[b])]:
            rows = memory[f"far_{name}"][b, M - len(expected_rows) :]
            np.testing.assert_allclose(rows, expected_rows, atol=1e-5)


def test_without_a_scope_it_equals_multi_head_attention():
    layer = memorizing()
    model = model_of(layer)
    same = without_memory(layer, score="cosine", mask="causal", position="rotary")
    expected = same(SEGMENTS[0], SEGMENTS[0], value_mask=PADDING[0])
    np.testing.assert_array_equal(model([SEGMENTS[0], PADDING[0]]), expected)
    first, _ = ka.attention.SegmentRecurrence(model, 0)([SEGMENTS[0], PADDING[0]])
    np.testing.assert_allclose(first, expected, atol=1e-6)  # the memory is empty


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("score", ["scaled_dot", "bilinear", "squared_distance"])
def test_enough_neighbors_attend_to_the_whole_memory(score, groups):
    """Open the gate. With k >= M it is attention to the whole memory."""
    layer = memorizing(score=score, num_key_value_heads=groups, gate_initializer="ones")
    layer.num_neighbors = M + 4
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 0)
    layer.memory_gate.assign([50.0] * N)
    _, memory = run(recurrence, SEGMENTS[:2], np.ones((2, B, T), bool))
    output, _ = recurrence([SEGMENTS[2], np.ones((B, T), bool)], memory)
    past = np.concatenate([SEGMENTS[0], SEGMENTS[1]], axis=1)[:, -M:]
    whole = without_memory(layer, score=score, num_key_value_heads=groups)
    np.testing.assert_allclose(output, whole(SEGMENTS[2], past), atol=1e-4)


def test_no_gradient_flows_into_the_memory():
    layer = memorizing()
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 0)
    first, second = (tf.Variable(x) for x in SEGMENTS[:2])
    ones = np.ones((B, T), bool)
    with tf.GradientTape() as tape:
        _, memory = recurrence([first, ones])
        output, _ = recurrence([second, ones], memory)
        loss = tf.reduce_sum(output**2)
    before, after, gate = tape.gradient(loss, [first, second, layer.memory_gate.value])
    assert before is None and np.any(np.asarray(after) != 0)
    assert np.all(np.asarray(gate) != 0)


def test_memories_of_keys_and_of_hidden_states_work_together():
    """Give the local attention the memory of `SegmentRecurrence` too."""
    layer = memorizing()
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 20)
    layer.memory_gate.assign([-50.0] * N)  # closed: only the local attention counts
    outputs, memory = run(recurrence, padding=np.ones((4, B, T), bool))
    text = np.concatenate(list(SEGMENTS), axis=1)
    expected = layer(text, text, value_mask=np.ones((B, 4 * T), bool))
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, atol=1e-4)
    # the M newest tokens, from the last two segments, each once
    keys = layer._key_dense(text)[:, -M:]
    np.testing.assert_allclose(memory["far_keys"], keys, atol=1e-5)


def labeler(memory_length=6):
    """Build two blocks, the second with a memory."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(20, 8, name="embedding")(ids)
    near = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary", name="attention")
    far = ka.attention.MemorizingAttention(
        2, 4, memory_length, num_neighbors=3, mask="causal", position="rotary", name="attention"
    )
    for i, attention in enumerate((near, far)):
        x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(16), name=f"block_{i}")(x)
    model = keras.Model(ids, keras.layers.Dense(5, name="logits")(x))
    randomize(model)
    return model


TOKENS = random.integers(1, 20, size=(3, 2, 5)).astype("int32")
TOKENS[1, 0, 3:] = 0


@pytest.mark.slow
@pytest.mark.parametrize("memory_length", sampled([4, 0]))
def test_memorizing_models_export(memory_length):
    assert_exports(ka.attention.with_memory(labeler(), memory_length))


@pytest.mark.slow
@pytest.mark.parametrize("memory_length", [4, pytest.param(0, marks=pytest.mark.slow)])
def test_a_file_equals_the_model_over_segments(tmp_path, memory_length):
    model = ka.attention.with_memory(labeler(), memory_length)
    names = [x.name for x in model.inputs if x.name != "token_ids"]
    ka.export.to_litert(model, tmp_path / "m.tflite")
    file = ka.export.load(tmp_path / "m.tflite")
    shapes = {x.name: (2, *x.shape[1:]) for x in model.inputs}
    ours = theirs = {name: np.zeros(shapes[name], "float32") for name in names}
    for tokens in TOKENS:
        ours = file({"token_ids": tokens, **ours})
        theirs = model({"token_ids": tokens, **theirs})
        np.testing.assert_allclose(ours["logits"], theirs["logits"], atol=5e-4)
        ours, theirs = ({name: np.asarray(x[name]) for name in names} for x in (ours, theirs))
    assert np.array_equal(theirs["block_1_attention_num_keys"], [6, 6])


def recalling(rng, batch=32, pairs=6, names=12, values=4):
    """Return segments of pairs (name, value), then segments of names to recall the values of.

    float32 (2, batch, pairs, names + values), and the values of the second segments.
    """
    name = np.stack([rng.permutation(names)[:pairs] for _ in range(batch)])
    value = rng.integers(values, size=(batch, pairs))
    pairs_of_values = np.concatenate([np.eye(names)[name], np.eye(values)[value]], axis=-1)
    order = np.argsort(rng.random((batch, pairs)), axis=1)
    questions = np.take_along_axis(pairs_of_values, order[..., None], axis=1)
    questions[..., names:] = 0
    labels = np.take_along_axis(value, order, axis=1)
    return np.stack([pairs_of_values, questions]).astype("float32"), labels


def learn(carry, steps=300):
    """Train a small model, and return its share of right answers with or without its memory."""
    keras.utils.set_random_seed(0)
    x = keras.Input((None, 16))
    attention = ka.attention.MemorizingAttention(4, 16, memory_length=6, num_neighbors=2)
    model = keras.Model(x, keras.layers.Dense(4)(keras.layers.Dense(32, "relu")(attention(x, x))))
    layer = ka.attention.SegmentRecurrence(model, 0)
    optimizer = keras.optimizers.Adam(0.01)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def answers(pairs, questions, training):
        _, memory = layer(pairs)
        return layer(questions, memory if carry else None, training=training)[0]

    @tf.function
    def step(pairs, questions, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, answers(pairs, questions, True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    rng = np.random.default_rng(0)
    for _ in range(steps):
        (pairs, questions), labels = recalling(rng)
        step(pairs, questions, labels)
    (pairs, questions), labels = recalling(rng, batch=200)
    return np.mean(np.argmax(answers(pairs, questions, False), -1) == labels)


@pytest.mark.sweep
def test_memory_helps():
    """Recall values of an earlier segment by their names. Chance is 1 in 4."""
    assert learn(carry=True) > 0.9
    assert learn(carry=False) < 0.4


@pytest.mark.slow
@needs_faiss
@pytest.mark.parametrize(
    "groups, score", thinned([1, 3], ["cosine", "scaled_dot", "dot", "bilinear"])
)
def test_faiss_equals_the_exact_top_k(score, groups):
    layer = memorizing(score=score, num_key_value_heads=groups)
    model = model_of(layer)
    expected, _ = run(ka.attention.SegmentRecurrence(model, 0))
    memory = ka.attention.FaissMemory(memory_length=M)
    for _ in range(2):
        with memory:
            for segment, is_token, output in zip(SEGMENTS, PADDING, expected, strict=True):
                np.testing.assert_allclose(model([segment, is_token]), output, atol=1e-4)
        memory.reset()


@needs_faiss
def test_ties_are_cut_by_faiss_and_included_by_the_model():
    """Store two keys, one of them four times. A query attends to three keys, or to all five."""
    layer = memorizing(mask=None, position=None, score=ka.scores.Cosine(learned=False, scale=1.0))
    layer.build((None, None, D), (None, None, D))
    layer.memory_gate.assign([50.0] * N)  # ignores the segment
    for dense in (layer._query_dense, layer._key_dense, layer._value_dense):
        dense.kernel.assign(np.tile(np.eye(D, H)[:, None], (1, N, 1)))
    layer._output_dense.kernel.assign(np.tile(np.eye(H, D), (N, 1, 1)) / N)
    model = keras.Model(x := keras.Input((None, D)), layer(x, x))
    first, second, *_ = np.eye(D, dtype="float32")[:, None]
    recurrence, index = ka.attention.SegmentRecurrence(model, 0), ka.attention.FaissMemory()
    stored = np.stack([first, *[second] * 4], axis=1)
    _, memory = recurrence(stored)
    inside, _ = recurrence(first[None], memory)
    with index:
        model(stored)
        outside = model(first[None])
    for output, ties in (inside, 4), (outside, K - 1):
        expected = (np.e * first + ties * second) / (np.e + ties)  # scores 1 and 0
        np.testing.assert_allclose(output[0], expected, atol=1e-5)


@needs_faiss
def test_faiss_beside_a_memory_of_segments():
    """Replace keys and values in the model by the index. Hidden states stay in the model."""
    layer = memorizing()
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 4)
    expected, _ = run(recurrence)
    with ka.attention.FaissMemory(M):
        outputs, memory = run(recurrence)
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    assert np.all(memory["far_num_keys"] == 0) and np.all(memory["far_num_hidden"] == 4)


@needs_faiss
@pytest.mark.parametrize("start", [None, [0, 2]], ids=["", "padded prompt"])
@pytest.mark.parametrize("dtype", quick([None, "int8"], "int8"))
def test_faiss_over_a_preallocated_cache(dtype, start):
    """Read all tokens of the call from the cache, and those of earlier calls from the index."""
    layer = memorizing()
    x = keras.Input((None, D))
    model = keras.Model(x, layer(x, x))
    randomize(model)
    text, pieces = np.concatenate(SEGMENTS[:2], axis=1), ((0, 4), (4, 5), (5, 9))
    padding = np.array(start or [0, 0])
    tokens = np.arange(text.shape[1]) >= padding[:, None]
    where = np.maximum(np.arange(text.shape[1]) - padding[:, None], 0)
    cache = ka.generation.initial_cache(model, B, len(text[0]) + 3, start=start, dtype=dtype)
    decoded, whole = ka.attention.FaissMemory(M), ka.attention.FaissMemory(M)
    for first, end in pieces:
        with decoded, ka.generation.decoding_scope(cache, first) as scope:
            output = model(text[:, first:end])
        cache = scope.cache
        with whole:
            expected = layer(
                text[:, first:end],
                text[:, :end],
                value_mask=tokens[:, :end],
                query_positions=where[:, first:end],
                value_positions=where[:, :end],
            )
        seen = tokens[:, first:end]
        tolerance = 1e-4 if dtype is None else 0.1
        np.testing.assert_allclose(output[seen], expected[seen], atol=tolerance)
    assert [len(row[0]) for row in decoded._get_indexes(layer, B, N)] == [M, M]


@needs_faiss
def test_faiss_has_the_gradients_of_the_exact_top_k():
    layer = memorizing()
    model = model_of(layer)
    recurrence, index = ka.attention.SegmentRecurrence(model, 0), ka.attention.FaissMemory(M)
    ones = np.ones((B, T), bool)
    _, memory = recurrence([SEGMENTS[0], ones])
    with index:
        model([SEGMENTS[0], ones])
    gradients = []
    for inside in (True, False):
        with tf.GradientTape() as tape:
            if inside:
                output, _ = recurrence([SEGMENTS[1], ones], memory)
            else:
                with index:
                    output = model([SEGMENTS[1], ones])
            loss = tf.reduce_sum(output**2)
        gradients.append(tape.gradient(loss, [w.value for w in layer.trainable_weights]))
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3, rtol=1e-3)


@needs_faiss
def test_faiss_without_a_limit_keeps_all_tokens():
    layer = memorizing(memory_length=4 * T)
    model = model_of(layer)
    expected, _ = run(ka.attention.SegmentRecurrence(model, 0))
    for factory in ("Flat", "HNSW32"):
        with ka.attention.FaissMemory(factory=factory):
            outputs = [model([x, padding]) for x, padding in zip(SEGMENTS, PADDING, strict=True)]
        np.testing.assert_allclose(outputs, expected, atol=1e-4)


@needs_faiss
@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: ka.attention.FaissMemory(3, "HNSW32"), ValueError, "HNSW32.*only.*Flat"),
        (lambda: ka.attention.FaissMemory(0), ValueError, "memory_length=0"),
        (lambda: under("IVF4,Flat")(SEGMENTS[0]), ValueError, "IVF4,Flat.*training"),
        (lambda: under()(SEGMENTS[0], SEGMENTS[0][:1]), ValueError, "2 rows.*1 rows"),
        (lambda: tf.function(under())(SEGMENTS[0]), RuntimeError, "eagerly"),
        (lambda: under(score="additive")(SEGMENTS[0]), ValueError, "Additive.*cosine"),
    ],
)
def test_faiss_refuses(make, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        make()


def under(factory="Flat", **arguments):
    layer = memorizing(**arguments)
    layer.build((None, None, D), (None, None, D))
    memory = ka.attention.FaissMemory(factory=factory)

    def call(*segments):
        with memory:
            for x in segments:
                layer(x, x)

    return call


def test_without_faiss_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"keras-attention-zoo\[memory\]"):
        ka.attention.FaissMemory()


def packed():
    layer = memorizing()
    x, ids = keras.Input((None, D)), keras.Input((None,), dtype="int32")
    return ka.attention.SegmentRecurrence(keras.Model([x, ids], layer(x, x, segment_ids=ids)), 0)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: memorizing(memory_length=0), "memory_length=0"),
        (lambda: ka.attention.MemorizingAttention(N, H, M, 0), "num_neighbors=0"),
        (lambda: memorizing(attention_axes=1), "attention_axes=.*1"),
        (lambda: memorizing()(np.ones((1, 2, 3, 4)), np.ones((1, 2, 3, 4))), r"\(1, 2, 3, 4\)"),
        (packed, "segment_ids packs"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
