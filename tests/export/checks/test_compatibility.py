"""Where a file runs: what `compatible_with=` asks, checks and says."""

import dataclasses
import json

import keras
import pytest

import keras_attention.export as export
from keras_attention.export import ExportReport, Runtime, convert
from keras_attention.export.checks import compatibility, compiled_model, gpu_delegate
from keras_attention.export.graphs import flatbuffer
from tests.export.conftest import make_labeler
from tests.export.test_signatures import masked


@pytest.fixture(scope="module")
def fixed(labeler, tmp_path_factory):
    path = tmp_path_factory.mktemp("compatible") / "m.tflite"
    sizes = {"batch_size": 1, "sequence_length": 6}
    return path, export.to_litert(labeler, path, compatible_with=["web"], **sizes)


def told(report):
    return {runtime.name: (runtime.ran, runtime.note) for runtime in report.runtimes}


def test_report_states_which_runtimes_ran_the_file(fixed):
    path, report = fixed
    assert report.compatible_with == ("interpreter", "web")
    assert list(told(report)) == ["interpreter", "CompiledModel", "GPU delegate", "browser"]
    ran, note = told(report)["CompiledModel"]
    assert ran and note.startswith("ran on the CPU, max abs error ")
    assert not told(report)["GPU delegate"][0] and not told(report)["browser"][0]
    assert "fulfils the rules" in told(report)["browser"][1]
    assert {p.runtime for p in report.parity} == {
        "LiteRT", "LiteRT without XNNPACK", "CompiledModel"
    }  # fmt: skip
    assert f"  - CompiledModel: {note}" in str(report).splitlines()
    stored = json.loads(path.with_name("manifest.json").read_text("utf-8"))["files"][path.name]
    assert ExportReport.from_dict(stored).runtimes == report.runtimes


def test_reports_from_before_load(fixed):
    older = fixed[1].as_dict()
    del older["runtimes"], older["compatible_with"]
    assert ExportReport.from_dict(older) == dataclasses.replace(
        fixed[1], runtimes=(), compatible_with=()
    )


def test_free_shapes_are_for_the_interpreter_only(exported):
    _, _, report = exported
    assert report.compatible_with == ("interpreter",)
    interpreter, *remaining = report.runtimes
    assert interpreter.ran and not any(runtime.ran for runtime in remaining)
    assert "free shapes run only in the interpreter. CompiledModel crashes" in remaining[0].note
    assert "Export with batch_size= and sequence_length=" in remaining[0].note


@pytest.mark.parametrize("name", ["gpu", "web", ["web", "interpreter"]])
def test_free_shapes_are_refused_if_they_must_be_fixed(name, labeler, tmp_path):
    message = (
        r"needs fixed shapes, but token_ids \(1, \?\) is free. Pass sequence_length= \(and pad"
    )
    with pytest.raises(ValueError, match=message):
        export.to_litert(labeler, tmp_path / "m.tflite", batch_size=1, compatible_with=name)
    assert not list(tmp_path.iterdir())


def test_decoders_need_both_sizes(writer, tmp_path):
    with pytest.raises(ValueError, match=r"\(\?, \?\) is free. Pass batch_size= and sequence_len"):
        export.to_litert(writer, tmp_path / "m.tflite", generate=[], compatible_with="web")


def test_unknown_runtimes_are_refused(labeler, tmp_path):
    with pytest.raises(
        ValueError, match="compatible_with='phone' is unknown. Use one or several of 'interp"
    ):
        export.to_litert(labeler, tmp_path / "m.tflite", compatible_with=("web", "phone"))
    assert compatibility.parse_runtimes("gpu") == ("interpreter", "gpu")
    assert (
        compatibility.parse_runtimes(None) == compatibility.parse_runtimes([]) == ("interpreter",)
    )


def wide():
    """Return a model with an output dtype that browsers do not support."""
    x = keras.Input((3,), dtype="int32", name="x")
    cast = keras.layers.Lambda(lambda x: keras.ops.cast(x, "int64") * 2, name="widen")
    return keras.Model(x, cast(x))


