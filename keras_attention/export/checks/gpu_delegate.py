"""LiteRT files on a GPU delegate: what it computes, and what it leaves to the CPU.

The delegate is the one of ai_edge_litert, WebGPU on top of Vulkan, and needs a driver. Without a
GPU, Chromium's SwiftShader is one: on Debian and Ubuntu, `apt install chromium-common libvulkan1`.
"""

import ctypes.util
import dataclasses
import functools
import importlib.util
import os
import pathlib
import re
import tempfile

import numpy as np

from keras_attention.export.checks import compiled_model
from keras_attention.export.checks.compiled_model import Execution, Job
from keras_attention.export.errors import ExportError

# Where Debian's Chromium has its driver; the loader of Vulkan lies beside it.
_SWIFTSHADER = pathlib.Path("/usr/lib/chromium/vk_swiftshader_icd.json")
_NAMED_DRIVERS = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # either names drivers; the first is newer

_MISSING = "No GPU delegate runs here: "
_HOW = "On Debian and Ubuntu, `apt install chromium-common libvulkan1` brings a driver in software."


@dataclasses.dataclass(frozen=True)
class Delegation(Execution):
    """The result of a job on a GPU.

    Attributes:
        on_gpu, on_cpu: int, operators of the file that each took; both 0 where none was refused.
    """

    on_gpu: int = 0
    on_cpu: int = 0

    @property
    def runtime(self):
        """str, the name of the runtime for reports."""
        return "GPU delegate" if self.fully_accelerated else "GPU delegate and CPU"


def is_available():
    """Whether files can be run here; the first call starts a process, which takes a second."""
    return _find_driver()[0] is not None


def explain_missing():
    """str, what is missing where `is_available()` is False; else None."""
    return _find_driver()[1]


def run_signature(path, signature, batches):
    """Runs a signature of the file at `path` on batches of fixed shape.

    Returns:
        `Delegation`, without a failure.

    Raises:
        ExportError: if there is no driver, the file's shapes are free, or it does not run.
    """
    (found,) = run_jobs([Job(path, signature, tuple(batches))])
    if found.failure is not None:
        raise ExportError(f"{path} does not run on a GPU delegate: {found.failure}")
    return found


def run_jobs(jobs):
    """Runs many jobs, and goes on after those that crash the process.

    Returns:
        A `Delegation` for each job; an error is its `failure`.

    Raises:
        ExportError: if there is no driver.
    """
    environment, missing = _find_driver()
    if environment is None:
        raise ExportError(missing)
    return _run_in_environment(jobs, environment)


def _run_in_environment(jobs, environment):
    delegations = []
    for found in compiled_model.run_jobs(jobs, "gpu", environment):
        verdict = _read_verdict(found.log)
        # The runtime's own verdict is yes, too, where some operators were refused.
        fully = found.fully_accelerated and not verdict["refused"]
        parts = found.outputs, fully, found.log, found.failure
        delegations.append(Delegation(*parts, **verdict))
    return delegations


def _read_verdict(log):
    """Return the delegate's words on the file's graphs, summed up: a dict."""
    refused, gpu, cpu = [], 0, 0
    said = r"(?:(\d+) operations will run on the GPU, and the remaining|No .* and all) (\d+) op"
    for part, some, rest in re.findall(rf"not supported by GPU delegate:\n(.*?){said}", log, re.S):
        refused += [line.strip().rstrip(":") for line in part.splitlines() if line.strip()]
        gpu, cpu = gpu + int(some or 0), cpu + int(rest)
    return {"refused": tuple(dict.fromkeys(refused)), "on_gpu": gpu, "on_cpu": cpu}


@functools.cache
def _find_driver():
    """(What to add to the environment, None), or (None, what is missing)."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        return (
            None,
            f"{_MISSING}ai_edge_litert is not installed: pip install 'keras-attention-zoo[export]'",
        )
    tried = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "probe.tflite"
        path.write_bytes(_make_probe())
        job = Job(path, "probe", ({"x": np.array([1.0, 2.0, 3.0, 4.0], "float32")},))
        for environment in _candidates():
            (found,) = _run_in_environment([job], environment)
            if found.fully_accelerated and np.array_equal(found.outputs[0]["y"], [2, 4, 6, 8]):
                return environment, None
            tried.append(found.failure or "the delegate leaves an addition to the CPU")
    return None, f"{_MISSING}{'; '.join(dict.fromkeys(tried))}. {_HOW}"


def _candidates():
    """Environments to try: the drivers that were named, or the system's, and then Chromium's."""
    runtime = (
        {} if os.environ.get("XDG_RUNTIME_DIR") else {"XDG_RUNTIME_DIR": tempfile.gettempdir()}
    )
    yield runtime
    if _SWIFTSHADER.exists() and not any(os.environ.get(name) for name in _NAMED_DRIVERS):
        loader = {}
        if ctypes.util.find_library("vulkan") is None:
            paths = [str(_SWIFTSHADER.parent), os.environ.get("LD_LIBRARY_PATH")]
            loader = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}
        yield {**runtime, **loader, **dict.fromkeys(_NAMED_DRIVERS, str(_SWIFTSHADER))}


def _make_probe():
    """Return a LiteRT file that adds four numbers to themselves."""
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    x, y = (
        schema.TensorT(name=name, shape=np.array([4], "int32"), buffer=0, hasRank=True)
        for name in ("x", "y")
    )
    add = schema.OperatorT(
        inputs=np.array([0, 0], "int32"),
        outputs=np.array([1], "int32"),
        builtinOptionsType=schema.BuiltinOptions.AddOptions,
        builtinOptions=schema.AddOptionsT(),
    )
    graph = schema.SubGraphT(
        tensors=[x, y],
        inputs=np.array([0], "int32"),
        outputs=np.array([1], "int32"),
        operators=[add],
    )
    signature = schema.SignatureDefT(
        inputs=[schema.TensorMapT("x", 0)],
        outputs=[schema.TensorMapT("y", 1)],
        signatureKey="probe",
    )
    model = schema.ModelT(
        version=3,
        operatorCodes=[schema.OperatorCodeT(schema.BuiltinOperator.ADD, None, 1, 0)],
        subgraphs=[graph],
        buffers=[schema.BufferT()],
        signatureDefs=[signature],
    )
    builder = importlib.import_module("flatbuffers").Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
