import dataclasses

from keras_attention.export import text
from keras_attention.export.report import ExportReport, Signature, Tensor


def test_a_report_survives_being_saved(exported, tmp_path):
    for report in exported[1:]:
        report.save(tmp_path / "report.json")
        assert ExportReport.load(tmp_path / "report.json") == report


def test_a_report_prints_what_it_knows(exported):
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


def test_the_worst_counts(exported):
    _, _, report = exported
    worse = dataclasses.replace(report.parity[0], max_abs_error=0.5, argmax_agreement=0.25)
    report = dataclasses.replace(report, parity=(worse, *report.parity[1:]))
    assert report.max_abs_error == 0.5 and report.argmax_agreement == 0.25
    assert "5.0e-01        0.2500" in str(report)


def test_sizes_are_written_as_people_read_them():
    assert [text.size(n) for n in (999, 1_234, 5_600_000, 4_370_000_000)] == [
        "999 bytes", "1.2 kB", "5.6 MB", "4.4 GB"
    ]  # fmt: skip
    assert [text.shape(axes) for axes in ((), (None,), (1, None))] == ["()", "(?,)", "(1, ?)"]


def test_tensors_of_like_layers_are_one_line():
    cache = [Tensor(f"block_{k}_key", (None, 2), "float32") for k in range(12)]
    several = [
        Tensor("ids", (1,), "int32"),
        *cache,
        Tensor("b_1", (), "bool"),
        Tensor("b_2", (), "bool"),
    ]
    lines = text.signatures([Signature("step", tuple(several), ())]).splitlines()
    assert lines[2:] == [
        "  input  ids               int32    (1,)",
        "  input  block_*_key (12)  float32  (?, 2)",
        "  input  b_1               bool     ()",
        "  input  b_2               bool     ()",
    ]


def test_reports_of_files_that_generate(written, tmp_path):
    _, report = written
    report.save(tmp_path / "report.json")
    assert ExportReport.load(tmp_path / "report.json") == report
    lines = str(report).splitlines()
    assert any(line.split()[:4] == ["step:", "cache", "LiteRT", "6"] for line in lines)
    assert any(line.startswith("drift on 10 tokens of the examples") for line in lines)
    assert report.generation["max_new_tokens"] == 5
