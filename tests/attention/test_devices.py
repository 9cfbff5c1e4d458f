"""The form of TensorFlow's slices on GPUs and under XLA."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.attention.kernels import sliced_tensorflow, softmax_tensorflow

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the forms are TensorFlow's"
)
CAUSAL, WINDOW = ka.masks.Causal(), ka.masks.Causal() & ka.masks.Window(40)


@pytest.fixture
def gpu(monkeypatch):
    """Let TensorFlow list one GPU."""
    devices = tf.config.list_physical_devices

    def with_gpu(kind=None):
        return [tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")] * (kind == "GPU") or (
            devices(kind)
        )

    monkeypatch.setattr(tf.config, "list_physical_devices", with_gpu)


@pytest.fixture
def by_hand(monkeypatch):
    """Record the calls of the form for CPUs."""
    calls, attend = [], softmax_tensorflow.attend_in_slices

    def listening(*args, **kwargs):
        calls.append(args)
        return attend(*args, **kwargs)

    monkeypatch.setattr(softmax_tensorflow, "attend_in_slices", listening)
    return calls


def both_passes(implementation, jit_compile=None, **terms):
    """Return output and gradients of attention over 300 keys."""
    random = np.random.default_rng(0)
    arrays = [tf.constant(random.normal(size=(2, 300, n, 4)), "float32") for n in (4, 2, 2)]
    upstream = tf.constant(random.normal(size=(2, 300, 4, 4)), "float32")

    @tf.function(autograph=False, jit_compile=jit_compile)
    def step(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            output = ka.attention.attend(
                *arrays, return_weights=False, implementation=implementation, **terms
            )
        return [output, *tape.gradient(output, arrays, upstream)]

    return step(*arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    "terms", [{"mask": CAUSAL}, {"mask": WINDOW, "position": "alibi"}], ids=str
)
@pytest.mark.parametrize("implementation", ["chunked", "banded"])
def test_the_form_for_gpus_equals_dense(gpu, by_hand, terms, implementation):
    if implementation == "banded" and terms["mask"] == CAUSAL:
        terms = {"mask": WINDOW}
    expected = both_passes("dense", **terms)
    for ours, theirs in zip(both_passes(implementation, **terms), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert not by_hand


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["chunked", "banded"])
def test_xla_computes_the_same(implementation):
    terms = {"mask": WINDOW, "position": "alibi"}
    expected = both_passes("dense", **terms)
    outputs = both_passes(implementation, jit_compile=True, **terms)
    for ours, theirs in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_the_form_for_cpus_runs_only_on_cpus_without_xla(by_hand):
    x = tf.zeros((1, 300, 2, 4))

    def trace(jit_compile):
        def attend(x):
            return ka.attention.attend(
                x, x, x, mask=CAUSAL, return_weights=False, implementation="chunked"
            )

        tf.function(attend, autograph=False, jit_compile=jit_compile).get_concrete_function(x)

    trace(True)
    assert not by_hand
    trace(None)
    assert by_hand


def test_a_slice_depends_on_the_output_of_the_one_before(gpu):
    """Find a zero made of the output of the first product between two products."""
    x = tf.zeros((1, 600, 2, 4))
    attend = tf.function(
        lambda x: ka.attention.attend(
            x, x, x, mask=CAUSAL, return_weights=False, implementation="chunked"
        ),
        autograph=False,
    )
    ops = [op.type for op in attend.get_concrete_function(x).graph.get_operations()]
    assert ops.count("IsNan") == ops.count("Softmax") - 1 == 600 // 128


def test_short_causal_attention_is_dense_on_gpus(gpu):
    layer = ka.attention.MultiHeadAttention(2, 4, mask=CAUSAL)
    assert ka.attention.explain(layer, 512).implementation == "dense"
    assert ka.attention.explain(layer, 4096).implementation == "chunked"


def test_short_causal_attention_is_chunked_on_cpus():
    layer = ka.attention.MultiHeadAttention(2, 4, mask=CAUSAL)
    assert ka.attention.explain(layer, 512).implementation == "chunked"


def test_the_zero_of_a_tensor_is_zero_also_for_nan():
    assert sliced_tensorflow.zero_of(tf.constant([1.0, np.nan])) == 0
    assert sliced_tensorflow.zero_of(tf.constant([1.0, np.inf])) == 0
