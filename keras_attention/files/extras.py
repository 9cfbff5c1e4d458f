"""Import optional libraries, with an ImportError that says how to install them.

The argument `function` is the name of the function of `ka.data` that needs the library, for the
error.
"""

import importlib


def import_tensorflow(function):
    return _import("tensorflow", function, "TensorFlow", extra="keras")


def import_tfds(function):
    return _import("tensorflow_datasets", function, "TensorFlow Datasets")


def import_babel(function):
    """Import Babel and `babel.dates`, for `function`, the name of a function of `ka.data`."""
    _import("babel.dates", function, "Babel")
    return importlib.import_module("babel")


def import_pillow(function):
    """Import Pillow's module `Image`, for `function`, the name of a function of `ka.data`."""
    return _import("PIL.Image", function, "Pillow")


def import_sentencepiece(function):
    return _import("sentencepiece", function, "SentencePiece", extra="nlp")


def import_sentencepiece_messages(function):
    """Import the protobuf messages of SentencePiece's files.

    `function` is the name of the function of `ka.data` that needs them, for the error.
    """
    module = "sentencepiece.sentencepiece_model_pb2"
    return _import(module, function, "SentencePiece", extra="nlp")


def import_tokenizers(function):
    return _import("tokenizers", function, "tokenizers", "pretrained")


def import_soundfile(function):
    return _import("soundfile", function, "SoundFile", extra="speech")


def import_resampling(function):
    """Import `scipy.signal`, for `function`, the name of a function of `ka.data`."""
    return _import("scipy.signal", function, "SciPy", extra="speech")


def import_num2words(function):
    return _import("num2words", function, "num2words", extra="speech").num2words


def import_keras_hub(function):
    return _import("keras_hub", function, "KerasHub", extra="nlp")


def _import(module, function, name, extra="data"):
    return import_extra(module, f"ka.data.{function}", name, extra)


def import_extra(module, feature, name, extra):
    """Import and return a module of an optional library.

    If the library is not installed, the ImportError says how to install it.

    Args:
        module: str, the module to import, such as `"PIL.Image"`.
        feature: str, the feature that needs it, such as `"ka.data.from_coco"`.
        name: str, the name of the library for readers, such as `"Pillow"`.
        extra: str, the name in the brackets of `pip install 'keras-attention-zoo[data]'`, such as
            `"data"`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{feature} needs {name} ({error}). "
            f"Install it with: pip install 'keras-attention-zoo[{extra}]'"
        ) from error
