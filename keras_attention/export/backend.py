"""TensorFlow and the LiteRT runtime: imported when needed, or an error says what is missing."""

import contextlib
import importlib
import importlib.metadata
import os
import platform
import sys

from keras_attention.core.lazy import keras
from keras_attention.export.errors import ExportError


def import_tensorflow():
    """Return TensorFlow. Keras on another backend is an error."""
    if keras.backend.backend() != "tensorflow":
        raise ExportError(
            f"Exports are traced by TensorFlow, and Keras runs on {keras.backend.backend()!r} "
            "here. Save the model, start a process with KERAS_BACKEND=tensorflow, load it there "
            "and export."
        )
    import tensorflow

    return tensorflow


def import_litert():
    """Return the stock LiteRT runtime. The error without it names the extra to install."""
    try:
        return importlib.import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise ExportError(
            "LiteRT files are read and checked by ai_edge_litert, which is not installed: "
            "pip install 'keras-attention-zoo[export]'"
        ) from error


def find_versions(*packages):
    """dict, package -> version, of those that are installed, and of Python."""
    found = {"python": platform.python_version()}
    for package in ("keras_attention", "keras", *packages):
        version = getattr(sys.modules.get(package), "__version__", None)
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = version or importlib.metadata.version(package)
    return found


@contextlib.contextmanager
def hide_stderr():
    """Hides the standard error, where TensorFlow's C++ code chatters; errors come as exceptions."""
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
