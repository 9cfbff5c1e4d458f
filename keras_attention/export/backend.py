"""Import TensorFlow and the LiteRT runtime on demand, with helpful errors."""

import contextlib
import importlib
import importlib.metadata
import os
import platform
import subprocess
import sys

from keras_attention.core.lazy import keras
from keras_attention.export.errors import ExportError


def import_tensorflow():
    """Import TensorFlow, and return the module.

    Raises:
        ExportError: Keras runs on another backend.
    """
    if keras.backend.backend() != "tensorflow":
        raise ExportError(
            f"Exports need TensorFlow, but Keras runs on {keras.backend.backend()!r} here. Save "
            "the model, and load it in a process with KERAS_BACKEND=tensorflow. Export it there."
        )
    import tensorflow

    return tensorflow


def import_litert():
    """Import the LiteRT interpreter, and return the module `ai_edge_litert.interpreter`.

    Raises:
        ExportError: the package is not installed. The message contains the pip command.
    """
    try:
        return importlib.import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise ExportError(
            "ai_edge_litert is not installed. Exports need it to read and check LiteRT files. Run "
            "pip install 'keras-attention-zoo[export]'"
        ) from error


def find_versions(*packages):
    """Return a dict {package: version}, for the report of an export.

    The dict has Python, keras_attention, Keras and `packages`, as far as they are installed.
    """
    versions = {"python": platform.python_version()}
    for package in ("keras_attention", "keras", *packages):
        version = getattr(sys.modules.get(package), "__version__", None)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = version or importlib.metadata.version(package)
    return versions


@contextlib.contextmanager
def hide_stderr():
    """Context manager that discards stderr, where TensorFlow's C++ code logs messages."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 2)
            yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)


def run_script(path, *arguments, timeout=None):
    """Run a Python script with command line arguments in a new process that sees no GPU.

    `path` is the path of the script. `timeout` is in seconds. The result is a
    `subprocess.CompletedProcess`, with stdout and stderr as str.
    """
    return subprocess.run(
        # With -P, the folder of the script is not prepended to `sys.path` in the new process.
        [sys.executable, "-P", str(path), *map(str, arguments)],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )
