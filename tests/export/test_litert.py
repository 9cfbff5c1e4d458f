import errno
import pathlib

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.core import scope
from keras_attention.export import convert, endpoint, memory
from keras_attention.export.graphs import flatbuffer
from keras_attention.export.litert import trace_once
from keras_attention.files.manifest import compute_sha256


def test_the_report_describes_the_file(exported, labeler):
    folder, _, report = exported
    (signature,) = report.signatures
    assert signature.inputs == (export.Tensor("token_ids", (None, None), "int32"),)
    assert signature.outputs[0].name == "logits" and signature.outputs[0].shape[-1] == 3
    assert report.max_abs_error <= 1e-4 and report.argmax_agreement == 1.0
    assert {parity.runtime for parity in report.parity} == {"LiteRT", "LiteRT without XNNPACK"}
    assert len(report.parity) == 6
    assert report.size == (folder / "model.tflite").stat().st_size
    assert report.sha256 == compute_sha256(folder / "model.tflite")
    assert report.ops["SOFTMAX"] == 1 and report.mask_constant == -1e9
    assert report.gpu == ("dynamic shapes: fix batch_size and sequence_length for a GPU",)
    assert set(report.versions) >= {"python", "keras", "tensorflow", "ai_edge_litert"}


@pytest.mark.slow
def test_given_sizes_are_fixed_in_every_tensor(labeler, tmp_path):
    path = tmp_path / "m.tflite"
    report = export.to_litert(labeler, path, batch_size=1, sequence_length=6)
    assert report.signatures[0].inputs[0].shape == (1, 6)
    assert all(None not in tensor.shape for tensor in flatbuffer.read_graph(path).tensors)
    assert not any("dynamic" in line for line in report.gpu)


@pytest.mark.slow
def test_sizes_can_be_fixed_one_by_one(labeler, tmp_path):
    report = export.to_litert(labeler, tmp_path / "m.tflite", sequence_length=6)
    assert report.signatures[0].inputs[0].shape == (None, 6)


def test_a_tensor_that_stays_dynamic_is_refused(labeler, tmp_path, monkeypatch):
    """Simulate a converter that leaves an axis free although all inputs are fixed."""
    free = flatbuffer.Operator(
        "WHERE", False, (), (stored("labeler_1/attention_1/x", (None, 2)),), 0
    )
    read = flatbuffer.read_graph
    monkeypatch.setattr(flatbuffer, "read_graph", lambda path: add_operator(read(path), free))
    with pytest.raises(export.ExportError, match="the output of WHERE in layer 'attention'"):
        export.to_litert(labeler, tmp_path / "m.tflite", batch_size=1, sequence_length=6)
    assert not list(tmp_path.iterdir())


def stored(name, shape):
    return flatbuffer.Stored(name, shape, "float32", 0, 0)


def add_operator(graph, operator):
    return flatbuffer.Flatbuffer(graph.signatures, graph.tensors, (*graph.operators, operator))


class Constant(keras.layers.Layer):
    """Adds what masks would add, so that the output shows which number that is."""

    def call(self, x):
        return 0.0 * x + scope.mask_constant()


@pytest.mark.slow
@pytest.mark.parametrize(
    "quantization, arguments, expected",
    [("float16", None, -1e4), (None, -7.0, -7.0), ("int8", None, -100.0)],
)
def test_the_mask_constant_reaches_the_graph(
    quantization, arguments, expected, tmp_path, monkeypatch, in_this_process
):
    seen = []
    save = endpoint.save_endpoints

    def spy(model, endpoints, folder, constant):
        seen.append(constant)
        return save(model, endpoints, folder, constant)

    monkeypatch.setattr(endpoint, "save_endpoints", spy)
    inputs = keras.Input((2,), name="x")
    outputs = keras.layers.Dense(2, name="y")(inputs)
    report = export.to_litert(
        keras.Model(inputs, outputs),
        tmp_path / "m.tflite",
        quantization=quantization,
        mask_constant=arguments,
        calibration=np.ones((3, 2)) if quantization == "int8" else None,
    )
    assert seen == [expected] and report.mask_constant == expected


