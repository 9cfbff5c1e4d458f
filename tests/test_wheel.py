"""The wheel has all files, and the README's code runs with it outside of a clone."""

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
    """Return a folder with only the package, as its wheel installs it."""
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
def test_code_of_the_readme_runs(installed, tmp_path):
    """Run the README in an empty folder, with only the presets of the wheel."""
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
    rows = ["text,label", *["a joy to watch,good", "a real bore,bad"] * 20]
    (tmp_path / "opinions.csv").write_text("\n".join(rows), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    for name in ("", "_URL"):
        environment.pop(f"KERAS_ATTENTION_PRESETS{name}", None)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *_, file, presets, error, answer = done.stdout.splitlines()
    package = installed / "keras_attention"
    assert file == str(package / "__init__.py")
    names = ("digits-vit", "pos-tagger-en-ewt")
    assert presets == str([(name, str(package / "presets" / name)) for name in names])
    assert error == (
        "There is no file or folder emotions, and no preset of that name. Presets in "
        f"{package / 'presets'}: digits-vit, pos-tagger-en-ewt. More are in saved_models of a "
        "clone of keras_attention: set KERAS_ATTENTION_PRESETS to that folder, or "
        "KERAS_ATTENTION_PRESETS_URL to the URL of such a folder."
    )
    assert [word["tag"] for word in json.loads(answer)["prediction"]] == ["DET", "NOUN", "VERB"]
    assert "Classification(label='good'" in done.stdout
    assert (tmp_path / "opinions" / "model.tflite").stat().st_size > 10**4
    assert (tmp_path / "reverse" / "model.tflite").stat().st_size > 10**5
    assert (tmp_path / "attention.png").is_file()


@pytest.mark.slow
def test_wheel_has_all_files_of_the_package(installed):
    folder = ROOT / "keras_attention"
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    files = {path for path in files if path.suffix != ".pyc"}
    wheel_files = {
        path.relative_to(installed / "keras_attention")
        for path in (installed / "keras_attention").rglob("*")
        if path.is_file()
    }
    assert files <= wheel_files and ka.__version__ in str(list(installed.glob("*.dist-info")))
