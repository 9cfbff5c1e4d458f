"""Writing complete files, damaged JSON, and names that lead out of a folder."""

import contextlib
import errno
import json
import os
import pathlib

import pytest

from keras_attention.files import io as files


def test_failed_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / ("x" * 240)
    files.write_whole(path, b"old")

    def full(self, content):
        with open(self, "wb") as file:
            file.write(content[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_whole(path, b"new")
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]


def test_concurrent_writers_do_not_interfere(tmp_path, monkeypatch):
    """Check that each writer has its own unfinished file, and that the last one wins."""
    path, replace = tmp_path / "a.json", os.replace

    def interrupted(unfinished, target):
        monkeypatch.setattr(os, "replace", replace)
        files.write_json(path, {"by": "the other"})
        replace(unfinished, target)

    monkeypatch.setattr(os, "replace", interrupted)
    files.write_json(path, {"by": "the one"})
    assert files.read_json(path) == {"by": "the one"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b'{"a": ', "Expecting value"),
        (b"\xff\xfe{}", "can't decode"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b"[" * 100 + b"]" * 100, "nested too deeply"),
        (b'{"a":' * 100 + b"0" + b"}" * 100, "nested too deeply"),
        (b"9" * 5000, "Exceeds the limit"),
    ],
)
def test_errors_of_damaged_json_name_the_file(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"a.json is not valid JSON: .*{message}"):
        files.read_json(path)


def test_json_may_start_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}', encoding="utf-8-sig")
    assert files.read_json(path) == {"a": 1}


def test_json_values_of_any_type_are_read(tmp_path):
    for content in ({"a": [1, {"b": []}]}, [], None, "text", 1.5):
        files.write_json(tmp_path / "a.json", content)
        assert files.read_json(tmp_path / "a.json") == content
    assert files.parse_json(json.dumps([[]] * 1000)) == [[]] * 1000


def test_errors_number_the_input():
    ends = iter([])  # inputs are read one at a time
    numbers = files.number_errors("Text", ["1", "2", "x"], lambda text: next(ends, int(text)))
    assert (next(numbers), next(numbers)) == (1, 2)
    with pytest.raises(ValueError, match="^Text 3: invalid literal .* 'x'"):
        next(numbers)
    with pytest.raises(ValueError, match="^invalid literal"):
        list(files.number_errors("Text", ["x"], int))


def test_read_bytes_refuses_missing_files_folders_and_invalid_names(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file .*gone"):
        files.read_bytes(tmp_path / "gone")
    with pytest.raises(IsADirectoryError, match="is a folder: expected a file"):
        files.read_bytes(tmp_path)
    with pytest.raises(ValueError, match=r"a\\x00b' is not a valid file name"):
        files.read_bytes("a\0b")


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../words.txt", "a/words.txt", "a\\words.txt", "C:words.txt", "..", ".", ""]
    + ["a\0", None, 5, True, ["words.txt"], {"a": 1}, "/" * 10_000],
)  # fmt: skip
def test_names_with_a_path_are_refused(tmp_path, name):
    with pytest.raises(
        ValueError, match="^manifest: words is .*: expected the plain name"
    ) as error:
        files.path_inside(tmp_path, name, "manifest: words")
    assert len(str(error.value)) < 200


def test_links_out_of_the_folder_are_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text("s")
    (folder / "words.txt").write_text("w")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "around").symlink_to("around")
    (folder / "within").symlink_to("words.txt")
    with pytest.raises(ValueError, match="'out', a link that leads out of .*folder"):
        files.path_inside(folder, "out", "manifest: words")
    with pytest.raises(ValueError, match="'around', a broken link"):
        files.path_inside(folder, "around", "manifest: words")
    assert files.path_inside(folder, "within", "manifest: words").read_text() == "w"
    (tmp_path / "alias").symlink_to(folder)  # the folder itself may be a link
    assert files.path_inside(tmp_path / "alias", "words.txt", "x").read_text() == "w"
    assert files.path_inside(folder, "gone", "x") == folder / "gone"


@contextlib.contextmanager
def replacing(path):
    with files.make_workplace(path) as new:
        yield new
        files.move_into_place(new, path)


def write(path, text):
    path.mkdir(parents=True)
    (path / "a").write_text(text)


def test_a_new_file_is_moved_into_new_folders(tmp_path):
    path = tmp_path / "deep" / "down" / "m.bin"
    with replacing(path) as new:
        assert new.name == "m.bin" and not path.exists()
        new.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["m.bin"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "m"
    write(path, "old")
    with pytest.raises(error), replacing(path) as new:
        write(new, "half-writ")
        raise error
    assert (path / "a").read_text() == "old" and os.listdir(tmp_path) == ["m"]
    with pytest.raises(error), replacing(tmp_path / "x" / "y" / "m"):
        raise error
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_replaces_a_folder(tmp_path):
    path = tmp_path / "m"
    write(path, "old")
    with replacing(path) as new:
        write(new, "new")
    assert (path / "a").read_text() == "new" and os.listdir(tmp_path) == ["m"]


def test_a_folder_is_restored_if_the_last_move_fails(tmp_path, monkeypatch):
    path = tmp_path / "m"
    write(path, "old")
    rename = os.rename

    def fail_second(source, target):
        if target == path and pathlib.Path(source).name == "m":
            raise OSError("disk full")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_second)
    with pytest.raises(OSError, match="disk full"), replacing(path) as new:
        write(new, "new")
    assert (path / "a").read_text() == "old" and os.listdir(tmp_path) == ["m"]


def test_long_names_are_accepted(tmp_path):
    with replacing(tmp_path / ("m" * 255)) as new:
        new.write_text("new")
    assert os.listdir(tmp_path) == ["m" * 255]


def test_an_old_folder_is_restored_although_the_next_write_fails(tmp_path):
    left = tmp_path / ".m.abcdefgh.unfinished"
    write(left / ".previous", "old")
    with pytest.raises(ValueError), replacing(tmp_path / "m"):
        raise ValueError
    assert (tmp_path / "m" / "a").read_text() == "old" and os.listdir(tmp_path) == ["m"]


def test_workplaces_of_running_processes_are_kept(tmp_path):
    with (
        files.make_workplace(tmp_path / "m") as first,
        files.make_workplace(tmp_path / "m") as second,
    ):
        assert first.parent.exists() and first != second
        first.write_text("first")
        second.write_text("second")
        files.move_into_place(second, tmp_path / "m")
    assert (tmp_path / "m").read_text() == "second" and os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(files.fcntl is None, reason="no locks")
@pytest.mark.parametrize("step", ["open", "lock"])
def test_leftovers_removed_by_another_process_are_skipped(tmp_path, monkeypatch, step):
    leftover = tmp_path / f".m.01234567{files.UNFINISHED}"
    leftover.mkdir()
    module, name = {"open": (files.os, "open"), "lock": (files.fcntl, "flock")}[step]
    call = getattr(module, name)

    def remove_and_call(target, flags, **keywords):
        if target == leftover or (step == "lock" and flags & files.fcntl.LOCK_NB):
            with contextlib.suppress(FileNotFoundError):
                leftover.rmdir()
        return call(target, flags, **keywords)

    monkeypatch.setattr(module, name, remove_and_call)
    with files.make_workplace(tmp_path / "m") as new:
        write(new, "new")
        files.move_into_place(new, tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