@pytest.mark.slow
def test_layers_see_the_mask_constant_while_they_are_traced(tmp_path):
    inputs = keras.Input((2,), name="x")
    model = keras.Model(inputs, Constant()(keras.layers.Dense(2)(inputs)))
    with pytest.raises(export.ExportError, match="is off by 1.00e"):
        export.to_litert(model, tmp_path / "m.tflite", mask_constant=-7.0)
    report = export.to_litert(model, tmp_path / "m.tflite")
    assert report.max_abs_error == 0
    assert scope.mask_constant() == -1e9


@pytest.mark.slow
def test_weights_that_the_converter_drops_are_detected(labeler, tmp_path, monkeypatch):
    """Convert a module without the raw variables, which gives read-variable ops, or NaN."""
    import tensorflow as tf

    def from_functions(folder, endpoints, model, **_):
        function = endpoint._trace(endpoints[0])
        return tf.lite.TFLiteConverter.from_concrete_functions([function], model).convert()

    monkeypatch.setattr(convert, "convert_saved_model", from_functions)
    with pytest.raises(export.ExportError, match="weights did not become constants. .*(VAR|READ)_"):
        export.to_litert(labeler, tmp_path / "m.tflite")


@pytest.mark.slow
def test_a_file_that_another_runtime_computes_differently_is_refused(
    labeler, exported, tmp_path, monkeypatch
):
    """Simulate an error in only one of XNNPACK and the reference kernels."""
    from keras_attention.export.checks import runner

    run = runner.LiteRT.run

    def wrong_without_xnnpack(self, arrays):
        outputs = run(self, arrays)
        return outputs if self.xnnpack else {name: v + 1 for name, v in outputs.items()}

    monkeypatch.setattr(runner.LiteRT, "run", wrong_without_xnnpack)
    with pytest.raises(export.ExportError, match="from LiteRT without XNNPACK .* off by 1.00e"):
        export.to_litert(labeler, tmp_path / "m.tflite")


def test_failed_export_keeps_only_the_old_litert_file(labeler, tmp_path, monkeypatch):
    path = tmp_path / "m.tflite"
    path.write_bytes(b"what was there before")
    monkeypatch.setattr(
        convert, "convert_saved_model", lambda *args, **kwargs: b"\0\0\0\0TFL3 broken"
    )
    with pytest.raises((export.ExportError, ValueError)):
        export.to_litert(labeler, path)
    assert path.read_bytes() == b"what was there before"
    assert [p.name for p in tmp_path.iterdir()] == ["m.tflite"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"quantization": "int4"},
            "quantization='int4' is unknown. Use one of None, 'float16', 'int8_weights'",
        ),
        ({"quantization": "int8"}, "Pass calibration=, an iterable of batches"),
        ({"calibration": [1]}, "calibration= is only used by int8, but .* None"),
        ({"metadata": {"files": []}}, 'metadata= has a key "files"'),
        ({"metadata": {"labels": {1}}}, "metadata= cannot be written as JSON"),
        ({"quantization": "int8", "calibration": []}, "calibration= is empty"),
        ({"quantization": "int8", "generate": "greedy"}, 'Use "int8_weights" for models that gen'),
        ({"generate": "greedy"}, "labeler cannot generate|attention is Keras's MultiHeadAttention"),
    ],
)
def test_wrong_arguments_are_refused_early(labeler, tmp_path, arguments, message, monkeypatch):
    monkeypatch.setattr(endpoint, "save_endpoints", None)
    with pytest.raises(ValueError, match=message):
        export.to_litert(labeler, tmp_path / "m.tflite", **arguments)
    assert not list(tmp_path.iterdir())


