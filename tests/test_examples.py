"""Every file of `examples/` runs, from beginning to end."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
ARGUMENTS = {
    "digits.py": ["--epochs", "1", "--output", "digits"],
    "part_of_speech.py": ["--epochs", "1"],
    "shakespeare.py": ["--steps", "3"],
}
PRINTED = {
    "digits.py": "test accuracy",
    "part_of_speech.py": "mat/",
    "shakespeare.py": "validation loss",
}


@pytest.mark.parametrize("file", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(file, tmp_path, monkeypatch):
    monkeypatch.delenv("KERAS_ATTENTION_DATA", raising=False)
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / file), *ARGUMENTS[file]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert PRINTED[file] in run.stdout
