"""Run LiteRT files on a GPU delegate, and list the operators that are left to the CPU.

The delegate is that of ai_edge_litert, which uses WebGPU on top of Vulkan, and needs a Vulkan
driver. Machines without a GPU can use a software driver, Chromium's SwiftShader. On Debian and
Ubuntu, `apt install chromium-common libvulkan1` installs SwiftShader.
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

# The driver in Debian's Chromium package. The Vulkan loader is in the same folder.
_SWIFTSHADER = pathlib.Path("/usr/lib/chromium/vk_swiftshader_icd.json")
_DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # the first one is newer

_MISSING = "No GPU delegate runs here: "
_HOW = "On Debian and Ubuntu, `apt install chromium-common libvulkan1` installs a software driver."


@dataclasses.dataclass(frozen=True)
class Delegation(Execution):
    """The result of a job on a GPU delegate.

    Attributes:
        on_gpu, on_cpu: int, the numbers of operators that run on the GPU and on the CPU, if the GPU
            cannot run all. Both are 0 if it runs all operators.
    """

    on_gpu: int = 0
    on_cpu: int = 0

    @property
    def runtime(self):
        """Return the name of the runtime in reports, which mentions the CPU if the CPU was used."""
        return "GPU delegate" if self.fully_accelerated else "GPU delegate and CPU"


def is_available():
    """Return whether files can run on a GPU delegate on this machine.

    The first call starts a process, which takes a second.
    """
    return _find_driver()[0] is not None


def explain_missing():
    """Return the reason why `is_available()` is False. Return None if it is True."""
    return _find_driver()[1]


def run_signature(path, signature, batches):
    """Run a signature of a file on a GPU delegate.

    Args:
        path: path of the file, which must have fixed shapes.
        signature: str, the name of the signature.
        batches: iterable of dicts of arrays.

    Returns:
        A `Delegation`, with a dict of output arrays for each batch.

    Raises:
        ExportError: the driver is missing, the file has dynamic shapes, or it does not run.
    """
    (delegation,) = run_jobs([Job(path, signature, tuple(batches))])
    if delegation.failure is not None:
        raise ExportError(f"{path} does not run on a GPU delegate: {delegation.failure}")
    return delegation


def run_jobs(jobs):
    """Run a list of `Job`s on a GPU delegate, and return a list of `Delegation`s.

    A `Job` is a file and the batches to run it on. A `Delegation` is the result of one job.

    Raises:
        ExportError: the driver is missing.
    """
    environment, missing = _find_driver()
    if environment is None:
        raise ExportError(missing)
    return _run_in_environment(jobs, environment)


def _run_in_environment(jobs, environment):
    delegations = []
    for execution in compiled_model.run_jobs(jobs, "gpu", environment):
        verdict = _read_verdict(execution.log)
        # The runtime reports full acceleration even if some operators were refused.
        fully = execution.fully_accelerated and not verdict["refused"]
        parts = execution.outputs, fully, execution.log, execution.failure
        delegations.append(Delegation(*parts, **verdict))
    return delegations


def _read_verdict(log):
    """Return the attributes of a `Delegation` that are in the log of the delegate, as a dict.

    The keys are `refused`, `on_gpu` and `on_cpu`.
    """
    refused, gpu, cpu = [], 0, 0
    counts = r"(?:(\d+) operations will run on the GPU, and the remaining|No .* and all) (\d+) op"
    pattern = rf"not supported by GPU delegate:\n(.*?){counts}"
    for part, on_gpu, on_cpu in re.findall(pattern, log, re.S):
        refused += [line.strip().rstrip(":") for line in part.splitlines() if line.strip()]
        gpu, cpu = gpu + int(on_gpu or 0), cpu + int(on_cpu)
    return {"refused": tuple(dict.fromkeys(refused)), "on_gpu": gpu, "on_cpu": cpu}


@functools.cache
def _find_driver():
    """Find a Vulkan driver that runs a test file.

    Returns:
        A tuple of the environment variables (a dict) that select the driver, and None. If there is
        no driver, a tuple of None and the reason (a str).
    """
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
            (probe,) = _run_in_environment([job], environment)
            if probe.fully_accelerated and np.array_equal(probe.outputs[0]["y"], [2, 4, 6, 8]):
                return environment, None
            tried.append(probe.failure or "the delegate leaves an addition to the CPU")
    return None, f"{_MISSING}{'; '.join(dict.fromkeys(tried))}. {_HOW}"


def _candidates():
    """Yield dicts of environment variables that each select a Vulkan driver.

    The first dict selects the driver of the user or the system, and the second dict SwiftShader.
    """
    runtime = (
        {} if os.environ.get("XDG_RUNTIME_DIR") else {"XDG_RUNTIME_DIR": tempfile.gettempdir()}
    )
    yield runtime
    if _SWIFTSHADER.exists() and not any(os.environ.get(name) for name in _DRIVER_VARIABLES):
        loader = {}
        if ctypes.util.find_library("vulkan") is None:
            paths = [str(_SWIFTSHADER.parent), os.environ.get("LD_LIBRARY_PATH")]
            loader = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))}
        yield {**runtime, **loader, **dict.fromkeys(_DRIVER_VARIABLES, str(_SWIFTSHADER))}


def _make_probe():
    """Return a LiteRT file (bytes) that doubles four numbers, to test whether a driver works."""
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
