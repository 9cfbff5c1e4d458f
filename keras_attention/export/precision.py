"""Convert models to float32 for export, and check for layers that cannot be exported."""

import math

import keras
import numpy as np

from keras_attention.core import keras_internals, sharing
from keras_attention.export.errors import ExportError

_REDUCED = ("mixed_bfloat16", "mixed_float16", "bfloat16", "float16")


def check_stateless(model):
    """Raise an ExportError if a layer of `model` keeps state between calls."""
    for layer in keras_internals.all_layers(model):
        if getattr(layer, "stateful", False):
            mend = getattr(layer, "without_state", "make the layer with stateful=False")
            raise ExportError(
                f"Layer {layer.name!r} ({type(layer).__name__}) keeps state between calls in its "
                f"own variables. An exported file cannot keep state. Fix: {mend}."
            )


_LOOKUPS = (
    keras.layers.TextVectorization,
    keras.layers.StringLookup,
    keras.layers.IntegerLookup,
    keras.layers.Hashing,
    keras.layers.HashedCrossing,
)


def check_no_lookups(model):
    """Raise an ExportError if a model has string inputs or lookup layers, such as `StringLookup`.

    LiteRT supports neither. The error explains how to split the model.
    """
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, _LOOKUPS):
            name = f"model.get_layer({layer.name!r})"
            part = f"keras.Model({name}.output, model.output)"
            if isinstance(layer, (keras.layers.StringLookup, keras.layers.IntegerLookup)):
                part = f"keras.Model(model.input, {name}.input)" if layer.invert else part
            raise ExportError(
                f"Layer {layer.name!r} ({type(layer).__name__}) looks up its inputs in a "
                "vocabulary. A LiteRT file contains no strings and no vocabulary. Split the model: "
                f"export {part}, and look up the inputs in the app. Or use to_saved_model.",
                layer=f"layer {layer.name!r} ({type(layer).__name__})",
            )
    for tensor in model.inputs if keras_internals.is_functional(model) else ():
        if keras.backend.standardize_dtype(tensor.dtype) == "string":
            raise ExportError(
                f"The input {tensor.name!r} takes strings. A LiteRT file only takes numbers. Split "
                "the model: export the part that starts at ids, keras.Model(ids, model.output), "
                "and compute the ids in the app. Or use to_saved_model."
            )


def list_reduced_policies(model):
    """Return a sorted list of the names of dtype policies in a model with less than float32.

    Quantized policies count, too.
    """
    policies = [layer.dtype_policy for layer in keras_internals.all_layers(model)]
    reduced = (p for p in policies if p.name in _REDUCED or p.quantization_mode is not None)
    return sorted({policy.name for policy in reduced})


def convert_to_float32(model):
    """Return `model` if it is in float32, or a float32 copy with the same weights.

    The copy is necessary because LiteRT has no bfloat16 kernels, and few runtimes compute in
    float16. (`quantization="float16"` stores float16 weights for any runtime.) Int8 kernels of
    `model.quantize` are converted to floats, because Keras also quantizes their inputs, which
    LiteRT cannot do in the same way. `quantization="int8_weights"` stores these kernels without
    additional error.
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
            f"The model computes in {policies} and could not be rebuilt in float32 ({error}). "
            "Build it under keras.config.set_dtype_policy('float32'), load the weights, and export "
            "that model."
        ) from error
    finally:
        keras.config.set_dtype_policy(global_policy)
    return copy


def _widen(config):
    """Replace every reduced dtype or dtype policy in a nested config by float32."""
    if isinstance(config, dict):
        if config.get("class_name") == "QuantizedDTypePolicy":
            return "float32"
        return {key: _widen(value) for key, value in config.items()}
    if isinstance(config, (list, tuple)):
        return type(config)(_widen(value) for value in config)
    return "float32" if isinstance(config, str) and config in _REDUCED else config


def _copy_weights(model, copy):
    """Assign the weights of `model` to `copy`, and convert quantized weights to floats."""
    pairs = zip(keras_internals.all_layers(model), keras_internals.all_layers(copy), strict=True)
    for layer, target in pairs:
        if layer.quantization_mode is not None:
            dequantize(layer, target)
            continue
        for weight, new in zip(_own_weights(layer), _own_weights(target), strict=True):
            new.assign(weight)


def _own_weights(layer):
    """Return the weights of a layer, without the weights of its inner layers."""
    inner = keras_internals.inner_layers(layer)
    inner = {id(weight) for each in inner for weight in each.weights}
    return [weight for weight in layer.weights if id(weight) not in inner]


def dequantize(projection, other):
    """Convert the weights of a quantized layer to floats, and assign them to a float32 layer.

    Args:
        projection: quantized `keras.layers.Dense`, `EinsumDense` or `Embedding`.
        other: float32 layer of the same class and shapes.
    """
    if isinstance(projection, keras.layers.Embedding):
        ids = np.arange(projection.input_dim, dtype="int32")
        _weight(other, "embeddings").assign(projection(ids))
        return
    if not isinstance(projection, (keras.layers.Dense, keras.layers.EinsumDense)):
        raise ValueError(f"{projection.name!r}, a quantized {type(projection).__name__}")
    kernel = _weight(other, "kernel")
    if projection.quantization_mode == "float8":  # the kernel is stored in floats
        kernel.assign(projection.kernel)
    else:
        kernel.assign(_kernel(projection, tuple(kernel.shape)))
    if other.bias is not None:
        other.bias.assign(projection.bias)


def _weight(layer, name):
    """Return the weight called `name`. (The attribute `layer.kernel` may include LoRA.)"""
    return next(weight for weight in layer.weights if weight.name == name)


def _kernel(projection, shape):
    """Return the kernel of a quantized layer as floats.

    The outputs of the layer for unit vectors are the kernel, because unit vectors are quantized
    without an error. `shape` is the shape of the kernel.
    """
    # The letters for the axes of inputs, kernel and outputs in the einsum equation.
    inputs, kernel, outputs = "bi", "io", "bo"
    if not isinstance(projection, keras.layers.Dense):
        before, outputs = projection.equation.split("->")
        inputs, kernel = before.split(",")
    sizes = dict(zip(kernel, shape, strict=True))
    summed = "".join(axis for axis in inputs if axis in sizes)
    made = "".join(axis for axis in outputs if axis in sizes)
    batch, *features = inputs
    if batch in sizes or set(summed) & set(made):
        raise ValueError(f"{projection.name!r} with the equation {projection.equation!r}")
    rows = math.prod(sizes[axis] for axis in summed)
    vectors = np.eye(rows, dtype="float32")
    vectors = vectors.reshape([rows, *(sizes.get(axis, 1) for axis in features)])
    values = keras.ops.convert_to_numpy(_bare(projection, vectors.shape)(vectors))
    values = np.einsum(f"{outputs}->{batch}{made}", values.astype("float32"))
    values = values.reshape([sizes[axis] for axis in summed + made])
    return np.einsum(f"{summed}{made}->{kernel}", values)


def _bare(projection, shape):
    """Return a copy of a layer that only multiplies by its kernel: no activation, and a bias of 0.

    `shape` is the shape of the inputs.
    """
    config = {**projection.get_config(), "activation": None}
    bare = type(projection).from_config(config)
    bare.build(shape)
    bare.set_weights(projection.get_weights())
    if bare.bias is not None:
        bare.bias.assign(np.zeros(bare.bias.shape, "float32"))
    return bare
