"""Checks of LiteRT graphs: ops, axes, weights that are stored once, and what delegates refuse."""

import keras
import pytest

import keras_attention.export as export
from keras_attention.export.checks import graph_checks
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.graphs.flatbuffer import Flatbuffer, Operator, Stored
from keras_attention.export.quantization import FLOAT32, INT8


def flex_file(path):
    """Return a file with an op that needs TensorFlow, as Keras's own export writes it."""
    inputs = keras.Input((4, 4), name="x")
    model = keras.Model(
        inputs, keras.layers.Lambda(keras.ops.inv, name="solve")(inputs), name="net"
    )
    model.export(path, format="litert", verbose=False)
    return model


@pytest.mark.slow
def test_flex_ops_are_found_and_placed(tmp_path):
    model = flex_file(tmp_path / "m.tflite")
    graph = flatbuffer.read_graph(tmp_path / "m.tflite")
    assert graph.ops == {"FlexMatrixInverse": 1}
    with pytest.raises(export.ExportError, match="no built-in op for MatrixInverse") as caught:
        graph_checks.check_ops(graph, model)
    assert caught.value.op == "MatrixInverse"


def tensor(*shape, name="net_1/middle_1/op", dtype="float32"):
    return Stored(name, shape, dtype, 0, 0)


TWO = (tensor(1, 2),)


def graph(kind, *inputs, outputs=TWO, masked=False):
    return Flatbuffer((), (), (Operator(kind, False, inputs, outputs, masked),))


@pytest.fixture(scope="module")
def net():
    inputs = keras.Input((2,))
    return keras.Model(inputs, keras.layers.Dense(2, name="middle")(inputs), name="net")


def test_more_than_four_axes_are_refused(net):
    assert graph_checks.check_ops(graph("ADD", tensor(1, 2, 3, 4)), net) == []
    message = "RESHAPE in layer 'middle' .Dense. works on 5 axes"
    with pytest.raises(export.ExportError, match=message) as caught:
        graph_checks.check_ops(graph("RESHAPE", outputs=(tensor(1, 2, 3, 4, 5),)), net)
    assert caught.value.op == "RESHAPE"


def test_the_layer_may_follow_from_the_inputs(net):
    last = graph("CUSTOM", tensor(2), outputs=(tensor(2, name="StatefulPartitionedCall:0"),))
    assert (
        str(graph_checks.find_culprit(last.operators[0], net)) == "CUSTOM in layer 'middle' (Dense)"
    )


def test_variables_are_refused(net):
    with pytest.raises(export.ExportError, match="did not become constants.*READ_VARIABLE"):
        graph_checks.check_ops(graph("READ_VARIABLE"), net)


def test_64_bit_ops_give_a_warning(net):
    (warning,) = graph_checks.check_ops(graph("ARG_MAX", outputs=(tensor(2, dtype="int64"),)), net)
    assert warning == "1 ops compute in int64, the first ARG_MAX in layer 'middle' (Dense)"


@pytest.mark.parametrize(
    "result, words",
    [
        (graph("BROADCAST_TO"), "BROADCAST_TO: 1"),
        (graph("GATHER_ND"), "GATHER_ND: 1"),
        (graph("STRIDED_SLICE", masked=True), "STRIDED_SLICE that drops or adds axes: 1"),
        (graph("WHILE"), "WHILE: 1"),
    ],
)
def test_gpu_objections_name_each_unsupported_operator(result, words):
    (line,) = graph_checks.list_gpu_objections(result)
    assert line.startswith(words)


def test_gpu_objections_omit_supported_operators():
    assert graph_checks.list_gpu_objections(graph("ADD", tensor(1, 2, 3), tensor(3))) == ()
    assert graph_checks.list_gpu_objections(graph("STRIDED_SLICE", tensor(1, 2))) == ()


def product_of_int4(block_size):
    weights = flatbuffer.Stored("w", (4, 64), "int4", 128, 1, block_size)
    operator = flatbuffer.Operator("FULLY_CONNECTED", False, (weights,), (), False)
    return flatbuffer.Flatbuffer((), (weights,), (operator,), runtime="2.17.0")


def test_int4_in_blocks_needs_newer_runtimes_and_no_gpu():
    blocks, rows = product_of_int4(32), product_of_int4(0)
    assert graph_checks.find_minimum_runtime(blocks)["ai_edge_litert"] == "2.1.6"
    assert graph_checks.find_minimum_runtime(rows)["ai_edge_litert"] == "1.1.2"
    (line,) = graph_checks.list_gpu_objections(blocks)
    assert line == "FULLY_CONNECTED of int4 in blocks, which crashes: 1"
    assert graph_checks.list_gpu_objections(rows) == ()


@pytest.fixture(scope="module")
def classifier():
    """Wide enough that its weights are what counts."""
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(500, 128)(ids)
    x = keras.layers.Dense(256, "relu")(x)
    return keras.Model(ids, keras.layers.Dense(4, name="logits")(x))


def test_products_in_floats_are_counted(classifier):
    def product(dtype):
        stored = flatbuffer.Stored("functional/dense_1/MatMul", (1,), dtype, 0, 0)
        return flatbuffer.Operator("FULLY_CONNECTED", False, (), (stored,), False)

    result = flatbuffer.Flatbuffer((), (), (product("int8"), product("float32"), product("int8")))
    (warning,) = graph_checks.check_int8(result, classifier)
    assert warning.startswith("1 of 3 products compute in floats, the first FULLY_CONNECTED")


def constant(elements, size, buffer):
    return flatbuffer.Stored("w", (elements,), "float32", size, buffer)


def stored(*constants):
    return flatbuffer.Flatbuffer((), constants, ())


def test_weights_stored_twice_are_refused(classifier):
    once = [
        constant(w.shape.num_elements(), 4 * w.shape.num_elements(), i)
        for i, w in enumerate(w.value for w in classifier.weights)
    ]
    table = constant(999_983, 4 * 999_983, 99)  # computed in advance, as long as no weight
    assert graph_checks.check_weights(stored(*once, table), classifier, FLOAT32) == []
    twice = [constant(t.elements, t.constant, t.buffer + 50) for t in once]
    with pytest.raises(export.ExportError, match="some weights are stored more than once"):
        graph_checks.check_weights(stored(*once, *twice), classifier, FLOAT32)
    shared = [constant(t.elements, t.constant, t.buffer) for t in once]
    assert graph_checks.check_weights(stored(*once, *shared), classifier, FLOAT32) == []
    (warning,) = graph_checks.check_weights(stored(*once), classifier, INT8)
    assert "only partly quantized" in warning
