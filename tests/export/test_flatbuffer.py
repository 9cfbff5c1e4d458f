"""Reading LiteRT files, and what the readings are judged by."""

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import flatbuffer, gpu_profile, inventory
from keras_attention.export.flatbuffer import Flatbuffer, Operator, Stored


def test_the_graph_is_what_the_runtime_sees(exported):
    folder, *_ = exported
    graph = flatbuffer.read(folder / "model.tflite")
    details = export.load(folder / "model.tflite").interpreter._get_ops_details()
    assert [op.kind for op in graph.operators] == [
        entry["op_name"] for entry in details if entry["op_name"] != "DELEGATE"
    ]
    assert sum(graph.ops.values()) == len(graph.operators)
    assert {t.name for t in graph.signatures[0].inputs} == {"token_ids"}
    embedding = next(t for t in graph.constants if t.shape == (20, 8))
    assert embedding.constant == 20 * 8 * 4 and embedding.dtype == "float32"


def test_a_damaged_file_is_refused(exported, tmp_path):
    folder, *_ = exported
    content = bytearray((folder / "model.tflite").read_bytes())
    content[8:64] = b"\xff" * 56
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="m.tflite is damaged: its graph cannot be read"):
        flatbuffer.read(path)
    path.write_bytes(content[:12])
    with pytest.raises(ValueError, match="is damaged"):
        flatbuffer.read(path)


def flex_file(path):
    """A file with an op that needs TensorFlow, as Keras's own export makes it without a word."""
    inputs = keras.Input((4, 4), name="x")
    model = keras.Model(
        inputs, keras.layers.Lambda(keras.ops.inv, name="solve")(inputs), name="net"
    )
    model.export(path, format="litert", verbose=False)
    return model


def test_flex_ops_are_found_and_placed(tmp_path):
    model = flex_file(tmp_path / "m.tflite")
    graph = flatbuffer.read(tmp_path / "m.tflite")
    assert graph.ops == {"FlexMatrixInverse": 1}
    with pytest.raises(export.ExportError, match="no built-in op for MatrixInverse") as caught:
        inventory.check(graph, model)
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
    assert inventory.check(graph("ADD", tensor(1, 2, 3, 4)), net) == []
    message = "RESHAPE in layer 'middle' .Dense. works on 5 axes"
    with pytest.raises(export.ExportError, match=message) as caught:
        inventory.check(graph("RESHAPE", outputs=(tensor(1, 2, 3, 4, 5),)), net)
    assert caught.value.op == "RESHAPE"


def test_the_place_may_be_told_by_the_inputs(net):
    last = graph("CUSTOM", tensor(2), outputs=(tensor(2, name="StatefulPartitionedCall:0"),))
    assert str(inventory.culprit(last.operators[0], net)) == "CUSTOM in layer 'middle' (Dense)"


def test_variables_are_refused(net):
    with pytest.raises(export.ExportError, match="did not become constants.*READ_VARIABLE"):
        inventory.check(graph("READ_VARIABLE"), net)


def test_64_bits_are_warned_of(net):
    (warning,) = inventory.check(graph("ARG_MAX", outputs=(tensor(2, dtype="int64"),)), net)
    assert warning == "1 ops compute in int64, the first ARG_MAX in layer 'middle' (Dense)"


@pytest.mark.parametrize(
    "found, words",
    [
        (graph("BROADCAST_TO"), "BROADCAST_TO: 1"),
        (graph("GATHER_ND"), "GATHER_ND: 1"),
        (graph("ADD", tensor(1, 2, 3), tensor(3)), "ADD or MUL of tensors with different"),
        (graph("STRIDED_SLICE", masked=True), "STRIDED_SLICE that drops or adds axes: 1"),
        (graph("CAST", tensor(2, dtype="int64")), "CAST to or from int64: 1"),
    ],
)
def test_what_a_gpu_delegate_refuses_is_told(found, words):
    (line,) = gpu_profile.lint(found)
    assert line.startswith(words)


def test_what_a_gpu_delegate_takes_is_not_told():
    assert gpu_profile.lint(graph("ADD", tensor(1, 2, 3), tensor())) == ()
    assert gpu_profile.lint(graph("STRIDED_SLICE", tensor(1, 2))) == ()


def test_slices_that_drop_an_axis_are_marked(tmp_path):
    inputs = keras.Input((3, 2), name="x")
    model = keras.Model(inputs, {"first": inputs[:, 0], "rest": inputs[:, 1:]})
    export.to_litert(model, tmp_path / "m.tflite", batch_size=1)
    operators = flatbuffer.read(tmp_path / "m.tflite").operators
    masked = {op.outputs[0].shape: op.masked for op in operators if "SLICE" in op.kind}
    assert masked == {(1, 2): True, (1, 2, 2): False}
    run = export.load(tmp_path / "m.tflite")
    x = np.arange(6.0).reshape(1, 3, 2)
    np.testing.assert_array_equal(run({"x": x})["first"], [[0, 1]])