def test_the_path_must_be_a_tflite_file(labeler, tmp_path):
    with pytest.raises(ValueError, match="not a file name that ends in .tflite"):
        export.to_litert(labeler, tmp_path / "model.bin")


def test_too_large_a_model_is_refused_before_the_export(labeler, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "find_free_memory", lambda: 1000)
    with pytest.raises(export.ExportError, match="takes about .* of memory, and 1.0 kB are free"):
        export.to_litert(labeler, tmp_path / "m.tflite")


def test_nothing_but_a_functional_model_can_be_exported(tmp_path):
    with pytest.raises(ValueError, match="Expected a functional keras.Model"):
        export.to_litert(keras.layers.Dense(2), tmp_path / "m.tflite")


@pytest.mark.slow
@pytest.mark.parametrize("full", ["m.tflite", "manifest"])
def test_a_full_disk_keeps_the_old_file(labeler, tmp_path, monkeypatch, full):
    path = tmp_path / "m.tflite"
    path.write_bytes(b"old")
    (tmp_path / "manifest.json").write_text('{"labels": ["A"]}')

    def write(self, content):
        if full in self.name:
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        with open(self, "wb") as file:
            file.write(content)

    monkeypatch.setattr(pathlib.Path, "write_bytes", write)
    with pytest.raises(OSError, match="No space left on device"):
        export.to_litert(labeler, path, metadata={"labels": ["B"]})
    assert path.read_bytes() == b"old"
    assert (tmp_path / "manifest.json").read_text() == '{"labels": ["A"]}'
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.tflite", "manifest.json"]


SMALL = r'quantization="int8_weights" \(1.1 GB\) or quantization="int4_weights" \(1.1 GB\)'


@pytest.mark.parametrize(
    "quantization, ways",
    [
        (None, rf"4.4 GB. Use {SMALL} or to_saved_model"),
        ("int8", rf"4.4 GB. Use {SMALL} or to_saved_model"),
        ("float16", rf"2.2 GB. Use {SMALL} or to_saved_model"),
        ("int8_weights", r"2.6 GB. Use to_saved_model"),
    ],
)
def test_a_model_above_2_gb_is_refused_before_the_export(
    labeler, tmp_path, monkeypatch, quantization, ways
):

    sizes = {None: 4.4e9, "int8": 4.4e9, "float16": 4.4e9, "int8_weights": 1e10}
    monkeypatch.setattr(memory, "count_weight_bytes", lambda model: sizes[quantization])
    monkeypatch.setattr(endpoint, "save_endpoints", None)
    inputs = {"calibration": [np.ones((1, 2))]} if quantization == "int8" else {}
    with pytest.raises(export.ExportError, match=f"2 GB, and the weights of labeler take {ways}"):
        export.to_litert(labeler, tmp_path / "m.tflite", quantization=quantization, **inputs)
    assert not list(tmp_path.iterdir())


def test_links_are_refused_as_targets(labeler, tmp_path):
    (tmp_path / "m.tflite").symlink_to("elsewhere.tflite")
    with pytest.raises(ValueError, match="is a link to elsewhere.tflite. Use the path of"):
        export.to_litert(labeler, tmp_path / "m.tflite")
    (tmp_path / "m").symlink_to("elsewhere")
    with pytest.raises(ValueError, match="is a link to elsewhere. Use the path of"):
        export.to_saved_model(labeler, tmp_path / "m")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.tflite"]


@pytest.mark.slow
def test_two_files_of_one_trace_equal_two_exports(labeler, tmp_path):
    with trace_once(labeler) as write:
        traced = [write(tmp_path / "a.tflite"), write(tmp_path / "b.tflite", "int8_weights")]
    for name, report, quantization in zip("ab", traced, (None, "int8_weights"), strict=True):
        (tmp_path / name).mkdir()
        path = tmp_path / name / f"{name}.tflite"
        alone = export.to_litert(labeler, path, quantization=quantization)
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
        assert (report.signatures, report.quantization) == (alone.signatures, alone.quantization)
