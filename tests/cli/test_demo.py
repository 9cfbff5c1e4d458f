"""`demo`: its files, and its accuracy."""

import json

import pytest

from keras_attention.cli import sources
from tests.grids import ALL

FILES = {
    "README.md",
    "attention.png",
    "attention_heads.png",
    "example.png",
    "confusion.png",
    "labels.txt",
    "manifest.json",
    "model.int8.tflite",
    "model.keras",
    "model.tflite",
    "saved_model",
    "scores.json",
}


def read_scores(folder):
    return json.loads((folder / "scores.json").read_text("utf-8"))


@pytest.mark.slow
def test_demo_writes_all_files_and_can_run_again(run, tmp_path):
    folder = tmp_path / "digits-vit"
    code, out, err = run("demo", "--output", folder, "--epochs", 2)
    assert (code, err) == (0, "")
    assert {path.name for path in folder.iterdir()} == FILES
    assert read_scores(folder)["test"]["keras"]["accuracy"] > 0.7
    assert "Files" in out and "seconds in all" in out and "Side by side" not in out
    code, _, _ = run("demo", "--output", folder, "--epochs", 1)
    assert code == 0 and len(read_scores(folder)["history"]) == 1


@pytest.mark.sweep
def test_demo_of_digits_reaches_its_accuracy(run, tmp_path):
    assert run("demo", "--output", tmp_path / "digits-vit")[0] == 0
    scores = read_scores(tmp_path / "digits-vit")["test"]
    assert scores["keras"]["accuracy"] >= 0.97
    assert abs(scores["litert-int8"]["accuracy"] - scores["keras"]["accuracy"]) <= 0.01


# After 200 steps a good recipe converts 59 of 100 dates correctly, after 100 at most 8.
# `make test-all` trains by the recipe, up to the published accuracy.
SHARE = {"train": 25_600, "dev": 200, "test": 200}
LEAST_EXACT = 0.99 if ALL else 0.4


@pytest.mark.sweep
def test_demo_of_dates_reaches_its_accuracy(run, tmp_path, monkeypatch):
    pytest.importorskip("babel")
    options = () if ALL else ("--epochs", 1)
    for part, size in ({} if ALL else SHARE).items():
        monkeypatch.setitem(sources.SIZES, part, size)
    code, out, err = run("demo", "dates", "--output", tmp_path, *options)
    assert (code, err) == (0, "") and "Side by side, on the test set" in out
    for name in ("recurrent", "transformer"):
        scores = json.loads((tmp_path / name / "scores.json").read_text("utf-8"))["test"]
        assert scores["keras"]["exact_match"] >= LEAST_EXACT
        assert scores["litert"] == scores["keras"]
        assert (tmp_path / name / "attention.png").read_bytes().startswith(b"\x89PNG")
