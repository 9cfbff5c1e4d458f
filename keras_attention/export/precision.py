"""Models as files can hold them: in float32, which every runtime computes in, and without state."""

import math

import keras
import numpy as np

from keras_attention.core import keras_internals, sharing
from keras_attention.export.errors import ExportError

_REDUCED = ("mixed_bfloat16", "mixed_float16", "bfloat16", "float16")


def check_stateless(model):
    """Raises ExportError for a model with a layer that keeps state of its own between calls."""
    for layer in keras_internals.all_layers(model):
        if getattr(layer, "stateful", False):
            mend = getattr(layer, "without_state", "make the layer with stateful=False")
            raise ExportError(
                f"Layer {layer.name!r} ({type(layer).__name__}) keeps what it saw for the next "
                f"call in variables of its own, and a file keeps nothing between calls: {mend}."
            )


_LOOKUPS = (
    keras.layers.TextVectorization,
    keras.layers.StringLookup,
    keras.layers.IntegerLookup,
    keras.layers.Hashing,
    keras.layers.HashedCrossing,
)


def check_no_lookups(model):
    """Raises ExportError for a model that reads strings or looks words up: LiteRT does neither."""
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, _LOOKUPS):
            place = f"model.get_layer({layer.name!r})"
            rest = f"keras.Model({place}.output, model.output)"
            if isinstance(layer, (keras.layers.StringLookup, keras.layers.IntegerLookup)):
                rest = f"keras.Model(model.input, {place}.input)" if layer.invert else rest
            raise ExportError(
                f"Layer {layer.name!r} ({type(layer).__name__}) looks its inputs up. A LiteRT file "
                "holds no strings and no vocabulary: both stay outside. Split the model: export "
                f"{rest}, and look the inputs up in the app. to_saved_model "
                "exports the whole model.",
                layer=f"layer {layer.name!r} ({type(layer).__name__})",
            )
    for tensor in model.inputs if keras_internals.is_functional(model) else ():
        if keras.backend.standardize_dtype(tensor.dtype) == "string":
            raise ExportError(
                f"The input {tensor.name!r} takes strings, and a LiteRT file takes numbers only. "
                "Split the model: export the part that starts at ids, keras.Model(ids, "
                "model.output), and make the ids in the app. to_saved_model exports the model as "
                "it is."
            )


def list_reduced_policies(model):
    """The dtype policies of `model`'s layers that compute in less than float32, or quantized."""
    policies = [layer.dtype_policy for layer in keras_internals.all_layers(model)]
    reduced = (p for p in policies if p.name in _REDUCED or p.quantization_mode is not None)
    return sorted({policy.name for policy in reduced})


def convert_to_float32(model):
    """`model` itself, or its copy in float32 with the same weights if a layer computes in less.

    bfloat16 has no kernels in LiteRT, and half precision in the graph ties a file to the runtimes
    that have it; `quantization="float16"` stores float16 weights for any runtime. Kernels that
    `model.quantize` made int8 become floats, too: Keras rounds every input of theirs, which LiteRT
    cannot; `quantization="int8_weights"` stores them as they are.
    """
    if not list_reduced_policies(model):
        return model
    global_policy = keras.config.dtype_policy()
    try:
        keras.config.set_dtype_policy("float32")
        copy = sharing.copy_model(model, change=_widen, copy_weights=_copy_weights)
    except Exception as error:
        policies = ", ".join(list_reduced_policies(model))
        raise ExportError(
            f"The model computes in {policies} and could not be rebuilt in float32 "
            f"({error}). Build it under keras.config.set_dtype_policy('float32'), load the "
            "weights, and export that."
        ) from error
    finally:
        keras.config.set_dtype_policy(global_policy)
    return copy


def _widen(config):
    """`config` with every reduced dtype or policy in it, at any depth, made float32."""
    if isinstance(config, dict):
        if config.get("class_name") == "QuantizedDTypePolicy":
            return "float32"
        return {key: _widen(value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return type(config)(_widen(value) for value in config)
    return "float32" if isinstance(config, str) and config in _REDUCED else config


def _copy_weights(model, copy):
    """Gives `copy` the weights of `model`, quantized ones as the floats that they stand for."""
    layers, others = keras_internals.all_layers(model), keras_internals.all_layers(copy)
    for layer, other in zip(layers, others, strict=True):
        if layer.quantization_mode is not None:
            dequantize(layer, other)
            continue
        for weight, theirs in zip(_own_weights(layer), _own_weights(other), strict=True):
            theirs.assign(weight)


def _own_weights(layer):
    """Return the weights of a layer that no layer inside it has."""
    inner = keras_internals.inner_layers(layer)
    inner = {id(weight) for each in inner for weight in each.weights}
    return [weight for weight in layer.weights if id(weight) not in inner]


def dequantize(projection, other):
    """Gives `other`, a float32 layer of the same shapes, the floats of a quantized layer.

    Args:
        projection, other: `keras.layers.Dense`, `EinsumDense` or `Embedding`.
    """
    if isinstance(projection, keras.layers.Embedding):
        ids = np.arange(projection.input_dim, dtype="int32")
        _weight(other, "embeddings").assign(projection(ids))
        return
    if not isinstance(projection, (keras.layers.Dense, keras.layers.EinsumDense)):
        raise ValueError(f"{projection.name!r}, a quantized {type(projection).__name__}")
    kernel = _weight(other, "kernel")
    if projection.quantization_mode == "float8":  # rounded while it computes, not before
        kernel.assign(projection.kernel)
    else:
        kernel.assign(_kernel(projection, tuple(kernel.shape)))
    if other.bias is not None:
        other.bias.assign(projection.bias)


def _weight(layer, name):
    """Return the weight itself; `layer.kernel` may be one that LoRA has been added to."""
    return next(weight for weight in layer.weights if weight.name == name)


def _kernel(projection, shape):
    """The kernel as floats, row by row: the outputs for unit vectors, which round exactly."""
    # The letters of the axes of inputs, kernel and outputs.
    inputs, kernel, outputs = "bi", "io", "bo"
    if not isinstance(projection, keras.layers.Dense):
        before, outputs = projection.equation.split("->")
        inputs, kernel = before.split(",")
    sizes = dict(zip(kernel, shape, strict=True))
    summed = "".join(axis for axis in inputs if axis in sizes)
    made = "".join(axis for axis in outputs if axis in sizes)
    batch, rest = inputs[0], inputs[1:]
    if batch in sizes or set(summed) & set(made):
        raise ValueError(f"{projection.name!r} with the equation {projection.equation!r}")
    rows = math.prod(sizes[axis] for axis in summed)
    vectors = np.eye(rows, dtype="float32")
    vectors = vectors.reshape([rows, *(sizes.get(axis, 1) for axis in rest)])
    found = keras.ops.convert_to_numpy(_bare(projection, vectors.shape)(vectors))
    found = np.einsum(f"{outputs}->{batch}{made}", found.astype("float32"))
    found = found.reshape([sizes[axis] for axis in summed + made])
    return np.einsum(f"{summed}{made}->{kernel}", found)


def _bare(projection, shape):
    """Return the layer again, without activation and bias."""
    config = {**projection.get_config(), "activation": None}
    bare = type(projection).from_config(config)
    bare.build(shape)
    bare.set_weights(projection.get_weights())
    if bare.bias is not None:
        bare.bias.assign(np.zeros(bare.bias.shape, "float32"))
    return bare
