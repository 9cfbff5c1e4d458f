"""The loop of training and the loop of devices give equal results."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.core import scope
from keras_attention.recurrent import recur
from tests import gradients

B, T, D = 2, 5, 3
X = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MASK = np.array([[True, True, False, True, False], [False, True, True, True, True]])


def step(inputs, states):
    """Run a step of two inputs, two outputs of other shapes, and two states."""
    x, y = inputs
    total, count = states
    total = total * 0.5 + ops.tanh(x)
    outputs = {"total": total + y, "outer": ops.expand_dims(total, 2) * ops.expand_dims(x, 1)}
    return outputs, [total, count + 1]


def by_hand(mask, backwards):
    totals, outer = np.zeros((B, T, D)), np.zeros((B, T, D, D))
    state, count = np.zeros((B, D)), np.zeros(B, int)
    for b in range(B):
        for t in reversed(range(T)) if backwards else range(T):
            if mask is None or mask[b, t]:
                state[b] = state[b] * 0.5 + np.tanh(X[b, t])
                totals[b, t] = state[b] + X[b, t, :1]
                outer[b, t] = np.outer(state[b], X[b, t])
                count[b] += 1
    return totals, outer, state, count


def run(mask=None, backwards=False, x=X):
    states = [ops.zeros((B, D)), ops.zeros((B, 1), dtype="int32")]
    x = ops.convert_to_tensor(x)
    outputs, states = recur(step, (x, x[:, :, :1]), states, mask, backwards)
    return outputs["total"], outputs["outer"], *states


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
@pytest.mark.parametrize("exporting", [False, True])
def test_equals_a_python_loop(mask, backwards, exporting):
    if exporting:
        with scope.Export():
            actual = run(mask, backwards)
    else:
        actual = run(mask, backwards)
    expected = by_hand(mask, backwards)
    for ours, theirs in zip(actual[:3], expected[:3], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(actual[3])[:, 0], expected[3])


def test_one_step_needs_no_loop():
    with scope.Export():
        actual = run(x=X[:, :1])
    np.testing.assert_allclose(actual[0], run()[0][:, :1], atol=1e-6)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("exporting", [False, True])
def test_unknown_batch_and_length(exporting):
    import tensorflow as tf

    @tf.function(
        input_signature=[tf.TensorSpec((None, None, D)), tf.TensorSpec((None, None), bool)]
    )
    def whole(x, mask):
        states = [ops.zeros((ops.shape(x)[0], D)), ops.zeros((ops.shape(x)[0], 1), dtype="int32")]
        outputs, states = recur(step, (x, x[:, :, :1]), states, mask)
        return outputs["total"], states

    with scope.Export() if exporting else scope.Scope():
        totals, states = whole(X, MASK)
    expected = by_hand(MASK, False)
    np.testing.assert_allclose(totals, expected[0], atol=1e-6)
    np.testing.assert_allclose(states[0], expected[2], atol=1e-6)


def test_the_training_loop_has_gradients():
    """Compare with differences, through both outputs and the last state."""

    def loss(x):
        totals, outer, state, _ = run(MASK, x=x)
        return ops.sum(ops.sin(totals)) + ops.sum(ops.square(outer)) + ops.sum(state)

    _, (actual,) = gradients.value_and_gradients(loss, [X])
    random = np.random.default_rng(1)
    for _ in range(5):
        way = random.normal(size=X.shape).astype("float32")
        change = (float(loss(X + 1e-2 * way)) - float(loss(X - 1e-2 * way))) / 2e-2
        assert abs(np.sum(np.asarray(actual) * way) - change) < 2e-2


@pytest.mark.tensorflow
def test_compiles_with_xla():
    import tensorflow as tf

    weight = tf.Variable(0.5)

    @tf.function(jit_compile=True)
    def value_and_gradient(x):
        with tf.GradientTape() as tape:
            states = [tf.zeros((B, D))]
            outputs, _ = recur(lambda x, s: (s[0] * weight, [s[0] * weight + x]), x, states)
            value = tf.reduce_sum(outputs)
        return value, tape.gradient(value, weight)

    value, gradient = value_and_gradient(X)
    terms = [(X[:, i].sum(), t - i) for t in range(T) for i in range(t)]
    np.testing.assert_allclose(value, sum(x * 0.5**n for x, n in terms), rtol=1e-4)
    np.testing.assert_allclose(gradient, sum(x * n * 0.5 ** (n - 1) for x, n in terms), rtol=1e-4)


def test_structures_are_preserved():
    outputs, states = recur(
        lambda x, s: ((x, [x]), s), ops.convert_to_tensor(X), [ops.zeros((B, 1))]
    )
    assert isinstance(outputs, tuple) and isinstance(outputs[1], list) and len(states) == 1
    assert keras.tree.map_structure(lambda x: tuple(x.shape), outputs) == (X.shape, [X.shape])
