import dataclasses

import pytest

from keras_attention import export
from keras_attention.export.checks.report import ExportReport


def test_a_report_survives_being_saved(exported, tmp_path):
    for report in exported[1:]:
        report.save(tmp_path / "report.json")
        assert ExportReport.load(tmp_path / "report.json") == report


def test_a_report_prints_all_measurements(exported):
    _, _, report = exported
    report = dataclasses.replace(report, path="m.tflite", quantization="int8", warnings=("Mind!",))
    lines = str(report).splitlines()
    assert lines[0].startswith("m.tflite: litert, 1")
    assert lines[0].endswith("as float32), int8, mask constant -1e+09")
    assert "  input   token_ids  int32    (?, ?)" in lines
    assert "  output  logits     float32  (?, ?, 3)" in lines
    assert any(line.startswith(f"ops ({sum(report.ops.values())})") for line in lines)
    assert any(line.split()[:3] == ["logits", "LiteRT", "3"] for line in lines)
    assert "  - Mind!" in lines
    assert all(len(line) <= 100 for line in lines[1:])


def test_the_report_names_the_oldest_runtimes(exported, written, tmp_path):
    """Use a scalar input, such as `index`, which crashes the oldest tested ai-edge-litert."""
    saved_model, plain = exported[1:]
    assert saved_model.minimum_runtime is None
    assert plain.minimum_runtime["ai_edge_litert"] == "1.0.1"
    assert [int(x) for x in plain.minimum_runtime["tensorflow_lite"].split(".")] < [2, 14]
    assert written[1].minimum_runtime["ai_edge_litert"] == "1.1.0"
    assert "runs from\n  - tensorflow_lite 2." in str(plain)


def test_rows_of_float16_are_looked_up_by_new_runtimes(labeler, tmp_path):
    """Measured by benchmarks/runtimes.py.

    Files of free shapes convert the table to floats first.
    """
    fixed = {"batch_size": 1, "sequence_length": 8}
    for sizes, oldest in (({}, "1.0.1"), (fixed, "1.3.0")):
        path = tmp_path / f"{oldest}.tflite"
        report = export.to_litert(labeler, path, quantization="float16", **sizes)
        assert report.minimum_runtime["ai_edge_litert"] == oldest


def test_the_worst_counts(exported):
    _, _, report = exported
    worse = dataclasses.replace(report.parity[0], max_abs_error=0.5, argmax_agreement=0.25)
    report = dataclasses.replace(report, parity=(worse, *report.parity[1:]))
    assert report.max_abs_error == 0.5 and report.argmax_agreement == 0.25
    assert "5.0e-01        0.2500" in str(report)


def test_reports_of_files_that_generate(written, tmp_path):
    _, report = written
    report.save(tmp_path / "report.json")
    assert ExportReport.load(tmp_path / "report.json") == report
    lines = str(report).splitlines()
    assert any(line.split()[:4] == ["step:", "cache", "LiteRT", "6"] for line in lines)
    assert any(line.startswith("drift on 10 tokens of the examples") for line in lines)
    assert report.generation["max_new_tokens"] == 5


@pytest.mark.parametrize("content", ["{}", "[]", "null", "7", '{"signatures": 3}', "{", "[" * 9999])
def test_load_refuses_files_without_an_export_report(tmp_path, content):
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ValueError, match="report.json is (not a report|not valid JSON)"):
        ExportReport.load(tmp_path / "report.json")
