import dataclasses
import json

import pytest

from keras_attention.export import manifest
from keras_attention.export.report import ExportReport


def test_exports_of_a_model_share_one_manifest(exported):
    folder, saved_model, litert = exported
    content = json.loads((folder / "manifest.json").read_text())
    assert content["labels"] == ["A", "B", "C"] and content["padding_id"] == 0
    assert content["vocabulary"] == "words.txt"
    assert set(content["files"]) == {"saved_model", "model.tflite"}
    for report in (saved_model, litert):
        name = report.path.rpartition("/")[2]
        entry = ExportReport.from_dict(content["files"][name])
        assert entry == dataclasses.replace(report, path=name)
    assert str(folder) not in (folder / "manifest.json").read_text()


def test_entries_of_files_that_are_gone_are_dropped(exported, tmp_path):
    _, _, report = exported
    for name in ("a.tflite", "b.tflite"):
        (tmp_path / name).touch()
        manifest.write(dataclasses.replace(report, path=str(tmp_path / name)))
    (tmp_path / "a.tflite").unlink()
    manifest.write(dataclasses.replace(report, path=str(tmp_path / "b.tflite")), {"labels": "ab"})
    assert list(manifest.read(tmp_path)["files"]) == ["b.tflite"]
    assert manifest.read(tmp_path)["labels"] == "ab"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.tflite", "manifest.json"]


def test_a_broken_manifest_is_told_before_the_work(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json is not valid JSON: .*Mend or remove it"):
        manifest.check(tmp_path, None)
