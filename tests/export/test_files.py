import os
import pathlib
import zipfile

import pytest

from keras_attention.export import files


def write(path, text):
    path.mkdir(parents=True)
    (path / "a").write_text(text)


def test_a_new_file_takes_its_place_and_makes_its_folders(tmp_path):
    path = tmp_path / "deep" / "down" / "m.bin"
    with files.replacing(path) as new:
        assert new.name == "m.bin" and not path.exists()
        new.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["m.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "m"
    write(path, "old")
    with pytest.raises(error), files.replacing(path) as new:
        write(new, "half-writ")
        raise error
    assert (path / "a").read_text() == "old" and os.listdir(tmp_path) == ["m"]
    with pytest.raises(error), files.replacing(tmp_path / "x" / "y" / "m"):
        raise error
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_replaces_a_folder(tmp_path):
    path = tmp_path / "m"
    write(path, "old")
    with files.replacing(path) as new:
        write(new, "new")
    assert (path / "a").read_text() == "new" and os.listdir(tmp_path) == ["m"]


def test_a_folder_comes_back_when_the_last_move_fails(tmp_path, monkeypatch):
    path = tmp_path / "m"
    write(path, "old")
    rename = os.rename

    def fail_second(source, target):
        if target == path and pathlib.Path(source).name == "m":
            raise OSError("disk full")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(OSError, match="disk full"), files.replacing(path) as new:
        write(new, "new")
    assert (path / "a").read_text() == "old" and os.listdir(tmp_path) == ["m"]


def test_kinds_are_told_by_content(tmp_path, exported):
    folder, *_ = exported
    renamed = tmp_path / "model.bin"
    renamed.write_bytes((folder / "model.tflite").read_bytes())
    assert files.kind(renamed) == "litert"
    assert files.kind(folder / "model.keras") == "keras"
    assert files.kind(folder / "saved_model") == "saved_model"


@pytest.mark.parametrize("name", ["text.tflite", "empty.keras", "other.zip", "folder"])
def test_a_file_that_is_no_model_is_refused(tmp_path, name):
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name == "other.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme", "hello")
    else:
        path.write_text("hello" if "text" in name else "")
    with pytest.raises(ValueError, match=f"{name} is no model: expected a .keras file, a SavedM"):
        files.kind(path)


def test_a_file_that_is_not_there_is_told_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file or folder .*nowhere"):
        files.kind(tmp_path / "nowhere")


def test_the_digest_of_a_folder_covers_names_and_contents(tmp_path):
    write(tmp_path / "m", "text")
    before = files.sha256(tmp_path / "m")
    assert before != files.sha256(tmp_path / "m" / "a") and files.size(tmp_path / "m") == 4
    (tmp_path / "m" / "a").rename(tmp_path / "m" / "b")
    renamed = files.sha256(tmp_path / "m")
    (tmp_path / "m" / "b").write_text("tixt")
    assert len({before, renamed, files.sha256(tmp_path / "m")}) == 3
