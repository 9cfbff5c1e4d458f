"""All kernels equal `dense` in outputs and gradients, for random configurations."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

import keras_attention as ka
from keras_attention.attention import kernels
from keras_attention.attention.kernels import softmax_tensorflow
from keras_attention.core import onednn
from tests.grids import quick, thinned

# The banded kernel has slices of 64 queries or more, the chunked one of 128. These lengths fill no
# slice, some slices, or a part of one.
LENGTHS = st.sampled_from([1, 5, 67, 131, 200, 263])
BANDS = st.sampled_from(
    [
        ka.masks.Window(1),
        ka.masks.Window(40),
        ka.masks.Causal() & ka.masks.Window(33),
        ka.masks.Dilated(3, 4),
        ka.masks.Window(9) | ka.masks.Global(3),
        (ka.masks.Causal() & ka.masks.Window(20)) | ka.masks.Global((0, 70, 150)),
        ka.masks.Prefix(5),
        ka.masks.Chunked(50),
        ka.masks.Window(300),
    ]
)
OTHERS = st.sampled_from(
    [None, ka.masks.Causal(), ka.masks.Strided(3), ~ka.masks.Window(4), ka.masks.Full()]
)
SCORES = ["dot", "scaled_dot", "cosine", "bilinear", "additive", "squared_distance"]
NORMALIZERS = [
    "softmax",
    "sparsemax",
    ka.normalizers.Entmax(1.5),
    "sigmoid",
    ka.normalizers.ReLU(divide_by_length=True),
    ka.normalizers.TopK(3),
    ka.normalizers.Softmax(temperature=2.0, soft_cap=5.0, plus_one=True),
]
POSITIONS = [None, "rotary", "alibi", "relative_bias", ["rotary", "alibi"]]

CASES = {
    "heads": st.sampled_from([(1, 1), (3, 3), (4, 2)]),
    "batch": st.sampled_from([1, 2]),
    "queries": LENGTHS,
    "keys": LENGTHS,
    "score": st.sampled_from(SCORES),
    "normalizer": st.sampled_from(NORMALIZERS),
    "position": st.sampled_from(POSITIONS),
    "padded": st.sampled_from([None, "keys", "pairs"]),
    "biased": st.sampled_from([None, (0, 1, 1, 1), (1, 1, 0, 1), (1, 1, 1, 1)]),
    "seed": st.integers(0, 99),
}
QUICK = settings(max_examples=25, deadline=None)


def attention(kernel, dtype, mask, heads, batch, queries, keys, **case):
    """Return output and gradients of query, key, value, bias and weights, by `kernel`."""
    random = np.random.default_rng(case["seed"])
    (N, K), H = heads, 8
    inputs = [
        tf.constant(random.normal(size=shape), dtype)
        for shape in [(batch, queries, N, H), (batch, keys, K, H), (batch, keys, K, H)]
    ]
    keras.utils.set_random_seed(case["seed"])
    score, position = ka.scores.get(case["score"]), ka.positions.get(case["position"])
    for part in (score, position):
        if isinstance(part, keras.layers.Layer):
            shape = (batch, None, N, H)
            part.build(*([shape, shape] if part is score else [shape]))
    variables = [
        weight.value
        for part in (score, position)
        if isinstance(part, keras.layers.Layer)
        for weight in part.weights
    ]
    full = (batch, N, queries, keys)
    if case["biased"]:
        shape = [size if whole else 1 for size, whole in zip(full, case["biased"], strict=True)]
        inputs.append(tf.constant(random.normal(size=shape), "float32"))
    allowed = None
    if case["padded"]:  # some queries see no key
        allowed = random.random((batch, 1, 1, keys)) < 0.5
        allowed[0, ..., : keys // 2] = False
        if case["padded"] == "pairs":
            allowed = allowed & (random.random((1, 1, queries, 1)) < 0.9)
        allowed = tf.constant(allowed)
    upstream = tf.constant(random.normal(size=(batch, queries, N, H)), dtype)
    with tf.GradientTape() as tape:
        tape.watch([*inputs, *variables])
        output = ka.attention.attend(
            *inputs[:3],
            score=score,
            normalizer=case["normalizer"],
            mask=ka.attention.Visibility(mask, attention_mask=allowed),
            position=position,
            bias=inputs[3] if case["biased"] else None,
            return_weights=False,
            implementation=kernel,
        )
        loss = tf.reduce_sum(tf.cast(output * upstream, "float32"))
    gradients = tape.gradient(
        loss, [*inputs, *variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return [np.asarray(tf.cast(tf.convert_to_tensor(x), "float32")) for x in (output, *gradients)]


def assert_equal(kernel, dtype, tolerance, mask, case, gradients=True):
    outputs = attention(kernel, dtype, mask, **case)[: None if gradients else 1]
    expected = attention("dense", dtype, mask, **case)[: len(outputs)]
    for ours, theirs in zip(outputs, expected, strict=True):
        assert np.all(np.isfinite(ours))
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=tolerance * scale)


@pytest.mark.slow
@QUICK
@given(mask=BANDS, case=st.fixed_dictionaries(CASES))
def test_banded_equals_dense(mask, case):
    # with one key the gradient is 0 by definition, a sum of rounded terms
    assert_equal("banded", "float32", 4e-5, mask, case)


@pytest.mark.slow
@QUICK
@given(mask=st.one_of(BANDS, OTHERS), case=st.fixed_dictionaries(CASES))
def test_chunked_equals_dense(mask, case):
    assert_equal("chunked", "float32", 2e-5, mask, case)


@settings(QUICK, max_examples=8)
@given(kernel=st.sampled_from(["banded", "chunked"]), mask=BANDS, case=st.fixed_dictionaries(CASES))
def test_kernels_equal_dense_in_bfloat16(kernel, mask, case):
    """Compare no TopK outputs and no gradients, because rounded scores may choose other keys."""
    normalizer = ka.normalizers.get(case["normalizer"])
    jumps = isinstance(normalizer, ka.normalizers.Sparsemax | ka.normalizers.ReLU)
    if not isinstance(normalizer, ka.normalizers.TopK):
        assert_equal(kernel, "bfloat16", 6e-2, mask, case, gradients=not jumps)


@pytest.mark.parametrize("normalizer", quick(["softmax", "sigmoid"], "softmax"))
@pytest.mark.parametrize("kernel", ["banded", "chunked"])
def test_no_pass_holds_a_square(kernel, normalizer):
    """Compare the largest tensor of the graph, with gradients, to the (T, S) square."""
    length, mask = 1024, ka.masks.Causal() & ka.masks.Window(100)

    @tf.function(autograph=False)
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = ka.attention.attend(
                x,
                x,
                x,
                normalizer=normalizer,
                mask=mask,
                return_weights=False,
                implementation=kernel,
            )
        return tape.gradient(output, x)

    graph = step.get_concrete_function(tf.TensorSpec((1, length, 2, 8))).graph
    sizes = [
        tensor.shape.num_elements() or 0
        for function in [
            graph,
            *(f.graph for f in graph._functions.values() if hasattr(f, "graph")),
        ]
        for operation in function.get_operations()
        for tensor in operation.outputs
    ]
    assert length * 2 * 8 <= max(sizes) <= length * 256 * 2


USUAL = dict(score="scaled_dot", normalizer="softmax", position=None, biased=None)


@pytest.mark.slow
@QUICK
@given(
    mask=st.one_of(BANDS, OTHERS).filter(lambda mask: mask is None or mask.relative),
    case=st.fixed_dictionaries(
        CASES
        | {name: st.just(value) for name, value in USUAL.items()}
        | {"padded": st.sampled_from([None, "keys"])}
    ),
    normalizer=st.sampled_from(["softmax", ka.normalizers.Softmax(temperature=2.0)]),
    score=st.sampled_from(["dot", "scaled_dot", "bilinear"]),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_the_form_for_the_usual_softmax_equals_dense(mask, case, normalizer, score, dtype):
    """Check that TensorFlow's form by hand runs and equals `dense`."""
    taken = []
    run = softmax_tensorflow.attend_in_slices
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            softmax_tensorflow,
            "attend_in_slices",
            lambda *a, **k: taken.append(run(*a, **k)) or taken[-1],
        )
        case = case | {"normalizer": normalizer, "score": score}
        assert_equal("chunked", dtype, 6e-2 if dtype == "bfloat16" else 2e-5, mask, case)
    assert taken and taken[0] is not None


