"""Run LiteRT files in `CompiledModel`, the runtime of browsers and of phone GPUs.

`CompiledModel` needs fixed shapes. With dynamic shapes it would read wrong memory or crash, so this
module does not run such files. All files run in a separate process.
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np

from keras_attention.export import backend
from keras_attention.export.errors import ExportError
from keras_attention.export.graphs import flatbuffer

_SCRIPT = pathlib.Path(__file__).with_name("compiled_process.py")
_TIMEOUT = 600  # seconds

NAME = "CompiledModel"  # in reports
FREE_SHAPES = (
    "free shapes run only in the interpreter. CompiledModel crashes on them, and GPU delegates "
    "and browsers refuse them. Export with batch_size= and sequence_length=."
)


@dataclasses.dataclass(frozen=True)
class Job:
    """The order to run a signature of the file `path` on a tuple of batches (dicts of arrays)."""

    path: object
    signature: str
    batches: tuple


@dataclasses.dataclass(frozen=True)
class Execution:
    """The result of a `Job`.

    Attributes:
        outputs: tuple with a dict of arrays for each batch. Empty after a failure.
        fully_accelerated: bool, whether the accelerator runs the whole file.
        log: str, the log of the runtime.
        failure: str, the reason why the outputs are missing. None after a success.
        refused: tuple of str, the operators that a delegate does not support, such as
            `"GATHER: Only support 1D indices"`.
    """

    outputs: tuple = ()
    fully_accelerated: bool = False
    log: str = ""
    failure: str | None = None
    refused: tuple[str, ...] = ()


def run_signature(path, signature, batches):
    """Run a signature of a file in `CompiledModel` on the CPU.

    Args:
        path: path of the file, which must have fixed shapes.
        signature: str, the name of the signature.
        batches: iterable of dicts of arrays.

    Returns:
        A list with a dict of output arrays for each batch.

    Raises:
        ExportError: the file has dynamic shapes, or it does not run.
    """
    backend.import_litert()
    (execution,) = run_jobs([Job(path, signature, tuple(batches))])
    if execution.failure is not None:
        raise ExportError(f"{path} does not run in CompiledModel: {execution.failure}")
    return list(execution.outputs)


def run_jobs(jobs, accelerator="cpu", environment=()):
    """Run jobs in a separate process, and restart the process if a job crashes it.

    Args:
        jobs: list of `Job`.
        accelerator: `"cpu"` or `"gpu"`.
        environment: dict of additional environment variables for the process.

    Returns:
        A list with an `Execution` for each job. Errors are not raised, but stored in `failure`.
    """
    results = [Execution(failure=_find_mismatch(job)) for job in jobs]
    left = [number for number, result in enumerate(results) if result.failure is None]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number in left:
            _write_inputs(folder, number, jobs[number])
        while left:
            numbered = {number: jobs[number] for number in left}
            ended, logs = _start_process(folder, numbered, accelerator, dict(environment))
            while left and (folder / f"{left[0]}.json").exists():
                number = left.pop(0)
                results[number] = _read_result(folder, number, logs[number])
            if left:  # the first job without a result has crashed the process
                number = left.pop(0)
                results[number] = Execution(failure=ended, log=logs.get(number, ""))
    return results


def _find_mismatch(job):
    """Return the reason why a job does not fit its file and would crash the runtime.

    Return None if the job fits.
    """
    signatures = {s.name: s for s in flatbuffer.read_graph(job.path).signatures}
    if job.signature not in signatures:
        return f"it has no signature {job.signature!r}, only {', '.join(signatures) or 'none'}."
    expected = {tensor.name: tensor.shape for tensor in signatures[job.signature].inputs}
    if any(None in shape for shape in expected.values()):
        return f"its shapes are free, and {FREE_SHAPES}"
    for batch in job.batches:
        shapes = {name: np.asarray(array).shape for name, array in batch.items()}
        if shapes != expected:
            return f"it takes {expected}, but received {shapes}."
    return None


def _write_inputs(folder, number, job):
    dtypes = {
        tensor.name: tensor.dtype
        for signature in flatbuffer.read_graph(job.path).signatures
        for tensor in signature.inputs
        if signature.name == job.signature
    }
    arrays = {
        f"{i}|{name}": np.asarray(array).astype(dtypes[name], copy=False)
        for i, batch in enumerate(job.batches)
        for name, array in batch.items()
    }
    np.savez(folder / f"{number}.npz", **arrays)


def _start_process(folder, jobs, accelerator, environment):
    """Run jobs in a new process.

    Args:
        folder: pathlib.Path of the folder for the inputs and results.
        jobs: dict from the number of a job to the `Job`.
        accelerator: `"cpu"` or `"gpu"`.
        environment: dict of additional environment variables for the process.

    Returns:
        A str that describes how the process ended, and a dict from the number of each job to its
        log.
    """
    listed = [
        {
            "number": number,
            "path": str(pathlib.Path(job.path).resolve()),
            "signature": job.signature,
            "batches": len(job.batches),
            "accelerator": accelerator,
        }
        for number, job in jobs.items()
    ]
    (folder / "jobs.json").write_text(json.dumps(listed), "utf-8")
    with open(folder / "log", "w+", errors="replace") as log:
        # With -P, the folder of the script is not prepended to `sys.path` in the new process.
        command = [sys.executable, "-P", str(_SCRIPT), str(folder)]
        try:
            status = subprocess.run(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                timeout=_TIMEOUT,
            ).returncode
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            ended = f"the process ended with {name}."
        except subprocess.TimeoutExpired:
            ended = f"the process was still running after {_TIMEOUT} seconds."
        log.seek(0)
        parts = re.split(r"^job (\d+)$", log.read(), flags=re.MULTILINE)
    return ended, dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))


def _read_result(folder, number, log):
    """Return the `Execution` of a finished job, read from the files that its process wrote.

    `number` is the number of the job in the names of these files, and `log` is its log.
    """
    result = json.loads((folder / f"{number}.json").read_text("utf-8"))
    if "error" in result:
        text = log.replace("ERROR: Following operations are not supported", "")
        pattern = r"^(?:ERROR: |E\d{4} [^\]]*\] )(?:\[[^\]]*\] )?(.+)$"
        reasons = re.findall(pattern, text, re.MULTILINE)  # errors in the log of the runtime
        return Execution(failure=reasons[0] if reasons else result["error"], log=log)
    outputs = {}
    with np.load(folder / f"{number}.out.npz") as arrays:
        for key in arrays:
            batch, _, name = key.partition("|")
            outputs.setdefault(int(batch), {})[name] = arrays[key]
    return Execution(tuple(outputs[i] for i in sorted(outputs)), result["fully_accelerated"], log)
