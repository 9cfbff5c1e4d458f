"""Proof that a SavedModel needs TensorFlow alone: it is run in a new process without Keras."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from keras_attention.export.errors import ExportError

_SCRIPT = pathlib.Path(__file__).with_name("isolated.py")
_SECONDS = 600


def run(folder, calls):
    """Runs signatures of the SavedModel in `folder`.

    Args:
        calls: list of (name of a signature, its inputs: dict of arrays).

    Returns:
        The outputs, a dict of arrays for each call.
    """
    with tempfile.TemporaryDirectory() as workplace:
        inputs, outputs = (str(pathlib.Path(workplace) / f"{n}.npz") for n in ("in", "out"))
        arrays = {
            f"{signature}|{i}|{name}": array
            for i, (signature, batch) in enumerate(calls)
            for name, array in batch.items()
        }
        np.savez(inputs, **arrays)
        _start([str(folder), inputs, outputs])
        results = [{} for _ in calls]
        with np.load(outputs) as found:
            for key in found:
                _, i, name = key.split("|")
                results[int(i)][name] = found[key]
    return results


def _start(arguments):
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    # -P: the script's own folder must not come first on the path of the new process.
    done = subprocess.run(
        [sys.executable, "-P", str(_SCRIPT), *arguments],
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ExportError(f"The SavedModel does not run without Keras: {lines[-1]}")
