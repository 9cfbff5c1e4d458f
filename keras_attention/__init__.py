"""Every attention, one equation: Keras layers and models that train, explain and export themselves.

Public names belong to a folder: `ka.scores.Cosine`, `ka.masks.Window`, `ka.models.text_encoder`.
Each folder is imported when it is first used (PEP 562). `keras.models.load_model` knows the classes
of all folders as soon as the package itself is imported (see `core/registration.py`).
"""

from typing import TYPE_CHECKING

from keras_attention.core.lazy import import_module
from keras_attention.core.name_clash import warn_of_name_clash
from keras_attention.core.registration import register_with_keras

if TYPE_CHECKING:
    from keras_attention import (
        attention,
        blocks,
        data,
        distribution,
        export,
        generation,
        layers,
        masks,
        models,
        normalizers,
        positions,
        pretrained,
        recurrent,
        scores,
        tasks,
        training,
        visualization,
        web,
    )
    from keras_attention.core.part import Part

__version__ = "0.1.0"

__all__ = [
    "Part",
    "attention",
    "blocks",
    "data",
    "distribution",
    "export",
    "generation",
    "layers",
    "masks",
    "models",
    "normalizers",
    "positions",
    "pretrained",
    "recurrent",
    "scores",
    "tasks",
    "training",
    "visualization",
    "web",
]


def __getattr__(name):
    if name == "Part":
        return import_module("keras_attention.core.part").Part
    if name in __all__:
        return import_module(f"keras_attention.{name}")
    raise AttributeError(f"module 'keras_attention' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})


warn_of_name_clash()
register_with_keras()
