"""Inputs to check an export on: given ones, or made up from what the model's layers accept."""

import keras
import numpy as np

from keras_attention.export import batches
from keras_attention.export.errors import ExportError

LENGTH = 12  # of made-up sequences; the second length checked is half of it


def base(model, endpoint, examples):
    """A list of batches to derive checks from, each a dict name -> array."""
    if examples is not None:
        return batches.read(examples, endpoint, "examples")
    generator = np.random.default_rng(0)
    limits = _limits(model, endpoint)
    return [{t.name: _draw(t, limits, generator) for t in endpoint.inputs} for _ in range(3)]


def _draw(tensor, limits, generator):
    shape = [3 if tensor.shape[0] is None else tensor.shape[0]]
    shape += [LENGTH if axis is None else axis for axis in tensor.shape[1:]]
    if tensor.dtype == "int32":
        return generator.integers(1, max(2, limits[tensor.name]), shape, dtype="int32")
    if tensor.dtype == "bool":
        return generator.random(shape) < 0.5
    if tensor.dtype == "string":
        raise ExportError(f"No text can be made up for the input {tensor.name!r}: pass examples=.")
    return generator.random(shape).astype(tensor.dtype)


def _limits(model, endpoint):
    """Per input, the size of the smallest embedding that reads it, else of the smallest of all.

    Ids drawn below it are valid for every embedding; without any embedding ids are 0 or 1.
    """
    everywhere = _smallest(model._flatten_layers())
    limits = {}
    for tensor, spec in zip(model.inputs, endpoint.inputs, strict=True):
        limits[spec.name] = _smallest(_readers(tensor)) or everywhere or 2
    return limits


def _readers(tensor):
    """The layers that take an input first, and the layers within them."""
    for node in tensor._keras_history.operation._outbound_nodes:
        if isinstance(node.operation, keras.layers.Layer):
            yield from node.operation._flatten_layers()


def _smallest(layers):
    sizes = [
        getattr(layer, "vocabulary_size", None) or getattr(layer, "input_dim", None)
        for layer in layers
    ]
    return min((size for size in sizes if isinstance(size, int)), default=None)
