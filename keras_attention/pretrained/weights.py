"""From the tensors of a file to the weights of a model, by a table of names: strictly."""

import dataclasses
import math
import re
from collections.abc import Callable

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.paths import paths_in
from keras_attention.pretrained.aligned import as_tensor, copy_aligned
from keras_attention.pretrained.checkpoint import CheckpointError


@dataclasses.dataclass(frozen=True)
class Fold:
    """A weight that is made of tensors, and not just turned.

    Attributes:
        names: tuple of str, tensors of the file.
        function: of their arrays -> an array, in the layout of the file.
        turn: bool, whether the usual rule turns it into the layout of the weight.
        invert: of a changed array, and the arrays as they were -> those that make the changed one.
    """

    names: tuple
    function: Callable
    turn: bool = True
    invert: Callable = staticmethod(lambda value, *before: [value])


def rows_from(name, first):
    """Return a table without its first rows, which are no places or tokens here."""
    return Fold(
        (name,),
        lambda table: table[first:],
        invert=lambda value, table: [np.concatenate([table[:first], value])],
    )


def part_of(name, index, parts, *, turn=True, axis=0):
    """One of `parts` equal parts of a tensor, as of fused projections."""

    def invert(value, whole):
        pieces = np.split(whole, parts, axis=axis)
        pieces[index] = value.reshape(pieces[index].shape)
        return [np.concatenate(pieces, axis=axis)]

    return Fold((name,), lambda x: np.split(x, parts, axis=axis)[index], turn, invert)


def as_is(name):
    """Return a kernel that the file has in our layout, (inputs, outputs)."""
    return Fold((name,), lambda x: x, turn=False)


def plus_one(name, factor=1.0):
    """A scale that the file has without its 1 (Gemma), times a factor that is applied elsewhere."""
    return Fold(
        (name,),
        lambda x: factor * (np.asarray(x, "float32") + 1),
        invert=lambda value, x: [value / factor - 1],
    )


def joined(names, factor=1.0, axis=1):
    """Tensors one after another, times a factor."""

    def invert(value, *parts):
        ends = np.cumsum([part.shape[axis] for part in parts])[:-1]
        return [part / factor for part in np.split(value, ends, axis=axis)]

    return Fold(
        tuple(names), lambda *parts: factor * np.concatenate(parts, axis=axis), invert=invert
    )


def mean_of(first, second):
    """Return the mean of two tensors."""

    def invert(value, a, b):
        change = value - (a + b) / 2
        return [a + change, b + change]

    return Fold((first, second), lambda a, b: (a + b) / 2, invert=invert)


def dense(ours, theirs, bias=True):
    """Return the entries of a linear layer."""
    found = {f"{ours}/kernel": f"{theirs}.weight"}
    return found | ({f"{ours}/bias": f"{theirs}.bias"} if bias else {})


def layer_norm(ours, theirs):
    """Return the entries of a layer normalization."""
    return {f"{ours}/gamma": f"{theirs}.weight", f"{ours}/beta": f"{theirs}.bias"}


def rms_norm(ours, theirs):
    """Return the entry of an RMS normalization."""
    return {f"{ours}/scale": f"{theirs}.weight"}


# The linear layers and norms of a block, in the order of `list_block`.
_BLOCK = {
    "attention/query": dense,
    "attention/key": dense,
    "attention/value": dense,
    "attention/attention_output": dense,
    "attention_norm": layer_norm,
    "feed_forward/intermediate": dense,
    "feed_forward/output": dense,
    "feed_forward_norm": layer_norm,
}


def list_block(ours, theirs, names):
    """Return the entries of an encoder block with biases.

    Args:
        names: eight str, what comes behind `theirs`: query, key, value and output of attention,
            its norm, both layers of the feed-forward network, and its norm.
    """
    found = {}
    for (our, kind), name in zip(_BLOCK.items(), names, strict=True):
        found |= kind(f"{ours}/{our}", f"{theirs}.{name}")
    return found


def fairseq_block(ours, theirs, crosses):
    """Return a block of an encoder, or one that `crosses` to it, as fairseq names its parts.

    So do BART and Marian, and Whisper, whose keys have no bias.
    """
    found = _fairseq_attention(f"{ours}/attention", f"{theirs}.self_attn")
    found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.self_attn_layer_norm")
    if crosses:
        found |= _fairseq_attention(f"{ours}/cross_attention", f"{theirs}.encoder_attn")
        norm = f"{theirs}.encoder_attn_layer_norm"
        found |= layer_norm(f"{ours}/cross_attention_norm", norm)
    found |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}.fc1")
    found |= dense(f"{ours}/feed_forward/output", f"{theirs}.fc2")
    found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.final_layer_norm")
    return found


def _fairseq_attention(ours, theirs):
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "attention_output": "out_proj"}
    found = {}
    for our, their in names.items():
        found |= dense(f"{ours}/{our}", f"{theirs}.{their}")
    return found


def find_base(base, tensors):
    """What the names of tensors below a head begin with: files without a head leave it out."""
    return base if any(name.startswith(base) for name in tensors) else ""


