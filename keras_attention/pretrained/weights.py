"""Functions that match the tensors of a checkpoint with the weights of a model, and load them."""

import dataclasses
import math
import re

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.paths import paths_in
from keras_attention.pretrained.aligned import as_tensor, copy_aligned
from keras_attention.pretrained.checkpoint import Checkpoint, CheckpointError
from keras_attention.pretrained.table_entries import get_conversion


def name_weights(model):
    """Return {name: variable} for all weights of a model.

    The names do not depend on how many layers were created before. Keras's names do.
    """
    paths, variables = paths_in(model), {}
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, keras.Model):
            continue
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(layer).__name__).lower()
        # Remove the number that Keras appends to a default name.
        path = re.sub(rf"(^|/){kind}_\d+$", rf"\1{kind}", paths[id(layer)])
        for variable in keras_internals.own_variables(layer):
            name = f"{path}/{variable.name}"
            if variables.setdefault(name, variable) is not variable:
                raise ValueError(f"{model.name} has two weights called {name}.")
    return variables


@dataclasses.dataclass(frozen=True)
class Match:
    """The weights of a model, and the tensors of a checkpoint that `fill` loads into them.

    Attributes:
        checkpoint: `Checkpoint`.
        weights: dict {name: variable}.
        conversions: dict {name: `Conversion`}, for all weights but the weights of a new head.
        unused: list of str, the names of tensors that are not loaded.
    """

    checkpoint: Checkpoint
    weights: dict
    conversions: dict
    unused: list

    def fill(self):
        """Read the tensors from the checkpoint, and assign them to the weights of the model."""
        for name, conversion in self.conversions.items():
            arrays = [self.checkpoint.tensors[source].read() for source in conversion.names]
            variable = self.weights[name]
            value = copy_aligned(compute_weight(variable.shape, name, conversion, arrays))
            keras_internals.give_value(variable, as_tensor(value.reshape(variable.shape)))


def match_weights(model, checkpoint, table, *, ignored=(), fresh=()):
    """Return the `Match` of a model and a checkpoint, without reading any tensor.

    Args:
        model: functional `keras.Model`, built without values for its weights by
            `keras_internals.build_without_values`.
        checkpoint: `Checkpoint`.
        table: dict from the name of a weight to the name of a tensor or a `Conversion`, as
            `table_entries` explains.
        ignored: regular expressions for tensors that need not be loaded.
        fresh: prefixes of the names of weights that the checkpoint does not have.

    Raises:
        CheckpointError: a weight lacks its tensor, a tensor lacks its weight, or shapes differ.
    """
    weights, folder = name_weights(model), checkpoint.folder
    stored = {name for name in weights if not name.startswith(tuple(fresh))}
    conversions = {name: get_conversion(table[name]) for name in table if name in stored}
    if missing := sorted(stored - conversions.keys()):
        raise CheckpointError(f"{folder}: the model's weight {missing[0]} has no tensor to load.")
    used = {name for conversion in conversions.values() for name in conversion.names}
    if missing := sorted(used - checkpoint.tensors.keys()):
        raise CheckpointError(f"{folder} lacks the tensor {missing[0]}, which config.json implies.")
    unused = sorted(set(checkpoint.tensors) - used)
    unknown = [name for name in unused if not any(re.fullmatch(one, name) for one in ignored)]
    if unknown:
        raise CheckpointError(
            f"{folder} has the tensor {unknown[0]}, for which the model has no weight (and "
            f"{len(unknown) - 1} more). Its architecture differs from config.json."
        )
    for name, conversion in conversions.items():
        _check_shape(weights[name], name, conversion, checkpoint)
    return Match(checkpoint, weights, conversions, unused)


def _check_shape(variable, name, conversion, checkpoint):
    """Raise a CheckpointError if tensors do not fit a variable in dtype or shape.

    `name` is the name of the variable, and `checkpoint` the `Checkpoint` with the tensors. The
    `conversion` is tried on zeros, so that the tensors need not be read.
    """
    tensors = {source: checkpoint.tensors[source] for source in conversion.names}
    for source, tensor in tensors.items():
        if not tensor.dtype.startswith(("float", "bfloat")):
            raise CheckpointError(
                f"{checkpoint.folder}: {source} is {tensor.dtype}. Quantized checkpoints cannot be "
                "loaded: expected float32, float16 or bfloat16."
            )
    stand_ins = [np.broadcast_to(np.float32(0), tensor.shape) for tensor in tensors.values()]
    try:
        compute_weight(variable.shape, name, conversion, stand_ins)
    except (ValueError, IndexError) as error:
        shapes = ", ".join(f"{source} {tensor.shape}" for source, tensor in tensors.items())
        raise CheckpointError(
            f"{checkpoint.folder}: {shapes} does not make {name} {tuple(variable.shape)}, the "
            "shape that config.json implies."
        ) from error


def compute_weight(shape, name, conversion, arrays):
    """Return the value of a weight, computed from the arrays of its tensors.

    `shape` and `name` are the shape and the name of the weight. `conversion` is a `Conversion`,
    which is applied to `arrays`, its tensors from the file. The result has as many elements as
    `shape`, or else a ValueError is raised. The shape of the result may still differ.
    """
    array = conversion.convert(*arrays)
    array = transpose(array, name, len(shape)) if conversion.transpose else array
    if math.prod(array.shape) != math.prod(shape):
        raise ValueError(f"{array.shape}")
    return array


def transpose(array, name, axes):
    """Return an array of the file in the layout of Keras, with the outputs of a kernel last.

    `name` is the name of the weight, and `axes` is its rank. Only kernels are transposed.
    """
    if not name.endswith("/kernel"):
        return array
    if axes == 4 and array.ndim == 4:  # 2D convolution: (outputs, inputs, height, width)
        return array.transpose(2, 3, 1, 0)
    if axes == 3 and array.ndim == 3:  # 1D convolution: (outputs, inputs, length)
        return array.T
    return array.T if array.ndim == 2 else array