def compute(inputs, upstream, **settings):
    """Return output and gradients of attention, float32, and how many softmaxes the graph has."""

    @tf.function(autograph=False)
    def step(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            output = ka.attention.attend(*inputs, return_weights=False, **settings)
        gradients = tape.gradient(output, inputs, tf.cast(upstream, output.dtype))
        return [tf.cast(x, "float32") for x in (output, *gradients)]

    operations = step.get_concrete_function(*inputs).graph.get_operations()
    return step(*inputs), sum(operation.type == "Softmax" for operation in operations)


@pytest.mark.parametrize("kernel", ["dense", "chunked"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_bfloat16_equals_float32(mask, kernel, monkeypatch):
    """Compare the form that TensorFlow uses with oneDNN, whose softmax computes in float32.

    Keys and values have a common mean. With it, rounding errors would add up.
    """
    monkeypatch.setattr(onednn, "normalizes_bfloat16", lambda: True)
    monkeypatch.setattr(tf.nn, "softmax", softmax_in_float32(tf.nn.softmax))
    taken, run = [], softmax_tensorflow.attend_in_slices
    monkeypatch.setattr(
        softmax_tensorflow, "attend_in_slices", lambda *a: taken.append(run(*a)) or taken[-1]
    )
    random = np.random.default_rng(0)
    shapes = [(2, 140, 4, 8), (2, 150, 2, 8), (2, 150, 2, 8), (2, 140, 4, 8)]
    arrays = [random.normal(size=x) for x in shapes]
    for array in arrays[1:3]:
        array += 3 * random.normal(size=(1, 1, *array.shape[2:]))
    *inputs, upstream = (tf.constant(x, "bfloat16") for x in arrays)
    visible = ka.attention.Visibility(mask, attention_mask=random.random((2, 1, 1, 150)) < 0.5)
    results, _ = compute(inputs, upstream, mask=visible, implementation=kernel)
    assert len(taken) == 1 and taken[0] is not None
    exact = [tf.cast(x, "float32") for x in inputs]
    expected, _ = compute(exact, upstream, mask=visible, implementation="dense")
    for ours, theirs in zip(results, expected, strict=True):
        error = np.sqrt(np.mean((ours - theirs) ** 2) / np.mean(np.square(theirs)))
        assert error < 0.03


def softmax_in_float32(softmax):
    return lambda x, **axis: tf.cast(softmax(tf.cast(x, "float32"), **axis), x.dtype)


def test_weights_in_bfloat16_sum_to_one():
    """Sum the weights by values of one. TensorFlow without oneDNN adds up rounded numbers."""
    random = np.random.default_rng(0)
    query, key = (tf.constant(3 * random.normal(size=(1, 512, 2, 8)), "bfloat16") for _ in range(2))
    output = ka.attention.attend(
        query, key, tf.ones_like(key), mask="causal", return_weights=False, implementation="chunked"
    )
    np.testing.assert_allclose(tf.cast(output, "float32"), 1.0, atol=4e-3)  # half a unit


@pytest.mark.parametrize("dtype, length", [("bfloat16", 160), ("float32", 2100)])
def test_symbolic_tensors_get_a_shape(dtype, length):
    heads = keras.KerasTensor((None, length, 4, 8), dtype)
    for mask in (None, "causal"):
        output = ka.attention.attend(heads, heads, heads, mask=mask, return_weights=False)
        assert output.shape == heads.shape and output.dtype == dtype


def test_a_score_may_compute_in_another_dtype(monkeypatch):
    monkeypatch.setattr(onednn, "normalizes_bfloat16", lambda: True)

    class InFloat32(ka.scores.Score):
        def fold(self, query, key):
            return ops.cast(query, "float32"), ops.cast(key, "float32"), 0.25

    x = tf.cast(tf.random.normal((1, 160, 2, 8), seed=0), "bfloat16")
    output = ka.attention.attend(x, x, x, score=InFloat32(), return_weights=False)
    assert output.dtype == "bfloat16"


@pytest.mark.parametrize("most, count", [(2**21, 3), (0, 6)])
def test_few_weights_are_kept_for_the_gradient(most, count, monkeypatch):
    monkeypatch.setattr(softmax_tensorflow, "MOST_KEPT", most)
    x = tf.constant(np.random.default_rng(0).normal(size=(1, 300, 2, 4)), "float32")
    settings = {"mask": "causal", "implementation": "chunked"}
    results, softmaxes = compute([x, x, x], x, **settings)
    assert softmaxes == count
    expected, _ = compute([x, x, x], x, mask="causal", implementation="dense")
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("normalizer", ["softmax", ka.normalizers.Softmax(temperature=2.0)])
@pytest.mark.parametrize("score", ["dot", "scaled_dot", "bilinear"])
def test_no_graph_has_the_slow_fusion(score, normalizer):
    """Find no fused operation of product · scale + mask.

    It is a hundred times slower than three operations if the mask is broadcast along heads.
    """
    score = ka.scores.get(score)
    if isinstance(score, keras.layers.Layer):
        score.build((None, None, 3, 4), (None, None, 3, 4))

    @tf.function(autograph=False)
    def attend(x):
        return ka.attention.attend(
            *(x, x, x), score=score, normalizer=normalizer, mask="causal", implementation="dense"
        )[0]

    graph = attend.get_concrete_function(tf.TensorSpec((2, 9, 3, 4))).graph
    products = [x for x in graph.get_operations() if x.type == "BatchMatMulV2"]
    assert products
    for product in products:
        for scale in product.outputs[0].consumers():
            if scale.type in ("Mul", "RealDiv"):
                assert not {op.type for op in scale.outputs[0].consumers()} & {"AddV2", "Sub"}


def test_gradients_have_gradients():
    random = np.random.default_rng(0)
    q, k, v = (tf.constant(random.normal(size=(1, 300, 2, 4)), "float32") for _ in range(3))

    def second(kernel):
        with tf.GradientTape() as outer:
            outer.watch([q, k, v])
            with tf.GradientTape() as inner:
                inner.watch(q)
                loss = tf.reduce_sum(
                    ka.attention.attend(
                        q, k, v, mask="causal", return_weights=False, implementation=kernel
                    )
                    ** 2
                )
            gradient = inner.gradient(loss, q)
        return outer.gradient(gradient, [q, k, v])

    for ours, theirs in zip(second("chunked"), second("dense"), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("jit_compile", quick([False, True], False))
def test_kernels_in_graphs_of_any_batch(jit_compile):
    random = np.random.default_rng(0)
    x = random.normal(size=(3, 300, 4, 4)).astype("float32")

    @tf.function(
        autograph=False,
        jit_compile=jit_compile,
        input_signature=[tf.TensorSpec((None, 300, 4, 4))],
    )
    def attend(x):
        return ka.attention.attend(
            x,
            x[:, :, :2],
            x[:, :, :2],
            mask="causal",
            return_weights=False,
            implementation="chunked",
        )

    expected, _ = ka.attention.attend(x, x[:, :, :2], x[:, :, :2], mask="causal")
    np.testing.assert_allclose(attend(x), expected, atol=1e-5)


def test_masked_values_do_not_change_outputs():
    """Use huge values, because NaN and infinities in hidden values reach the output."""
    random = np.random.default_rng(0)
    q, k, v = random.normal(size=(3, 1, 200, 2, 4)).astype("float32")
    mask = ka.masks.Window(5)
    for kernel in ("banded", "chunked"):
        before = ka.attention.attend(
            q, k, v, mask=mask, return_weights=False, implementation=kernel
        )
        changed = v.copy()
        changed[:, 150:] = 1e30
        after = ka.attention.attend(
            q, k, changed, mask=mask, return_weights=False, implementation=kernel
        )
        np.testing.assert_array_equal(before[:, :146], after[:, :146])


@pytest.mark.parametrize(
    "arguments, lengths, kernel, reason",
    [
        ({}, (100,), "dense", "few"),
        ({}, (4096,), "chunked", "4096 keys"),
        ({}, (1024,), "dense", "few"),
        ({"mask": "causal"}, (256,), "chunked", "256 keys"),
        ({"mask": "causal"}, (255,), "dense", "few"),
        ({"mask": ka.masks.Window(64)}, (4096,), "banded", "of 4096 keys"),
        ({"mask": ka.masks.Window(64)}, (100,), "dense", "few"),
        ({"mask": ka.masks.Window(64) | ka.masks.Global(2)}, (4096,), "banded", "of 4096"),
        ({"sliding_window": 64}, (4096,), "banded", "of 4096"),
        ({"mask": "causal"}, (4096,), "chunked", "4096 keys"),
        ({"score": "additive"}, (4096,), "chunked", "4096 keys"),
        ({}, (None,), "dense", "not known"),
        ({}, (1, 4096), "dense", "few"),
    ],
)
def test_explain_names_the_kernel(arguments, lengths, kernel, reason):
    layer = ka.attention.MultiHeadAttention(2, 8, **arguments)
    choice = ka.attention.explain(layer, *lengths)
    assert (
        choice.implementation == kernel
        and reason in choice.reason
        and str(choice).startswith(kernel)
    )


def test_explain_in_training_and_with_weights():
    layer = ka.attention.MultiHeadAttention(2, 8, dropout=0.1)
    assert ka.attention.explain(layer, 4096).implementation == "chunked"
    assert "dropout" in ka.attention.explain(layer, 4096, training=True).reason
    assert "weights" in ka.attention.explain(layer, 4096, return_attention_scores=True).reason


def list_kernels_that_run(monkeypatch):
    """Return a list to which every kernel that runs adds its name."""
    used, bind = [], kernels.bind
    monkeypatch.setattr(
        kernels, "bind", lambda name, *flash: used.append(name) or bind(name, *flash)
    )
    return used


def test_the_layer_computes_with_the_kernel_that_explain_names(monkeypatch):
    used = list_kernels_that_run(monkeypatch)
    x = np.random.default_rng(0).normal(size=(1, 1100, 8)).astype("float32")
    layer = ka.attention.MultiHeadAttention(2, 4, mask=ka.masks.Window(20), dropout=0.5)
    plain = layer(x, x)
    named, _ = layer(x, x, return_attention_scores=True)
    layer(x, x, training=True)
    assert used == ["banded", "dense", "dense"]
    np.testing.assert_allclose(plain, named, atol=1e-6)


def test_recording_gets_weights_with_every_kernel():
    inputs = keras.Input((1100, 8))
    layer = ka.attention.MultiHeadAttention(2, 4, mask=ka.masks.Window(20), name="local")
    model = keras.Model(inputs, layer(inputs, inputs))
    x = np.random.default_rng(0).normal(size=(1, 1100, 8)).astype("float32")
    plain = model(x)
    with ka.visualization.record_attention(model) as maps:
        np.testing.assert_allclose(model(x), plain, atol=1e-6)
    assert maps["local"].shape == (1, 2, 1100, 1100)


@pytest.mark.parametrize(
    "kernel, arguments, message",
    [
        ("flash", {}, "Unknown kernel 'flash'. Known: dense, fused, banded, chunked, ring"),
        ("banded", {"mask": "causal"}, "banded.*no band"),
        (
            "banded",
            {"mask": ka.attention.Visibility(ka.masks.Window(2), query_positions=[0, 1, 2])},
            "positions are given",
        ),
        ("chunked", {"return_weights": True}, "weights are requested"),
        ("chunked", {"dropout": lambda weights: weights}, "dropout"),
        ("fused", {}, "tensorflow has no attention function of its own"),
        ("ring", {}, "it needs the JAX backend, and Keras runs on tensorflow"),
    ],
)
def test_a_named_kernel_that_cannot_compute_is_an_error(kernel, arguments, message):
    x = np.zeros((1, 3, 1, 4), "float32")
    with pytest.raises(ValueError, match=message):
        ka.attention.attend(
            x, x, x, implementation=kernel, **{"return_weights": False, **arguments}
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel, mask",
    [
        ("banded", ka.masks.Window(20) | ka.masks.Global((0, 200))),
        ("chunked", ka.masks.Causal()),
    ],
    ids=["banded", "chunked"],
)
def test_kernels_export_at_fixed_length(kernel, mask, tmp_path):
    x = keras.Input((300, 8), name="x")
    layer = ka.attention.MultiHeadAttention(
        2, 4, mask=mask, position="rotary", implementation=kernel
    )
    model = keras.Model(x, layer(x, x))
    report = ka.export.to_litert(model, tmp_path / "m.tflite", batch_size=1)
    assert report.max_abs_error < 1e-4 and not any("While" in op for op in report.ops)


def test_every_kernel_can_return_weights():
    x = np.random.default_rng(0).normal(size=(1, 70, 8)).astype("float32")
    layer = ka.attention.MultiHeadAttention(2, 4, mask=ka.masks.Window(5), implementation="banded")
    output, weights = layer(x, x, return_attention_scores=True)
    np.testing.assert_allclose(output, layer(x, x), atol=1e-6)
    assert weights.shape == (1, 2, 70, 70)
    assert ka.attention.explain(layer, 70).implementation == "banded"
    assert ka.attention.explain(layer, 70, return_attention_scores=True).implementation == "banded"


def test_a_named_kernel_computes_the_output_beside_weights(monkeypatch):
    used = list_kernels_that_run(monkeypatch)
    x = np.random.default_rng(0).normal(size=(1, 70, 8)).astype("float32")
    named = {"mask": ka.masks.Window(5), "implementation": "banded"}
    for layer in [
        ka.attention.MultiHeadAttention(2, 4, **named),
        ka.attention.LatentAttention(2, 4, 4, 4, **named),
        ka.attention.DifferentialAttention(2, 4, **named),
        ka.attention.Attention(**named),
    ]:
        used.clear()
        call = (x, x) if not isinstance(layer, ka.attention.Attention) else ([x, x],)
        plain, (output, weights) = layer(*call), layer(*call, return_attention_scores=True)
        maps = 2 if isinstance(layer, ka.attention.DifferentialAttention) else 1
        assert used == ["banded"] * maps + ["dense", "banded"] * maps
        np.testing.assert_allclose(output, plain, atol=1e-6)
        assert weights.shape[-2:] == (70, 70)


EXPLAINED = {
    "causal": {"mask": "causal"},
    "window": {"mask": ka.masks.Window(9)},
    "global tokens": {"mask": ka.masks.Window(9) | ka.masks.Global(2)},
    "named": {"mask": ka.masks.Window(9), "implementation": "chunked"},
    "dropout": {"mask": "causal", "dropout": 0.5},
    "bias": {"mask": "causal", "position": "alibi"},
    "structures": {"sink": True, "talking_heads": True, "num_memory_slots": 1},
    "prefix": {"mask": ka.masks.Causal() | ka.masks.Prefix(2)},
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("argument", [None, "positions", "padding", "attention_mask"])
@pytest.mark.parametrize("name", EXPLAINED)
def test_explain_and_the_call_get_the_same_choice(monkeypatch, name, argument, training):
    choices, choose = [], kernels.choose
    monkeypatch.setattr(kernels, "choose", lambda *a: choices.append(choose(*a)) or choices[-1])
    layer = ka.attention.MultiHeadAttention(2, 4, padding="right", **EXPLAINED[name])
    for length in (0, 1, 100, 300):
        case = {"training": training, "return_attention_scores": length == 100}
        flags = {argument: True} if argument else {}
        expected = ka.attention.explain(layer, length, **flags, **case)
        choices.clear()
        x, tokens = tf.zeros((1, length, 8)), tf.ones((1, length), "bool")
        arguments = {
            "positions": {"query_positions": np.arange(length)},
            "padding": {"query_mask": tokens, "value_mask": tokens},
            "attention_mask": {"attention_mask": np.ones((1, length, length), "bool")},
        }
        layer(x, x, **arguments.get(argument, {}), **case)
        assert choices[-1] == expected


def test_a_layer_with_a_named_kernel_attends_to_a_cache(monkeypatch):
    x = keras.Input((None, 8))
    layer = ka.attention.MultiHeadAttention(2, 4, mask="causal", implementation="chunked")
    model = keras.Model(x, layer(x, x))
    cache = ka.generation.initial_cache(model, 1, 3)
    used = list_kernels_that_run(monkeypatch)
    with ka.generation.decoding_scope(cache, 0):
        model(np.zeros((1, 1, 8), "float32"))
    assert used == ["dense_cached"]


def test_explain_refuses_other_layers():
    latent = ka.attention.LatentAttention(2, 4, 8, 4, mask="causal")
    assert ka.attention.explain(latent, 400).implementation == "chunked"
    with pytest.raises(ValueError, match="expected an attention layer such as MultiHeadAttention"):
        ka.attention.explain(keras.layers.Dense(3), 100)


@dataclasses.dataclass(frozen=True)
class EvenCausal(ka.masks.Causal):
    """A mask with another rule than its parent."""

    def allows(self, i, j):
        return ops.logical_or(ops.logical_and(super().allows(i, j), j % 2 == 0), j == 299)


def test_a_mask_that_redefines_its_parents_rule_applies_everywhere():
    case = dict.fromkeys(CASES) | USUAL | {"heads": (1, 1), "batch": 1, "queries": 300}
    case |= {"keys": 300, "seed": 0}
    assert not EvenCausal().relative and EvenCausal().band() == (None, None)
    assert_equal("chunked", "float32", 2e-5, EvenCausal(), case)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "is_static, mask, shape",
    thinned(
        [True, False],
        [None, ka.masks.Causal(), ka.masks.Window(20)],
        [(2, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 300), (2, 1, 300, 1)],
    ),
    ids=str,
)
def test_masks_of_every_shape(is_static, mask, shape):
    """Give the graph the shape of the mask if `is_static`."""
    random = np.random.default_rng(0)
    q, k, v = (tf.constant(random.normal(size=(2, 300, 2, 4)), "float32") for _ in range(3))
    allowed = random.random(shape) < 0.5

    def attend(allowed, kernel):
        visibility = ka.attention.Visibility(mask, attention_mask=allowed)
        how = {"return_weights": False, "implementation": kernel}
        return ka.attention.attend(q, k, v, mask=visibility, **how)

    signature = [tf.TensorSpec(shape if is_static else [None] * 4, "bool")]
    for kernel in ("chunked", "banded") if isinstance(mask, ka.masks.Window) else ("chunked",):
        function = tf.function(lambda x, kernel=kernel: attend(x, kernel), signature)
        np.testing.assert_allclose(function(allowed), attend(allowed, "dense"), atol=1e-5)


@pytest.mark.parametrize(
    "shapes, dtypes",
    [
        ([(1, 300, 2, 4), (3, 300, 1, 4), (3, 300, 1, 4)], ["float32"] * 3),
        ([(3, 300, 2, 4), (1, 300, 2, 4), (1, 300, 2, 4)], ["float32"] * 3),
        ([(2, 300, 2, 4)] * 3, ["float32", "float32", "bfloat16"]),
    ],
)
def test_chunked_kernel_broadcasts_like_the_dense_kernel(shapes, dtypes):
    random = np.random.default_rng(0)
    tensors = [
        tf.cast(tf.constant(random.normal(size=shape), "float32"), dtype)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]

    def compute(kernel):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            output = ka.attention.attend(
                *tensors, mask="causal", return_weights=False, implementation=kernel
            )
            loss = tf.reduce_sum(tf.cast(output, "float32") ** 2)
        return [output, *tape.gradient(loss, tensors)]

    for ours, theirs in zip(compute("chunked"), compute("dense"), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        scale = max(1.0, float(tf.reduce_max(tf.abs(theirs))))
        near = {"atol": (2e-2 if "bfloat16" in dtypes else 2e-5) * scale}
        np.testing.assert_allclose(*(tf.cast(x, "float32") for x in (ours, theirs)), **near)


def test_padded_queries_need_no_square_and_get_zeros():
    random = np.random.default_rng(0)
    layer = ka.attention.MultiHeadAttention(2, 4, mask="causal")
    x = tf.constant(random.normal(size=(2, 1024, 8)), "float32")
    padding = tf.sequence_mask([1000, 700], 1024)
    plain = layer(x, x, query_mask=padding, value_mask=padding)
    expected, _ = layer(x, x, query_mask=padding, value_mask=padding, return_attention_scores=True)
    np.testing.assert_allclose(plain, expected, atol=1e-5)
    bias = layer._output_dense(tf.zeros((1, 1, 2, 4)))[0, 0]
    np.testing.assert_array_equal(plain[1, 700:], np.tile(bias, (324, 1)))
    graph = tf.function(lambda x: layer(x, x, query_mask=padding, value_mask=padding))
    operations = graph.get_concrete_function(x).graph.get_operations()
    sizes = [tensor.shape.num_elements() or 0 for op in operations for tensor in op.outputs]
    assert max(sizes) < 2 * 1024 * 1024
