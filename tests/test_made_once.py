import pytest

from tests.made_once import make_once


def test_a_folder_is_filled_once(tmp_path_factory):
    calls = []

    def make(folder):
        calls.append(folder)
        (folder / "file").write_text("x")

    folder = make_once(tmp_path_factory, "filled", make)
    assert make_once(tmp_path_factory, "filled", make) == folder and calls == [folder]
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert make_once(tmp_path_factory, "other", make) != folder and len(calls) == 2


def test_make_once_retries_after_a_failure(tmp_path_factory):
    def fail(folder):
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        make_once(tmp_path_factory, "failed", fail)
    folder = make_once(tmp_path_factory, "failed", lambda folder: (folder / "x").touch())
    assert (folder / "x").exists()
