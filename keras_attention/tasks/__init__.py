"""Tasks: a model, its preprocessor and its files as one object; presets of trained ones.

A class is imported when it is first used (PEP 562).
"""

import importlib

_MODULES = {
    "CausalLM": "causal_lm",
    "ImageClassifier": "image_classifier",
    "MaskedLM": "masked_lm",
    "Seq2SeqLM": "seq2seq_lm",
    "SequenceLabeler": "sequence_labeler",
    "Task": "task",
    "TextClassifier": "text_classifier",
    "from_preset": "task",
    "list_presets": "presets",
}

__all__ = sorted(_MODULES)


def __getattr__(name):
    if name in _MODULES:
        return getattr(importlib.import_module(f"keras_attention.tasks.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keras_attention.tasks' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
