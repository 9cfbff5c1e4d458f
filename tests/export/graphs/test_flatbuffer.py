"""Reading LiteRT files."""

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export.graphs import flatbuffer


def test_the_graph_is_what_the_runtime_sees(exported):
    folder, *_ = exported
    graph = flatbuffer.read_graph(folder / "model.tflite")
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
    with pytest.raises(ValueError, match="m.tflite is damaged. Its graph cannot be read"):
        flatbuffer.read_graph(path)
    path.write_bytes(content[:12])
    with pytest.raises(ValueError, match="is damaged"):
        flatbuffer.read_graph(path)


def test_slices_that_drop_an_axis_are_marked(tmp_path):
    inputs = keras.Input((3, 2), name="x")
    model = keras.Model(inputs, {"first": inputs[:, 0], "rest": inputs[:, 1:]})
    export.to_litert(model, tmp_path / "m.tflite")
    operators = flatbuffer.read_graph(tmp_path / "m.tflite").operators
    masked = {op.outputs[0].shape: op.masked for op in operators if "SLICE" in op.kind}
    assert masked == {(None, 2): True, (None, 2, 2): False}
    run = export.load(tmp_path / "m.tflite")
    x = np.arange(6.0).reshape(1, 3, 2)
    np.testing.assert_array_equal(run({"x": x})["first"], [[0, 1]])


def test_a_graph_is_read_once_and_again_when_the_file_changes(exported, tmp_path):
    folder, *_ = exported
    content, path = (folder / "model.tflite").read_bytes(), tmp_path / "m.tflite"
    path.write_bytes(content)
    graph = flatbuffer.read_graph(path)
    assert flatbuffer.read_graph(folder / "model.tflite") is graph
    path.write_bytes(content.replace(b"token_ids", b"other_ids"))  # as long, and as new
    names = {tensor.name for tensor in flatbuffer.read_graph(path).signatures[0].inputs}
    assert names == {"other_ids"}
    assert len(flatbuffer._LAST_READ) <= flatbuffer._MOST_READ
