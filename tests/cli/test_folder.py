"""Who may write into a folder, and that results come whole."""

import json

import pytest

from keras_attention.cli.folder import Folder, flat, locate


def test_results_arrive_together_and_the_state_goes(tmp_path):
    folder = Folder(tmp_path / "new", {"seed": 0})
    folder.start()
    with folder.finishing() as result:
        (result / "model.keras").write_text("model")
        assert not (folder.path / "model.keras").exists()
    assert [path.name for path in folder.path.iterdir()] == ["model.keras"]


def test_results_that_fail_leave_the_unfinished_run(tmp_path):
    folder = Folder(tmp_path, {})
    folder.start()
    with pytest.raises(RuntimeError), folder.finishing() as result:
        (result / "model.keras").write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == [".training"]
    assert Folder(tmp_path, {}).resumed
    with folder.finishing() as result:
        assert list(result.iterdir()) == []


def test_a_run_with_other_settings_is_refused_by_name(tmp_path):
    Folder(tmp_path, {"recipe": {"seed": 0, "epochs": 2}}).start()
    with pytest.raises(ValueError, match=r"recipe\.seed: 0 there, 1 here"):
        Folder(tmp_path, {"recipe": {"seed": 1, "epochs": 2}})
    assert Folder(tmp_path, {"recipe": {"seed": 0, "epochs": 2}}).resumed


def test_a_finished_model_is_replaced_only_when_asked_to(tmp_path):
    for name in ("scores.json", "manifest.json", "old.png"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match="already holds a finished model"):
        Folder(tmp_path, {})
    folder = Folder(tmp_path, {}, replace=True)
    folder.start()
    assert (tmp_path / "old.png").exists()
    with folder.finishing() as result:
        (result / "new.png").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == ["new.png"]


def test_other_files_are_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match="already holds other files"):
        Folder(tmp_path, {}, replace=True)
    with pytest.raises(ValueError, match="is a file"):
        Folder(tmp_path / "thesis.txt", {})


def test_nothing_is_written_before_the_start(tmp_path):
    Folder(tmp_path / "new", {})
    assert not (tmp_path / "new").exists()


@pytest.fixture
def trained(tmp_path):
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "model.tflite").write_bytes(b"\0\0\0\0TFL3")
    return tmp_path


@pytest.mark.parametrize(
    ("inside", "kind", "found"),
    [
        ("", None, "saved_model"),
        ("", "litert", "model.tflite"),
        ("saved_model", None, "saved_model"),
        ("model.tflite", None, "model.tflite"),
        ("model.tflite", "saved_model", "saved_model"),
    ],
)
def test_locate(trained, inside, kind, found):
    assert locate(trained / inside, kind) == (trained, trained / found)


def test_locate_says_what_is_missing(trained, tmp_path):
    with pytest.raises(ValueError, match="no file or folder .*absent"):
        locate(trained / "absent")
    with pytest.raises(ValueError, match="holds no model.int8.tflite"):
        locate(trained, "litert-int8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no model: none of model.keras, saved_model"):
        locate(tmp_path / "empty")
    (tmp_path / "x.keras").write_text("hello")
    with pytest.raises(ValueError, match="x.keras is no model"):
        locate(tmp_path / "x.keras")


def test_flat():
    assert flat({"a": 1, "b": {"c": {"d": 2}, "e": []}}) == {"a": 1, "b.c.d": 2, "b.e": []}
    assert flat(json.loads("{}")) == {}
