"""Two processes of PyTorch with unevenly padded rows train as one does."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the files that one process wrote, and two. They are named by name and rank."""
    together, alone = tmp_path_factory.mktemp("together"), tmp_path_factory.mktemp("alone")
    command = [sys.executable, "-m", "tests.backends.distributed_torch"]
    options = dict(cwd=ROOT, stderr=subprocess.PIPE, text=True)
    running = [
        subprocess.Popen([*command, str(rank), str(number), str(folder)], **options)
        for number, folder in ((2, together), (1, alone))
        for rank in range(number)
    ]
    for process in running:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    return together, alone


@pytest.mark.parametrize("name", ["labeler", "weighted_sum", "chunked_language_model", "texts"])
def test_steps_are_those_of_one_process(folders, name):
    together, alone = folders
    expected = dict(np.load(alone / f"{name}-0.npz"))
    right = expected.pop("losses")[:3]
    for rank in range(2):
        actual = dict(np.load(together / f"{name}-{rank}.npz"))
        np.testing.assert_allclose(actual.pop("losses")[:3], right, rtol=1e-6)
        assert actual.keys() == expected.keys() and right[2] < right[0]
        for path, weight in actual.items():
            np.testing.assert_allclose(weight, expected[path], atol=1e-6, err_msg=path)


def test_a_process_evaluates_alone(folders):
    together, alone = (np.load(folder / "labeler-0.npz")["losses"] for folder in folders)
    assert together.shape == alone.shape == (4,)  # its rows are others
    assert len(np.load(folders[0] / "labeler-1.npz")["losses"]) == 3


def test_metrics_are_of_all_processes(folders):
    together, alone = folders
    expected = np.load(alone / "scores-0.npz")
    for rank in range(2):
        actual = np.load(together / f"scores-{rank}.npz")
        for name in ("masked_sparse_categorical_accuracy", "masked_perplexity", "entity_f1"):
            np.testing.assert_allclose(actual[name], expected[name], rtol=1e-6)


def test_the_guide(tmp_path):
    text = (ROOT / "docs" / "guides" / "several-devices-other-backends.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (code,) = [code for code in blocks if "DistributedDataParallel" in code]
    (tmp_path / "train.py").write_text(code)
    run = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", *run],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert 0 <= float(line) <= 1 and (tmp_path / "tagger.keras").exists()