def name_weights(model):
    """{name: variable} of the weights that a file could hold; names do not change by session."""
    paths, found = paths_in(model), {}
    for layer in keras_internals.all_layers(model):
        if isinstance(layer, keras.Model):
            continue
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(layer).__name__).lower()
        # Keras gives a number to names that it makes of a class once more.
        path = re.sub(rf"(^|/){kind}_\d+$", rf"\1{kind}", paths[id(layer)])
        for variable in keras_internals.own_variables(layer):
            name = f"{path}/{variable.name}"
            if found.setdefault(name, variable) is not variable:
                raise ValueError(f"{model.name} has two weights called {name}.")
    return found


@dataclasses.dataclass(frozen=True)
class Match:
    """Which tensors of a file a model's weights are made of.

    Attributes:
        checkpoint: `Checkpoint`.
        weights: dict, name -> variable. folds: dict, name -> `Fold`; fresh weights have none.
        unused: list of str, tensors that the model has no use for.
    """

    checkpoint: object
    weights: dict
    folds: dict
    unused: list

    def fill(self):
        """Gives every weight that has a tensor its value: here the file is read."""
        for name, fold in self.folds.items():
            arrays = [self.checkpoint.tensors[source].read() for source in fold.names]
            variable = self.weights[name]
            value = copy_aligned(arrange(variable.shape, name, fold, arrays))
            keras_internals.give_value(variable, as_tensor(value.reshape(variable.shape)))


def match_weights(model, checkpoint, table, *, ignored=(), fresh=()):
    """Return the `Match` of a model and a checkpoint; nothing of a tensor is read.

    Args:
        model: functional `keras.Model` of `keras_internals.build_without_values`.
        checkpoint: `Checkpoint`.
        table: dict, name of a weight -> name of a tensor, or a `Fold`.
        ignored: patterns of tensors that a model has no use for.
        fresh: names that weights begin with which the file does not have.

    Raises:
        CheckpointError: a weight has no tensor, a tensor no weight, or a shape does not fit.
    """
    weights = name_weights(model)
    wanted = {name for name in weights if not name.startswith(tuple(fresh))}
    folds = {
        name: Fold((source,), lambda x: x) if isinstance(source, str) else source
        for name, source in table.items()
        if name in wanted
    }
    where = checkpoint.folder
    if missing := sorted(wanted - folds.keys()):
        raise CheckpointError(f"{where}: nothing is known of the weight {missing[0]} of the model.")
    used = {name for fold in folds.values() for name in fold.names}
    if missing := sorted(used - checkpoint.tensors.keys()):
        raise CheckpointError(
            f"{where} lacks the tensor {missing[0]}, which its config.json asks for."
        )
    unused = sorted(set(checkpoint.tensors) - used)
    unknown = [name for name in unused if not any(re.fullmatch(one, name) for one in ignored)]
    if unknown:
        raise CheckpointError(
            f"{where} has the tensor {unknown[0]}, for which the model has no place (and "
            f"{len(unknown) - 1} more): its architecture is another than config.json says."
        )
    for name, fold in folds.items():
        check_shape(weights[name], name, fold, checkpoint)
    return Match(checkpoint, weights, folds, unused)


def check_shape(variable, name, fold, checkpoint):
    """Refuses tensors that do not give the shape of a weight, before anything of them is read."""
    tensors = [checkpoint.tensors[source] for source in fold.names]
    for source, tensor in zip(fold.names, tensors, strict=True):
        if not tensor.dtype.startswith(("float", "bfloat")):
            raise CheckpointError(
                f"{checkpoint.folder}: {source} is {tensor.dtype}: quantized checkpoints are not "
                "loaded; take one in float32, float16 or bfloat16."
            )
    stand_ins = [np.broadcast_to(np.float32(0), tensor.shape) for tensor in tensors]
    try:
        arrange(variable.shape, name, fold, stand_ins)
    except (ValueError, IndexError) as error:
        shapes = ", ".join(
            f"{source} {tensor.shape}" for source, tensor in zip(fold.names, tensors, strict=True)
        )
        raise CheckpointError(
            f"{checkpoint.folder}: {shapes} does not make {name} {tuple(variable.shape)}, as "
            "config.json says it should."
        ) from error


def arrange(shape, name, fold, arrays):
    """The array of a weight, of which axes may be one; a ValueError where it has another shape."""
    array = fold.function(*arrays)
    array = turn(array, name, len(shape)) if fold.turn else array
    if math.prod(array.shape) != math.prod(shape):
        raise ValueError(f"{array.shape}")
    return array


def turn(array, name, axes):
    """Return an array in the layout of our weight: kernels have their outputs last."""
    if not name.endswith("/kernel"):
        return array
    if axes == 4 and array.ndim == 4:  # of a convolution: (outputs, inputs, height, width)
        return array.transpose(2, 3, 1, 0)
    if axes == 3 and array.ndim == 3:  # of one along time: (outputs, inputs, length)
        return array.T
    return array.T if array.ndim == 2 else array
