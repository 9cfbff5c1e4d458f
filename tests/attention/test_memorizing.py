"""Memorizing attention against its definition: the k best of a memory, mixed in by a gate."""

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
    """A `MultiHeadAttention` with the weights of a `MemorizingAttention`."""
    same = ka.attention.MultiHeadAttention(N, H, **arguments)
    same.build((None, None, D), (None, None, D))
    same.set_weights([np.asarray(w) for w in layer.weights if "memory_gate" not in w.path])
    return same


def local(layer, segment, is_token):
    """The local attention before the output projection, (B, T, N, H)."""
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
        for name, kept in [("keys", keys[b]), ("values", values[b])]:
            found = memory[f"far_{name}"][b, M - len(kept) :]
            np.testing.assert_allclose(found, kept, atol=1e-5)


def test_outside_a_scope_it_is_multi_head_attention():
    layer = memorizing()
    model = model_of(layer)
    same = without_memory(layer, score="cosine", mask="causal", position="rotary")
    expected = same(SEGMENTS[0], SEGMENTS[0], value_mask=PADDING[0])
    np.testing.assert_array_equal(model([SEGMENTS[0], PADDING[0]]), expected)
    first, _ = ka.attention.SegmentRecurrence(model, 0)([SEGMENTS[0], PADDING[0]])
    np.testing.assert_allclose(first, expected, atol=1e-6)  # nothing is remembered yet


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("score", ["scaled_dot", "bilinear", "squared_distance"])
def test_enough_neighbors_are_the_whole_memory(score, groups):
    """With k >= M, and a gate wide open, it is attention to all of the memory."""
    layer = memorizing(score=score, num_key_value_heads=groups, gate_initializer="ones")
    layer.num_neighbors = M + 4
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 0)
    layer.memory_gate.assign([50.0] * N)
    _, memory = run(recurrence, SEGMENTS[:2], np.ones((2, B, T), bool))
    output, _ = recurrence([SEGMENTS[2], np.ones((B, T), bool)], memory)
    past = np.concatenate([SEGMENTS[0], SEGMENTS[1]], axis=1)[:, -M:]
    whole = without_memory(layer, score=score, num_key_value_heads=groups)
    np.testing.assert_allclose(output, whole(SEGMENTS[2], past), atol=1e-4)


def test_the_gradient_does_not_flow_into_the_memory():
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


def test_both_memories_together():
    """The local attention of a layer that memorizes can have the memory of `SegmentRecurrence`."""
    layer = memorizing()
    recurrence = ka.attention.SegmentRecurrence(model_of(layer), 20)
    layer.memory_gate.assign([-50.0] * N)  # closed: what is left is the local attention
    outputs, memory = run(recurrence, padding=np.ones((4, B, T), bool))
    text = np.concatenate(list(SEGMENTS), axis=1)
    expected = layer(text, text, value_mask=np.ones((B, 4 * T), bool))
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, atol=1e-4)
    # each token is remembered once: the M newest, from the last two segments
    keys = layer._key_dense(text)[:, -M:]
    np.testing.assert_allclose(memory["far_keys"], keys, atol=1e-5)


def labeler(memory_length=6):
    """Two blocks; the second memorizes."""
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
def test_exports(memory_length):
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
    """Segments of pairs (a name and its value), then one that asks for values by their names.

    float32 (2, batch, pairs, names + values), and the labels of the second segment.
    """
    name = np.stack([rng.permutation(names)[:pairs] for _ in range(batch)])
    value = rng.integers(values, size=(batch, pairs))
    told = np.concatenate([np.eye(names)[name], np.eye(values)[value]], axis=-1)
    order = np.argsort(rng.random((batch, pairs)), axis=1)
    asked = np.take_along_axis(told, order[..., None], axis=1)
    asked[..., names:] = 0
    return np.stack([told, asked]).astype("float32"), np.take_along_axis(value, order, axis=1)


def learn(carry, steps=300):
    """The share of right answers of a small model whose memory is carried on, or not."""
    keras.utils.set_random_seed(0)
    x = keras.Input((None, 16))
    attention = ka.attention.MemorizingAttention(4, 16, memory_length=6, num_neighbors=2)
    model = keras.Model(x, keras.layers.Dense(4)(keras.layers.Dense(32, "relu")(attention(x, x))))
    layer = ka.attention.SegmentRecurrence(model, 0)
    optimizer = keras.optimizers.Adam(0.01)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def answers(told, asked, training):
        _, memory = layer(told)
        return layer(asked, memory if carry else None, training=training)[0]

    @tf.function
    def step(told, asked, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, answers(told, asked, True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

    rng = np.random.default_rng(0)
    for _ in range(steps):
        (told, asked), labels = recalling(rng)
        step(told, asked, labels)
    (told, asked), labels = recalling(rng, batch=200)
    return np.mean(np.argmax(answers(told, asked, False), -1) == labels)


@pytest.mark.sweep
def test_memory_helps():
    """Values told in an earlier segment are looked up by their names; chance is 1 in 4."""
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
def test_faiss_beside_a_memory_of_segments():
    """The index takes the place of the keys and values in the model; hidden states stay there."""
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
    """Local attention reads all tokens so far from the cache, the index those of earlier calls."""
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
def test_faiss_without_a_limit_remembers_everything():
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
        (lambda: under()(SEGMENTS[0], SEGMENTS[0][:1]), ValueError, "2 texts.*1 rows"),
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
