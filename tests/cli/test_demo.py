"""`demo`, as it is promised: the bar of its accuracy, and all that it leaves."""

import json

import pytest

FILES = {
    "README.md",
    "attention.png",
    "attention_heads.png",
    "labels.txt",
    "manifest.json",
    "model.int8.tflite",
    "model.keras",
    "model.tflite",
    "saved_model",
    "scores.json",
}


@pytest.mark.slow
def test_the_demo_reaches_its_bar_and_can_be_run_again(run, tmp_path):
    folder = tmp_path / "digits-vit"
    code, out, err = run("demo", "--output", folder)
    assert (code, err) == (0, "")
    assert {path.name for path in folder.iterdir()} == FILES
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["test"]
    assert scores["keras"]["accuracy"] >= 0.97
    assert abs(scores["litert-int8"]["accuracy"] - scores["keras"]["accuracy"]) <= 0.01
    assert "What was made" in out and "seconds in all" in out
    code, _, _ = run("demo", "--output", folder, "--epochs", 1)
    assert code == 0
    assert len(json.loads((folder / "scores.json").read_text("utf-8"))["history"]) == 1