def test_dtypes_that_browsers_lack_are_refused(tmp_path):
    """Check that the error names the output, its op and its layer."""
    path = tmp_path / "m.tflite"
    with pytest.raises(export.ExportError) as caught:
        export.to_litert(wide(), path, batch_size=1, compatible_with="web")
    assert "the output 'widen' of serving_default is int64, from" in str(caught.value)
    assert caught.value.op == "CAST" and "layer 'widen' (Lambda)" in caught.value.layer
    assert not list(tmp_path.iterdir())
    report = export.to_litert(wide(), path, batch_size=1)
    assert "would not run: the output 'widen'" in told(report)["browser"][1]


@pytest.mark.slow
def test_outputs_that_share_a_tensor(monkeypatch, tmp_path):
    """Without the separation `CompiledModel` leaves some outputs unwritten."""
    monkeypatch.setattr(convert, "separate_outputs", lambda content: content)
    monkeypatch.setattr(gpu_delegate, "_find_driver", lambda: (None, "No adapters found."))
    path = tmp_path / "m.tflite"
    for name, message in ("web", "shares its tensor"), ("gpu", "CompiledModel"):
        with pytest.raises(export.ExportError, match=message):
            export.to_litert(masked(), path, batch_size=2, compatible_with=name)
        assert not list(tmp_path.iterdir())
    report = export.to_litert(masked(), path, batch_size=2)
    assert told(report)["CompiledModel"][1].startswith("fails: ") and report.warnings
    assert "shares its tensor" in told(report)["browser"][1]
    assert flatbuffer.read_graph(path).shared["serving_default"]


@pytest.mark.slow
def test_a_crash_is_an_error(monkeypatch, tmp_path):
    def crash(jobs, *_):
        return [compiled_model.Execution(failure="the process ended with SIGSEGV.") for _ in jobs]

    monkeypatch.setattr(compiled_model, "run_jobs", crash)
    sizes = {"batch_size": 1, "sequence_length": 6, "compatible_with": "web"}
    with pytest.raises(
        export.ExportError, match="CompiledModel does not run serving_default .*SEGV"
    ):
        export.to_litert(make_labeler(), tmp_path / "m.tflite", **sizes)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_files_for_a_gpu_without_a_driver_give_a_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_delegate, "_find_driver", lambda: (None, "No adapters found."))
    sizes = {"batch_size": 1, "sequence_length": 6, "compatible_with": "gpu"}
    report = export.to_litert(make_labeler(), tmp_path / "m.tflite", **sizes)
    ran, note = told(report)["GPU delegate"]
    assert not ran and note == "not run: no Vulkan driver. No adapters found."
    assert "the file was not tested on a GPU" in report.warnings[0]


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.01, False)])
def test_gpu_delegate_outputs_must_match_the_model(factor, passes, fixed, monkeypatch, tmp_path):
    """Use the CPU as a delegate, once with its own results and once with wrong ones."""

    def fake(jobs):
        result = compiled_model.run_jobs(jobs)
        off = [
            tuple({k: v * factor for k, v in batch.items()} for batch in each.outputs)
            for each in result
        ]
        kinds = {"refused": ("MUL: No idea",), "on_gpu": 20, "on_cpu": 3}
        return [gpu_delegate.Delegation(o, **kinds) for o in off]

    monkeypatch.setattr(gpu_delegate, "_find_driver", lambda: ({}, None))
    monkeypatch.setattr(gpu_delegate, "run_jobs", fake)
    sizes = {"batch_size": 1, "sequence_length": 6, "compatible_with": "gpu"}
    if not passes:
        with pytest.raises(export.ExportError, match="between GPU delegate and .*'logits' of serv"):
            export.to_litert(make_labeler(), tmp_path / "m.tflite", **sizes)
        return
    report = export.to_litert(make_labeler(), tmp_path / "m.tflite", **sizes)
    assert told(report)["GPU delegate"][1].startswith("ran with 20 of 23 operators on the GPU")
    assert "MUL" in report.warnings[0] and "(No idea)" in report.warnings[0]


def test_verification_in_compiled_model(fixed, labeler, exported):
    path, _ = fixed
    batch = {"token_ids": [[5, 7, 11, 3, 2, 0]]}
    result = export.verify(labeler, path, [batch], runtime="compiled_model")
    assert result["logits"].runtime == "CompiledModel" and result["logits"].max_abs_error < 1e-4
    with pytest.raises(export.ExportError, match="its shapes are free, and free shapes run"):
        export.verify(labeler, exported[0] / "model.tflite", [batch], runtime="compiled_model")


def test_a_runtime_is_a_line():
    assert str(Runtime("browser", False, "not run")) == "browser: not run"
