"""TensorFlow's graphs equal eager code for axes of size 1 and inputs that are parts of a split.

Grappler removes transpositions of axes of size 1 and fuses products, constants and sums. One such
rewrite replaces any output of an operation by its first. So every input here is the last output of
a `tf.split`.
"""

import inspect
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from tests.grids import ALL

pytestmark = pytest.mark.tensorflow

SCORES = [
    *(name for name in ka.scores.NAMES if name != "cosine"),
    lambda: ka.scores.Cosine(learned=False),
    ka.scores.Cosine,
]
NORMALIZERS = [
    *(name for name in ka.normalizers.NAMES if name not in ("top_k", "activation")),
    ka.normalizers.Softmax(temperature=2.0),
    ka.normalizers.Softmax(soft_cap=3.0, plus_one=True),
    ka.normalizers.TopK(2),
    ka.normalizers.Activation("tanh"),
]
MASKS = [
    None,
    "causal",
    ka.masks.Window(2),
    ka.masks.Dilated(2, 3),
    ka.masks.Strided(3),
    ka.masks.Prefix(2),
    ka.masks.Global((0,)),
    ka.masks.Chunked(2),
    ka.masks.Causal() & (ka.masks.Window(2) | ka.masks.Strided(4)),
    ka.masks.Blockwise(ka.masks.Causal(), 2),
]
POSITIONS = [
    None,
    "rotary",
    "xpos",
    "alibi",
    "scalar",
    ["rotary", "alibi"],
    ka.positions.LearnedALiBi,
    ka.positions.RelativeBias,
    lambda: ka.positions.RelativeBias(bidirectional=False),
    lambda: ka.positions.Shaw(3),
    lambda: ka.positions.TransformerXL(hidden_dim=4),
    lambda: ka.positions.Disentangled(4),
    lambda: ka.positions.ContinuousBias((2, 4)),
    lambda: ka.positions.SwinBias((2, 4)),
]


def last_of(x, axis=-1):
    """Return the second of two outputs of a split."""
    return tf.split(x, 2, axis=axis)[1]


def check(function, arrays, shapes):
    """Check that a graph of `function` with inputs of these shapes equals eager execution."""
    arrays = [tf.constant(x) for x in arrays]
    signature = [tf.TensorSpec(s, x.dtype) for s, x in zip(shapes, arrays, strict=True)]
    expected = function(*arrays)
    outputs = tf.function(function, input_signature=signature, autograph=False)(*arrays)
    for name, x in expected.items():
        np.testing.assert_allclose(outputs[name], x, rtol=1e-4, atol=1e-5, err_msg=name)


def numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


class Half(ka.scores.Dot):
    """A score that scales heads of any size."""

    def fold(self, query, key):
        return query, key, 0.5


def step(**sizes):
    """Attend with one query. Heads and bias are parts of larger tensors."""
    b, rows, keys, size = (sizes.get(x, n) for x, n in (("B", 2), ("bias", 2), ("S", 5), ("H", 4)))

    def attend(query, key, value, bias):
        query, key, value, bias = map(last_of, (query, key, value, bias))
        visibility = ka.attention.Visibility("causal", query_positions=np.array([keys - 1]))
        output, weights = ka.attention.attend(
            query, key, value, bias=bias, mask=visibility, score=Half()
        )
        return {"output": output, "weights": weights}

    one = [(b, 1, 1, 2 * size), *[(b, keys, 1, 2 * size)] * 2, (rows, 1, 1, 2 * keys)]
    free = [(None, 1, 1, 2 * size), *[(None, None, 1, 2 * size)] * 2, (None, 1, 1, None)]
    return attend, [numbers(*shape) for shape in one], free


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [{}, {"bias": 1}, {"H": 1}, {"S": 1}], ids=str)
def test_graphs_of_one_query_of_one_head(sizes):
    check(*step(**sizes))


@pytest.mark.slow
def test_the_second_map_uses_its_own_queries():
    layer = ka.attention.DifferentialAttention(1, 4, mask="causal")
    x = numbers(2, 5, 8)
    layer(x, x)

    def attend(query, value):
        return {"output": layer(query, value, query_positions=np.array([4]))}

    check(attend, [x[:, -1:], x], [(None, 1, 8), (None, None, 8)])


def part(family, one, heads, size):
    """Make a part, built for heads (N, H) if it has weights."""
    made = family.get(one() if inspect.isroutine(one) or inspect.isclass(one) else one)
    if isinstance(made, keras.layers.Layer):
        shape = (None, None, heads, size)
        made.build(*((shape, shape) if family is ka.scores else (shape,)))
        for weight in made.weights:
            weight.assign(weight + 0.3 * numbers(*weight.shape))
    return made


def pairs_of_parts():
    """Yield each pair of a score, normalizer, mask or position with a part of another family."""
    families = SCORES, NORMALIZERS, MASKS, POSITIONS
    plain = ["scaled_dot", "softmax", "causal", None]
    for a, b in itertools.combinations(range(4), 2):
        for one, other in itertools.product(families[a], families[b]):
            yield [one if i == a else other if i == b else plain[i] for i in range(4)]


SIZES = list(itertools.product((1, 2), ((1, 1), (2, 1), (2, 2)), (1, 3), (1, 6)))
STRIDE = 11 if ALL else 23  # odd, so that each pair of parts meets both kernels


