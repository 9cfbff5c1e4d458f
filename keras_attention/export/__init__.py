"""Export models to SavedModel (for servers) and LiteRT (for phones), and check each file.

    report = ka.export.to_saved_model(model, "out/saved_model")
    report = ka.export.to_litert(model, "out/model.tflite", quantization="int8_weights")

Every exported file is loaded in its runtime, and its outputs are compared with those of the model.
If they differ, the file is deleted and an `ExportError` is raised. TensorFlow and ai_edge_litert
are only imported when a function needs them.
"""

from typing import TYPE_CHECKING

from keras_attention.core.lazy import make_getattr

if TYPE_CHECKING:
    from keras_attention.device.litert_generator import LiteRTGenerator
    from keras_attention.export.checks.parity import verify
    from keras_attention.export.checks.report import (
        Drift,
        ExportReport,
        Parity,
        Runtime,
        Signature,
        Tensor,
    )
    from keras_attention.export.checks.runner import load
    from keras_attention.export.errors import ExportError
    from keras_attention.export.generation.settings import Generation
    from keras_attention.export.hearing import Hearing
    from keras_attention.export.inspection import Inspection, inspect
    from keras_attention.export.litert import to_litert
    from keras_attention.export.litert_lm import to_litert_lm
    from keras_attention.export.saved_model import to_saved_model

__all__ = [
    "Drift",
    "ExportError",
    "ExportReport",
    "Generation",
    "Hearing",
    "Inspection",
    "LiteRTGenerator",
    "Parity",
    "Runtime",
    "Signature",
    "Tensor",
    "inspect",
    "load",
    "to_litert",
    "to_litert_lm",
    "to_saved_model",
    "verify",
]

_MODULES = {
    "Drift": "checks.report",
    "ExportError": "errors",
    "ExportReport": "checks.report",
    "Generation": "generation.settings",
    "Hearing": "hearing",
    "Inspection": "inspection",
    "LiteRTGenerator": ".device.litert_generator",
    "Parity": "checks.report",
    "Runtime": "checks.report",
    "Signature": "checks.report",
    "Tensor": "checks.report",
    "inspect": "inspection",
    "load": "checks.runner",
    "to_litert": "litert",
    "to_litert_lm": "litert_lm",
    "to_saved_model": "saved_model",
    "verify": "checks.parity",
}

__getattr__ = make_getattr(__name__, _MODULES)


def __dir__():
    return sorted({*globals(), *__all__})
