"""LiteRT files in `CompiledModel`, the runtime of browsers and of GPUs in phones.

It takes files of fixed shape alone: on free shapes it reads wrong memory or crashes. So these are
refused here, and files run in a process of their own.
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
_SECONDS = 600

NAME = "CompiledModel"  # in reports
FREE_SHAPES = (
    "free shapes are for the interpreter only: CompiledModel crashes on them, and GPU delegates "
    "and browsers refuse them. Export with batch_size= and sequence_length= for those."
)


@dataclasses.dataclass(frozen=True)
class Job:
    """A signature of a file, and the batches (dicts of arrays) to run it on."""

    path: object
    signature: str
    batches: tuple


@dataclasses.dataclass(frozen=True)
class Execution:
    """The result of a job.

    Attributes:
        outputs: a dict of arrays for each batch; empty after a failure.
        fully_accelerated: bool, whether the accelerator runs all of the file.
        log: str, of the runtime.
        failure: str, why there are no outputs, or None.
        refused: what a delegate says it does not support, such as
            `"GATHER: Only support 1D indices"`.
    """

    outputs: tuple = ()
    fully_accelerated: bool = False
    log: str = ""
    failure: str | None = None
    refused: tuple[str, ...] = ()


def run_signature(path, signature, batches):
    """Runs a signature of the file at `path` on the CPU, on batches of fixed shape.

    Returns:
        A list of dicts of arrays, one for each batch.

    Raises:
        ExportError: if the file's shapes are free, or it does not run.
    """
    backend.import_litert()
    (found,) = run_jobs([Job(path, signature, tuple(batches))])
    if found.failure is not None:
        raise ExportError(f"{path} does not run in CompiledModel: {found.failure}")
    return list(found.outputs)


def run_jobs(jobs, accelerator="cpu", environment=()):
    """Runs many jobs, and goes on after those that crash the process.

    Args:
        accelerator: `"cpu"` or `"gpu"`. environment: dict, variables of the new process.

    Returns:
        An `Execution` for each job; an error is its `failure`.
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
            if left:  # the first one without a result has ended the process
                number = left.pop(0)
                results[number] = Execution(failure=ended, log=logs.get(number, ""))
    return results


def _find_mismatch(job):
    """Why a job would crash the runtime, or fail differently in each version; None if it fits."""
    known = {s.name: s for s in flatbuffer.read_graph(job.path).signatures}
    if job.signature not in known:
        return f"it has no signature {job.signature!r}, only {', '.join(known) or 'none'}."
    wanted = {tensor.name: tensor.shape for tensor in known[job.signature].inputs}
    if any(None in shape for shape in wanted.values()):
        return f"its shapes are free, and {FREE_SHAPES}"
    for batch in job.batches:
        given = {name: np.asarray(array).shape for name, array in batch.items()}
        if given != wanted:
            return f"it takes {wanted}; received {given}."
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
    """Runs the jobs in a new process: (how it ended, dict of number -> what was logged)."""
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
        # -P: the script's own folder must not come first on the path of the new process.
        command = [sys.executable, "-P", str(_SCRIPT), str(folder)]
        try:
            status = subprocess.run(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                timeout=_SECONDS,
            ).returncode
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            ended = f"the process ended with {name}."
        except subprocess.TimeoutExpired:
            ended = f"the process was still busy after {_SECONDS} seconds."
        log.seek(0)
        parts = re.split(r"^job (\d+)$", log.read(), flags=re.MULTILINE)
    return ended, dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))


def _read_result(folder, number, log):
    """Return the `Execution` of a job that has written its result."""
    said = json.loads((folder / f"{number}.json").read_text("utf-8"))
    if "error" in said:
        text = log.replace("ERROR: Following operations are not supported", "")
        pattern = r"^(?:ERROR: |E\d{4} [^\]]*\] )(?:\[[^\]]*\] )?(.+)$"
        reasons = re.findall(pattern, text, re.MULTILINE)  # what the runtime logged, if anything
        return Execution(failure=reasons[0] if reasons else said["error"], log=log)
    outputs = {}
    with np.load(folder / f"{number}.out.npz") as found:
        for key in found:
            batch, _, name = key.partition("|")
            outputs.setdefault(int(batch), {})[name] = found[key]
    return Execution(tuple(outputs[i] for i in sorted(outputs)), said["fully_accelerated"], log)
