"""The wheel, outside of a clone: all that is needed is in it."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile

import pytest

import keras_attention as ka
from keras_attention.tasks import presets
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()
LINES = [*re.findall(r"```python\n(.*?)```", README, re.DOTALL)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package alone, as its wheel installs it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    names = shutil.ignore_patterns(".*", "build", "*.egg-info", "node_modules", "saved_models")
    shutil.copytree(ROOT, source, ignore=names)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, source], check=True)
    (wheel,) = folder.glob("keras_attention_zoo-*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", folder / "installed", wheel], check=True
    )
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(("tests", "examples", "docs"))]
    return folder / "installed"


@pytest.fixture
def zoo(tmp_path):
    """The address of a server on loopback that has the tagger."""
    shutil.copytree(
        ROOT / "saved_models" / "pos-tagger-en-ewt", tmp_path / "zoo" / "pos-tagger-en-ewt"
    )
    presets.write_index(tmp_path / "zoo")
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "zoo")
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
def test_the_lines_of_the_readme(installed, zoo, tmp_path):
    """Predict, fine-tune and export, with a preset from a server."""
    work = tmp_path / "work"
    work.mkdir()
    code = "\n".join([*LINES, "import keras_attention", "print(keras_attention.__file__)"])
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "KERAS_ATTENTION_PRESETS_URL": zoo,
        "KERAS_ATTENTION_CACHE": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=work, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == str(installed / "keras_attention" / "__init__.py")
    assert "the last layer is new, for 3 labels in place of 17" in done.stdout
    assert (work / "tagger.tflite").stat().st_size > 10**6 and (work / "attention.png").is_file()
    assert list((tmp_path / "cache").rglob("model.keras"))


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
