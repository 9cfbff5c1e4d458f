import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_attention import export
from keras_attention.export import manifest
from keras_attention.export.checks.report import ExportReport
from keras_attention.files import manifest as manifests
from keras_attention.files.io import make_workplace


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


def test_entries_of_deleted_files_are_dropped(exported, tmp_path):
    _, _, report = exported
    new = tmp_path / "new"
    for name in ("a.tflite", "b.tflite"):
        new.touch()
        manifest.publish_export(new, dataclasses.replace(report, path=str(tmp_path / name)))
    (tmp_path / "a.tflite").unlink()
    new.touch()
    again = dataclasses.replace(report, path=str(tmp_path / "b.tflite"))
    manifest.publish_export(new, again, {"labels": "ab"})
    assert list(manifests.read_manifest(tmp_path)["files"]) == ["b.tflite"]
    assert manifests.read_manifest(tmp_path)["labels"] == "ab"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.tflite", "manifest.json"]


def test_a_broken_manifest_is_refused_before_the_export(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json is not valid JSON: .*Fix or remove it"):
        manifest.check_metadata(tmp_path, None)


def test_links_are_not_replaced(tmp_path):
    (tmp_path / "real").write_text("real")
    (tmp_path / "link.tflite").symlink_to("real")
    (tmp_path / "nowhere").symlink_to("nothing")
    for name in ("link.tflite", "nowhere"):
        with pytest.raises(ValueError, match=f"{name}' is a link to .*. Use the path"):
            manifest.check_target(tmp_path / name)
    manifest.check_target(tmp_path / "real")


EXPORT = """
import dataclasses, os, pathlib, signal, sys
from keras_attention.files.io import make_workplace
from keras_attention.files.manifest import compute_sha256
from keras_attention.export import manifest

@dataclasses.dataclass
class Report:
    path: str
    sha256: str

    def as_dict(self):
        return dataclasses.asdict(self)

path, kind, text, last = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
left = last

def watch(event, arguments):
    global left
    if event in EVENTS and str(path.parent) in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
sys.addaudithook(watch)
with make_workplace(path) as new:
    if kind == "folder":
        new.mkdir()
        for part in "ab":
            (new / part).write_text(text)
    else:
        new.write_text(text)
    manifest.publish_export(new, Report(str(path), compute_sha256(new)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_nothing_half_written_is_left_by_a_process_that_is_killed(tmp_path, kind):
    """Killed before each thing it does to the disk, while it replaces an older export."""
    package = _without_the_rest(tmp_path / "package")
    folder = tmp_path / "out"
    folder.mkdir()

    def export(text, last):
        command = [sys.executable, "-S", "-c", EXPORT, folder / "m", kind, text, str(last)]
        return subprocess.run(command, cwd=package, timeout=60).returncode

    def content():
        path = folder / "m"
        parts = [path / part for part in "ab"] if kind == "folder" else [path]
        texts = {part.read_text() for part in parts}
        assert len(texts) == 1
        return texts.pop()

    assert export("old", 0) == 0
    last, seen = 0, set()
    while True:
        last += 1
        code = export("new", last)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if (folder / "m").exists():
            seen.add(content())
            if content() == "old":
                manifests.check_unchanged(folder / "m")
        else:
            assert kind == "folder"  # which cannot be replaced in one step
            seen.add(None)
        assert manifests.read_manifest(folder)["files"]["m"]["path"] == "m"
        assert export("old", 0) == 0
        assert content() == "old" and sorted(os.listdir(folder)) == ["m", "manifest.json"]
        manifests.check_unchanged(folder / "m")
    assert last > 8 and seen == ({"old", "new", None} if kind == "folder" else {"old", "new"})


# Who moves its files first may well write its manifest last.
SLOW = """
import random, time
from keras_attention.export import manifest
at_once = manifest.move_into_place
def move_slowly(new, path):
    at_once(new, path)
    time.sleep(random.uniform(0.0, 0.3))
manifest.move_into_place = move_slowly
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_two_exports_to_one_path_do_not_mix(tmp_path):
    """File and manifest are of the same one, whoever came last."""
    package = _without_the_rest(tmp_path / "package")
    folder = tmp_path / "out"
    folder.mkdir()
    for turn in range(3):
        command = [sys.executable, "-S", "-c", SLOW + EXPORT, folder / "m", "folder"]
        texts = [f"text {turn} {i}" for i in range(3)]
        several = [subprocess.Popen([*command, text, "0"], cwd=package) for text in texts]
        assert [process.wait(60) for process in several] == [0, 0, 0]
        assert (folder / "m" / "a").read_text() in texts
        manifests.check_unchanged(folder / "m")
        assert sorted(os.listdir(folder)) == ["m", "manifest.json"]


def _without_the_rest(folder):
    """Return a folder with the part of the package that the export above needs."""
    source = pathlib.Path(manifest.__file__).parents[1]
    files = ("files/fields", "files/io", "files/manifest", "files/word_pattern")
    for name in (*files, "export/manifest"):
        copied = (folder / "keras_attention" / name).with_suffix(".py")
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy((source / name).with_suffix(".py"), copied)
        (copied.parent / "__init__.py").touch()
    (folder / "keras_attention" / "__init__.py").touch()
    return folder


REAL = """
import sys
import time
import keras
import keras_attention as ka

inputs = keras.Input((4,), name="x")
model = keras.Model(inputs, keras.layers.Dense(50, name="y")(inputs))
while True:
    ka.export.to_litert(model, f"{sys.argv[1]}/m.tflite")
    print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_an_export_that_is_killed_leaves_a_whole_file(tmp_path):
    """Kill a real export at random moments."""
    folder, random = tmp_path / "out", np.random.default_rng(0)
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", REAL, folder], stdout=subprocess.PIPE)
        with process:
            assert process.stdout.readline() == b"done\n"
            time.sleep(random.uniform(0.0, 0.6))
            process.kill()
        run = export.load(folder / "m.tflite")
        assert run({"x": np.ones((2, 4))})["y"].shape == (2, 50)
    with make_workplace(folder / "m.tflite"):
        pass
    assert sorted(os.listdir(folder)) == ["m.tflite", "manifest.json"]
