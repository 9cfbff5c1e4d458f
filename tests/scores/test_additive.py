import math
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import scores
from keras_attention.core import scope
from keras_attention.scores import additive_tensorflow
from keras_attention.scores.additive import UNITS_AT_ONCE, sum_over_units
from tests.grids import quick
from tests.scores import definition
from tests.scores.definition import B, N, S, T


def rule_of(score):
    """Return the rule of Bahdanau et al. (2015, appendix A.1.2)."""
    query_kernel, key_kernel, vector = map(definition.array, score.weights)
    return lambda q, k, n: vector[n] @ np.tanh(q @ query_kernel[n] + k @ key_kernel[n])


@pytest.mark.parametrize("units, key_width", [(None, 11), (5, 13), (8, 11), (19, 13)])
def test_additive_equals_the_definition(units, key_width):
    definition.assert_is(lambda: scores.Additive(units), rule_of, key_width)


def test_units_default_to_the_width_of_the_query():
    score = scores.Additive()
    score(*definition.tensors(key_width=13))
    assert [w.shape for w in score.weights] == [(3, 11, 11), (3, 13, 11), (3, 11)]
    assert [w.name for w in score.weights] == ["query_kernel", "key_kernel", "vector"]


def test_additive_errors():
    with pytest.raises(ValueError, match=r"Additive\(units=2.5\)"):
        scores.Additive(units=2.5)


ACTIVATIONS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


def concat_rule_of(score):
    """Return the rule of Luong et al. (2015, section 3.1): a matrix times [query, key]."""
    kernel, vector = definition.array(score.kernel), definition.array(score.vector)
    activation = ACTIVATIONS[score.activation.__name__]
    return lambda q, k, n: vector[n] @ activation(np.concatenate([q, k]) @ kernel[n])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("units, key_width", [(None, 11), (19, 13)])
def test_concat_equals_the_definition(activation, units, key_width):
    definition.assert_is(
        lambda: scores.Concat(units=units, activation=activation), concat_rule_of, key_width
    )


def test_concat_units_default_to_the_width_of_the_query():
    score = scores.Concat()
    score(*definition.tensors(key_width=13))
    assert score.kernel.shape == (3, 11 + 13, 11) and score.vector.shape == (3, 11)


@keras.saving.register_keras_serializable(package="tests")
def cube(x):
    return x * x * x


def test_a_users_activation_is_saved():
    score = scores.Concat(activation=cube)
    again = scores.get(keras.saving.serialize_keras_object(score))
    assert again.activation is cube


def test_concat_errors():
    with pytest.raises(ValueError, match=r"Concat\(units=0\)"):
        scores.Concat(units=0)
    with pytest.raises(ValueError, match="tahn"):
        scores.Concat(activation="tahn")


UNITS = 4 * UNITS_AT_ONCE


def operands(units=UNITS):
    random = np.random.default_rng(0)
    shapes = (B, N, units, T), (B, N, units, S), (N, units)
    return [tf.constant(random.normal(size=shape), "float32") for shape in shapes]


def plain(query, key, vector, activation):
    """Sum all pairs and units at once."""
    together = activation(ops.expand_dims(query, 4) + ops.expand_dims(key, 3))
    return ops.einsum("nu,bnuts->bnts", vector, together)


def with_gradients(function, activation, arrays):
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        scores = function(*arrays, activation)
        loss = tf.reduce_sum(scores * tf.cos(tf.range(float(S))))
    return [scores, *tape.gradient(loss, arrays)]


