"""Every attention, one equation: Keras layers and models that train, explain and export themselves.

Public names are the folders': `ka.scores.Cosine`, `ka.masks.Window`, `ka.models.sequence_labeler`.
"""

import importlib

__version__ = "0.1.0"

__all__ = [
    "attention",
    "blocks",
    "data",
    "export",
    "layers",
    "masks",
    "models",
    "normalizers",
    "positions",
    "scores",
    "training",
    "visualization",
]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