def place(sizes, cached, stride=STRIDE):
    """Return the first pair of parts that a case tests, before each `stride`-th."""
    return (2 * SIZES.index(sizes) + cached) % stride


@pytest.mark.parametrize("stride", [11, 23])
def test_every_pair_of_parts_meets_both_kernels(stride):
    for cached in (False, True):
        assert {place(sizes, cached, stride) for sizes in SIZES} == set(range(stride))


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True], ids=["dense", "stored"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_graphs_of_parts_equal_eager_code(sizes, cached):
    batch, (heads, groups), length, keys = sizes
    size, parts = 4, list(pairs_of_parts())[place(sizes, cached) :: STRIDE]
    made = [
        [part(family, one, heads, size) for family, one in zip(FAMILIES, case, strict=True)]
        for case in parts
    ]

    def attend(query, key, value, seen, where):
        query, key, value = map(last_of, (query, key, value))
        seen = last_of(seen)
        outputs = {}
        for case, (score, normalizer, mask, position) in zip(parts, made, strict=True):
            heads_first = [tf.transpose(x, (0, 2, 1, 3)) for x in (key, value)]
            output, weights = ka.attention.attend(
                query,
                *(heads_first if cached else (key, value)),
                score=score,
                normalizer=normalizer,
                mask=ka.attention.Visibility(
                    mask,
                    attention_mask=seen,
                    query_positions=where + tf.range(length),
                    key_positions=np.arange(keys),
                ),
                position=position,
                implementation="dense_cached" if cached else None,
                return_weights=True,
            )
            outputs |= {f"output of {case}": output, f"weights of {case}": weights}
        return outputs

    arrays = [numbers(batch, length, heads, 2 * size)]
    arrays += [numbers(batch, keys, groups, 2 * size) for _ in range(2)]
    arrays += [numbers(batch, 1, 1, 2 * keys) > -1, np.int32(keys - length)]
    free = None if keys > 1 else 1
    shapes = [(None, length, heads, 2 * size), *[(None, free, groups, 2 * size)] * 2]
    check(attend, arrays, [*shapes, (None, 1, 1, None if free is None else 2), ()])


FAMILIES = ka.scores, ka.normalizers, ka.masks, ka.positions


def layers(heads):
    """Return attention layers by name."""
    attention = ka.attention.MultiHeadAttention
    plain = dict(mask="causal", position="rotary")
    groups = dict(num_key_value_heads=1, **plain)
    every = dict(qk_norm="rms_norm", sink=True, num_memory_slots=2, talking_heads=True)
    return {
        "multi-head": attention(heads, 4, **plain),
        "no position": attention(heads, 4, mask="causal"),
        "one key head": attention(heads, 4, **groups),
        "all structures": attention(heads, 4, use_gate=True, **every, **groups),
        "alibi": attention(heads, 4, mask="causal", position="alibi"),
        "transformer_xl": attention(heads, 4, mask="causal", position="transformer_xl"),
        "sparsemax": attention(heads, 4, mask="causal", normalizer="sparsemax"),
        "additive": attention(heads, 4, mask="causal", score="additive"),
        "cosine": attention(heads, 4, mask="causal", score="cosine"),
        "differential": ka.attention.DifferentialAttention(heads, 4, mask="causal"),
        "differential rotary": ka.attention.DifferentialAttention(heads, 4, **plain),
        "differential, grouped": ka.attention.DifferentialAttention(heads, 4, **groups),
        "latent": ka.attention.LatentAttention(heads, 4, 6, rotary_dim=2, mask="causal"),
        "linear": ka.attention.LinearAttention(heads, 4),
        "residual": ka.attention.ResidualAttention(heads, 4, mask="causal"),
        "memorizing": ka.attention.MemorizingAttention(heads, 4, 6, mask="causal"),
        "attention": ka.attention.Attention(mask="causal"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 1, 6), (1, 3, 6), (2, 1, 6), (2, 1, 1)], ids=str)
def test_graphs_of_layers_equal_eager_code(sizes, dtype):
    heads, length, keys = sizes
    x, y = numbers(2, length, 16), numbers(2, keys, 16)
    keras.config.set_dtype_policy(dtype)
    try:
        made = layers(heads)
    finally:
        keras.config.set_dtype_policy("float32")

    def call(name, layer, query, value):
        if name == "attention":
            return layer([query, value])
        if name == "residual":
            return layer(query, value)[0]
        return layer(query, value)

    def attend(x, y):
        outputs = {}
        for name, layer in made.items():
            query, value = last_of(x), last_of(y)
            output = call(name, layer, query, value)
            outputs[name] = output[0] if isinstance(output, tuple) else output
        return outputs

    attend(tf.constant(x), tf.constant(y))
    for layer in made.values():
        for weight in layer.weights:
            if len(weight.shape) > 1:
                weight.assign(numbers(*weight.shape) / 2)
    check_loosely = dict(float32=1e-5, mixed_bfloat16=0.1)[dtype]
    arrays = [tf.constant(x), tf.constant(y)]
    signature = [tf.TensorSpec((None, length, 16)), tf.TensorSpec((None, keys, 16))]
    expected = attend(*arrays)
    outputs = tf.function(attend, input_signature=signature, autograph=False)(*arrays)
    for name, x in expected.items():
        x, y = (np.asarray(tf.cast(z, "float32")) for z in (x, outputs[name]))
        np.testing.assert_allclose(y, x, rtol=check_loosely, atol=check_loosely, err_msg=name)
