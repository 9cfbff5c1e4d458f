"""The wheel, outside of a clone: all that is needed is in it."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import keras_attention as ka
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
LINES = [*re.findall(r"```python\n(.*?)```", README, re.DOTALL)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package alone, as its wheel installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    names = [".*", "build", "runs", "*.egg-info", "node_modules", "saved_model", "*.tflite"]
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*names))
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, source], check=True)
    (wheel,) = folder.glob("keras_attention_zoo-*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", folder / "installed", wheel], check=True
    )
    assert wheel.stat().st_size < 12 * 10**6
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tests", "examples", "docs"))]
    return folder / "installed"


@pytest.mark.slow
def test_the_lines_of_the_readme(installed, tmp_path):
    """Predict, fine-tune and export in an empty folder, with the presets of the wheel alone."""
    command = 'main(["predict", "pos-tagger-en-ewt", "The cat sat", "--json"])'
    code = "\n".join(
        [
            *LINES,
            "print(ka.__file__)",
            "print([(x.name, x.place) for x in ka.tasks.list_presets()])",
            "try:\n    ka.tasks.from_preset('emotions')",
            "except ValueError as error:\n    print(error)",
            f"from keras_attention.cli import main\n{command}",
        ]
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    for name in ("", "_URL"):
        environment.pop(f"KERAS_ATTENTION_PRESETS{name}", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *_, file, found, error, answer = done.stdout.splitlines()
    package = installed / "keras_attention"
    assert file == str(package / "__init__.py")
    names = ("digits-vit", "pos-tagger-en-ewt")
    assert found == str([(name, str(package / "presets" / name)) for name in names])
    assert error == (
        "There is no file or folder emotions, and no preset of that name. Presets in "
        f"{package / 'presets'}: digits-vit, pos-tagger-en-ewt. More are in saved_models of a "
        "clone of keras_attention: let KERAS_ATTENTION_PRESETS name that folder, or "
        "KERAS_ATTENTION_PRESETS_URL the address of one."
    )
    assert [word["tag"] for word in json.loads(answer)["prediction"]] == ["DET", "NOUN", "VERB"]
    assert "the last layer is new, for 3 labels in place of 17" in done.stderr
    assert (tmp_path / "tagger.tflite").stat().st_size > 10**6
    assert (tmp_path / "attention.png").is_file()


@pytest.mark.slow
def test_all_files_of_the_package_are_in_it(installed):
    folder = ROOT / "keras_attention"
    here = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    here = {path for path in here if path.suffix != ".pyc"}
    there = {
        path.relative_to(installed / "keras_attention")
        for path in (installed / "keras_attention").rglob("*")
        if path.is_file()
    }
    assert here <= there and ka.__version__ in str(list(installed.glob("*.dist-info")))
