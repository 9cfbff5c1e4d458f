"""Two JAX processes with four devices each train as one device does."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from tests.backends import processes
from tests.conftest import ROOT
from tests.tables import assert_lists

SECONDS = 1800  # of a machine that does much else


def start(stage, folder, *place, backend="jax"):
    """Start a process of `tests.backends.processes`, with its output in `folder`."""
    flags = os.environ.get("XLA_FLAGS", "")
    if place:
        flags += f" --xla_force_host_platform_device_count={processes.DEVICES}"
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "JAX_PLATFORMS": "cpu",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
        "XLA_FLAGS": flags,
    }
    command = [sys.executable, "-m", "tests.backends.processes", stage, folder, *map(str, place)]
    name = "-".join(map(str, [stage, backend, *place[:1]]))
    path = pathlib.Path(folder, f"{name}.log")
    with path.open("w") as log:
        started = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    started.log = path
    return started


def finish(*started):
    """Return the results of such processes, a list."""
    try:
        codes = [each.wait(SECONDS) for each in started]
    finally:
        end(*started)
    texts = [each.log.read_text() for each in started]
    assert not any(codes), "\n".join(text[-5000:] for text in texts)
    lines = [line for text in texts for line in text.splitlines() if line.startswith("found ")]
    return [json.loads(line.removeprefix("found ")) for line in lines]


def end(*started):
    for each in started:
        each.kill()
        each.wait()


def start_all(stage, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [start(stage, folder, rank, port) for rank in range(processes.PROCESSES)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    (result,) = finish(start("alone", str(tmp_path_factory.mktemp("alone"))))
    return result


def assert_equal(actual, expected):
    assert actual["epochs"] == expected["epochs"] and actual["rows"] == expected["rows"]
    for name in ("losses", "evaluated"):
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-5, err_msg=name)
    for ours, theirs in zip(actual["predicted"], expected["predicted"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_every_case_has_a_layout():
    assert_lists("LAYOUTS", processes.LAYOUTS, processes.CASES)


def test_losses_and_predictions_are_those_of_one_device(alone, tmp_path):
    first, second = finish(*start_all("together", str(tmp_path)))
    assert first == second
    for name, expected in alone.items():
        assert len(expected["losses"]) == 6 and expected["losses"][2] < expected["losses"][0]
        assert_equal(first[name], expected)


def test_a_killed_run_goes_on_and_is_loaded_on_one_device(alone, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    folder, expected = str(tmp_path), alone["language"]
    one, other = start_all("killed", folder)
    try:
        assert other.wait(SECONDS) == -signal.SIGKILL, other.log.read_text()[-5000:]
    finally:
        end(one, other)
    first, second = finish(*start_all("resumed", folder))
    assert first == second and first["epochs"] == [1, 2]  # of 0 to 2
    losses = np.reshape(expected["losses"], (2, 3))[:, 1:]  # of training and development
    assert_equal(first, {**expected, "epochs": [1, 2], "losses": losses.ravel()})
    (loaded,) = finish(start("loaded", folder))
    assert np.isclose(loaded["evaluated"], first["evaluated"], rtol=1e-5)
    (exported,) = finish(start("loaded", folder, backend="tensorflow"))
    assert np.isclose(exported["evaluated"], first["evaluated"], rtol=1e-4)
    assert exported["parity"] < 1e-4
    assert (tmp_path / "model.keras").exists() and (tmp_path / "model.tflite").exists()
