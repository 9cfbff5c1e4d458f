"""Models in reduced precision are exported in float32, which every runtime computes in."""

import keras

from keras_attention import sharing
from keras_attention.export.errors import ExportError

_REDUCED = ("mixed_bfloat16", "mixed_float16", "bfloat16", "float16")


def reduced(model):
    """The dtype policies of `model`'s layers that compute in less than float32."""
    names = {layer.dtype_policy.name for layer in model._flatten_layers()}
    return sorted(names & set(_REDUCED))


def in_float32(model):
    """`model` itself, or its copy in float32 with the same weights if a layer computes in less.

    bfloat16 has no kernels in LiteRT, and half precision in the graph would also tie the file to
    runtimes that have it. To store float16 weights is another matter: `quantization="float16"`.
    """
    if not reduced(model):
        return model
    policy = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy("float32")
        copy = sharing.copy_of(model, change=_widen)
    except Exception as error:
        raise ExportError(
            f"The model computes in {', '.join(reduced(model))} and could not be rebuilt in "
            f"float32 ({error}). Build it under keras.config.set_dtype_policy('float32'), "
            "load the weights, and export that."
        ) from error
    finally:
        keras.config.set_dtype_policy(policy)
    return copy


def _widen(config):
    """`config` with every reduced dtype or policy in it, at any depth, made float32."""
    if isinstance(config, dict):
        return {key: _widen(value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return type(config)(_widen(value) for value in config)
    return "float32" if isinstance(config, str) and config in _REDUCED else config