@pytest.mark.parametrize("compiled", quick(["eager", "graph", "xla"], "eager"))
@pytest.mark.parametrize("units", [1, UNITS_AT_ONCE, UNITS_AT_ONCE + 3, UNITS])
def test_sums_over_units_have_exact_values_and_gradients(units, compiled):
    activation, arrays = keras.activations.tanh, operands(units)

    def run(*arrays):
        return with_gradients(sum_over_units, activation, list(arrays))

    if compiled != "eager":
        run = tf.function(run, jit_compile=compiled == "xla", autograph=False)
    expected = with_gradients(plain, activation, arrays)
    for ours, theirs in zip(run(*arrays), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_every_activation_has_its_gradient():
    expected = with_gradients(plain, keras.activations.softplus, operands())
    results = with_gradients(sum_over_units, keras.activations.softplus, operands())
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def graphs(function, arrays):
    """Return the graphs of `function` and of every loop and function in it."""
    results, waiting = [], [tf.function(function, autograph=False).get_concrete_function(*arrays)]
    while waiting:
        graph = waiting.pop().graph
        results.append(graph)
        waiting += [f for f in graph._functions.values() if hasattr(f, "graph")]
    return results


def sizes(graph):
    return [
        math.prod(tensor.shape)
        for operation in graph.get_operations()
        for tensor in operation.outputs
        if tensor.shape.is_fully_defined()
    ]


def test_no_tensor_holds_more_than_a_few_units():
    """Check both passes. The forward loop must store no pairs for the backward one."""

    def run(*arrays):
        return with_gradients(sum_over_units, keras.activations.softplus, list(arrays))

    all_graphs = graphs(run, operands())
    loops = [g for g in all_graphs if "while" in g.name and "body" in g.name]
    assert len(loops) >= 2  # one forward and one backward
    assert max(size for g in all_graphs for size in sizes(g)) <= B * N * T * S * UNITS_AT_ONCE
    stored = [
        math.prod(op.inputs[1].shape)
        for g in loops
        for op in g.get_operations()
        if op.type == "TensorListPushBack"
    ]
    assert stored and max(stored) <= B * N * UNITS_AT_ONCE * max(T, S)


@pytest.fixture
def compiled(monkeypatch):
    """Let the small tensors of tests count as worth compiling."""
    monkeypatch.setattr(additive_tensorflow, "LEAST_TANHS", 0)


@pytest.mark.slow
def test_tanh_is_compiled_and_holds_a_slice_of_queries(compiled):
    rows, length = additive_tensorflow.ROWS, 5 * additive_tensorflow.ROWS + 1
    random = np.random.default_rng(0)
    shapes = (B, N, UNITS, length), (B, N, UNITS, S), (N, UNITS)
    arrays = [tf.constant(random.normal(size=shape), "float32") for shape in shapes]

    def run(*arrays):
        return with_gradients(sum_over_units, keras.activations.tanh, list(arrays))

    all_graphs = graphs(run, arrays)
    calls = [op for op in all_graphs[0].get_operations() if "_XlaMustCompile" in op.node_def.attr]
    assert len(calls) == 2 * min(os.cpu_count(), length // rows)  # forward and backward
    assert max(size for g in all_graphs for size in sizes(g)) <= B * N * UNITS * rows * S
    expected = with_gradients(plain, keras.activations.tanh, arrays)
    for ours, theirs in zip(tf.function(run)(*arrays), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=5e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 15.0, 25.0, 200.0, -3e4])
def test_tanh_of_large_numbers_that_cancel(compiled, offset):
    """Use a and b with a small sum, though e^2a overflows from a = 44."""
    query, key, vector = operands()

    def run(*arrays):
        return with_gradients(sum_over_units, keras.activations.tanh, list(arrays))

    arrays = [query + offset, key - offset, vector]
    expected = with_gradients(plain, keras.activations.tanh, arrays)
    for ours, theirs in zip(tf.function(run)(*arrays), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=5e-5, rtol=1e-5)


def test_an_exported_graph_has_no_loop():
    def run(*arrays):
        return sum_over_units(*arrays, keras.activations.softplus)

    def types(graph):
        return {operation.type for operation in graph.get_operations()}

    arrays = operands()
    with scope.Export():
        (exported,) = graphs(run, arrays)
        values = run(*arrays)
    assert not types(exported) & {"While", "StatelessWhile", "IdentityN"}
    assert any("While" in kind for graph in graphs(run, arrays) for kind in types(graph))
    np.testing.assert_allclose(values, run(*arrays), atol=1e-5)
