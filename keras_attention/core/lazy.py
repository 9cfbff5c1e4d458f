"""Lazy imports of Keras, and of the parts of this package that need Keras.

    from keras_attention.core.lazy import keras, models

Such a module is imported when one of its attributes is first used. Keras and TensorFlow take
seconds to import, and LiteRT files need neither. So code that runs LiteRT files starts quickly, and
works even if Keras and TensorFlow are not installed.
"""

import importlib
import importlib.util

MODULES = {
    "keras": "keras",
    "keras_internals": "keras_attention.core.keras_internals",
    **{
        name: f"keras_attention.{name}"
        for name in "blocks generation masks models positions pretrained visualization".split()
    },
}

MISSING = {
    name: f"needs Keras and TensorFlow, and {name} is not installed: pip install "
    "'keras-attention-zoo[keras]'. Without them only LiteRT files of presets can be used."
    for name in ("keras", "tensorflow")
}


def has_keras():
    """Return whether Keras is installed, without importing it."""
    return importlib.util.find_spec("keras") is not None


def import_module(name):
    """Import and return a module, with a helpful error if Keras or TensorFlow is not installed.

    `name` is the full name of the module. The ImportError says how to install the missing package.

    ```python
    from keras_attention.core.lazy import import_module

    assert import_module("keras_attention.core.checks").check_whole_number("f", "n", 3) == 3
    ```
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in MISSING:
            raise
        subject = "This" if name in MISSING else ".".join(name.split(".")[:2])
        raise ImportError(f"{subject} {MISSING[error.name]}") from error


def make_getattr(package, modules):
    """Return a module's `__getattr__` (PEP 562) that imports public names when they are first used.

    Args:
        package: str, the `__name__` of the package.
        modules: dict {public name: module that defines it}, relative to `package`, such as
            `{"Noam": "schedules"}`. A leading dot means the parent of `package`.
    """

    def __getattr__(name):
        if name in modules:
            module = importlib.util.resolve_name(f".{modules[name]}", package)
            return getattr(import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


class LazyModule:
    """A stand-in for a module, which is imported when one of its attributes is first used."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, attribute):
        return getattr(import_module(self.__name__), attribute)

    def __repr__(self):
        return f"<{self.__name__}, imported when it is used>"


def __getattr__(name):
    if name in MODULES:
        return LazyModule(MODULES[name])
    raise AttributeError(f"module 'keras_attention.core.lazy' has no attribute {name!r}")
