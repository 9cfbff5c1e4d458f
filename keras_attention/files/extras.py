"""Imports of optional libraries, whose error names the extra that installs them."""

import importlib


def import_tensorflow(function):
    return _import("tensorflow", function, "TensorFlow", extra="keras")


def import_tfds(function):
    return _import("tensorflow_datasets", function, "TensorFlow Datasets")


def import_babel(function):
    """Import Babel together with `babel.dates`."""
    _import("babel.dates", function, "Babel")
    return importlib.import_module("babel")


def import_pillow(function):
    """Import Pillow's module `Image`."""
    return _import("PIL.Image", function, "Pillow")


def import_sentencepiece(function):
    return _import("sentencepiece", function, "SentencePiece", extra="nlp")


def import_sentencepiece_messages(function):
    """Import the messages that make up SentencePiece's models."""
    module = "sentencepiece.sentencepiece_model_pb2"
    return _import(module, function, "SentencePiece", extra="nlp")


def import_tokenizers(function):
    return _import("tokenizers", function, "tokenizers", "pretrained")


def import_soundfile(function):
    return _import("soundfile", function, "SoundFile", extra="speech")


def import_resampling(function):
    """Import `scipy.signal`."""
    return _import("scipy.signal", function, "SciPy", extra="speech")


def import_num2words(function):
    return _import("num2words", function, "num2words", extra="speech").num2words


def import_keras_hub(function):
    return _import("keras_hub", function, "KerasHub", extra="nlp")


def _import(module, function, name, extra="data"):
    return import_extra(module, f"ka.data.{function}", name, extra)


def import_extra(module, feature, name, extra):
    """Import a module of the library `name`, which `feature` needs and an extra installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{feature} needs {name} ({error}). "
            f"Install it with: pip install 'keras-attention-zoo[{extra}]'"
        ) from error
