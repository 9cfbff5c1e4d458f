"""Libraries that only some functions need, with an error that says which extra brings them."""

import importlib


def import_tensorflow(function):
    return _import("tensorflow", function, "TensorFlow")


def import_tfds(function):
    return _import("tensorflow_datasets", function, "TensorFlow Datasets")


def _import(module, function, name):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"ka.data.{function} needs {name} ({error}). "
            "Install it with: pip install keras_attention[data]"
        ) from error
