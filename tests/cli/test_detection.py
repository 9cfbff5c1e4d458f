"""The commands on pictures with boxes: trained on COCO's JSON, applied to picture files."""

import json

import keras
import pytest

from tests.data.readers.detection_files import draw, write_coco

KINDS = ("keras", "saved_model", "litert", "litert-int8")


@pytest.mark.slow
@pytest.mark.tensorflow
def test_train_reads_a_folder_and_predict_finds_objects(tmp_path, run):
    train = write_coco(tmp_path / "train", draw(48, 0))
    test = write_coco(tmp_path / "test", draw(6, 1))
    words = ["object_detector", "--train", train, "--test", tmp_path / "test", "--image-size", 32]
    sizes = ["--num-layers", 1, "--num-heads", 2, "--hidden-dim", 16]
    steps = ["--epochs", 2, "--batch-size", 8]
    status, _, error = run("train", *words, *sizes, *steps, "--output", tmp_path / "run")
    assert status == 0, error
    scores = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
    assert list(scores["test"]["keras"]) == ["map", "map50", "map75"]
    assert scores["test"]["litert"] == scores["test"]["keras"]
    assert (tmp_path / "run" / "attention.png").exists()
    pictures = [str(tmp_path / "test" / f"{k}.png") for k in range(2)]
    answers = []
    for kind in KINDS:
        options = ("--with", kind, "--threshold", 0, "--json")
        status, out, _ = run("predict", tmp_path / "run", *pictures, *options)
        assert status == 0
        answers.append([json.loads(line)["prediction"] for line in out.splitlines()])
    for pictures_of_kind in answers:
        assert [len(objects) for objects in pictures_of_kind] == list(map(len, answers[0]))
        best, expected = pictures_of_kind[0][0], answers[0][0][0]
        assert set(best) == {"label", "score", "box"} and len(best["box"]) == 4
        assert best["score"] == pytest.approx(expected["score"], abs=0.02)
    status, out, _ = run("predict", tmp_path / "run", pictures[0], "--threshold", 0)
    assert status == 0 and len(out.splitlines()) == 2 + len(answers[0][0])
    status, out, error = run("evaluate", tmp_path / "run", "--file", test)
    assert status == 0 and "map50" in out
    status, out, error = run("predict", tmp_path / "run", tmp_path / "missing.png")
    assert status == 2 and not out and "missing.png" in error


@pytest.mark.sweep
@pytest.mark.tensorflow
def test_detector_is_trained_further_with_new_labels(tmp_path, run):
    train = write_coco(tmp_path / "train", draw(16, 0))
    words = ["object_detector", "--train", train, "--epochs", 1, "--batch-size", 8]
    sizes = ["--num-layers", 1, "--num-heads", 2, "--hidden-dim", 16, "--image-size", 32]
    status, _, error = run("train", *words, *sizes, "--output", tmp_path / "run")
    assert status == 0, error
    train.write_text(train.read_text().replace('"light"', '"bright"'))
    status, out, error = run(
        "train", *words, "--from", tmp_path / "run", "--output", tmp_path / "b"
    )
    assert status == 0, error
    assert "the last layer is new, for 2 labels instead of 2" in out
    model = keras.saving.load_model(tmp_path / "b" / "model.keras")
    assert model.input_shape == (None, 32, 32, 3)
