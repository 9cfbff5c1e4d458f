"""Modules that are imported when one of their names is first used: Keras, and rooms that need it.

    from keras_attention.core.lazy import keras, models

Keras and TensorFlow take seconds to import, and LiteRT files need neither. Code that reads such
files runs quickly, and also where Keras and TensorFlow are not installed.
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
    """Return whether Keras is installed. This does not import it."""
    return importlib.util.find_spec("keras") is not None


def import_module(name):
    """Import the module `name`. The error for a missing Keras or TensorFlow says how to install it.

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
        owner = "This" if name in MISSING else name
        raise ImportError(f"{owner} {MISSING[error.name]}") from error


def make_getattr(package, modules):
    """Return a `__getattr__` (PEP 562) that imports a module when one of its names is used.

    Args:
        package: str, its name.
        modules: dict, public name -> module of the package that has it. A leading dot means the
            package above, as in relative imports.
    """

    def __getattr__(name):
        if name in modules:
            module = importlib.util.resolve_name(f".{modules[name]}", package)
            return getattr(import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return __getattr__


class LazyModule:
    """A module that is imported when one of its names is used."""

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
