"""Functions that tell which tensors of a file fill which weights of a model.

A table is a dict {weight name: tensor name}. A key is the name of a weight in our model. A
value is the name of a tensor in the file, or a `Conversion` of one or more tensors. Entries for
weights that a model does not have are ignored, so a table may list biases, norms and heads that
only some models have.

In all functions, `ours` is the path of a layer in our model, and `theirs` is the prefix of its
tensors in the file. A function named after a layer returns the part of a table for this layer.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

ATTENTION = ("query", "key", "value", "attention_output")


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Converts tensors of a file to a weight, and the weight back to the tensors.

    Args:
        names: tuple of str, the tensors in the file.
        convert: function from the arrays of these tensors to one array, the weight.
        transpose: bool, whether `weights.transpose` then converts the array to our layout.
        invert: function from the changed weight and the original arrays to a list of new arrays,
            in the order of `names`.
    """

    names: tuple
    convert: Callable = staticmethod(lambda array: array)
    transpose: bool = True
    invert: Callable = staticmethod(lambda value, *before: [value])


def get_conversion(entry):
    """Return a `Conversion` unchanged. For a str, return a `Conversion` that loads this tensor.

    `entry` is a `Conversion` or the name of a tensor.
    """
    return entry if isinstance(entry, Conversion) else Conversion((entry,))


def rows_from(name, first):
    """Return a `Conversion` that loads the rows of the tensor `name` from row `first` on."""
    return Conversion(
        (name,),
        lambda table: table[first:],
        invert=lambda value, table: [np.concatenate([table[:first], value])],
    )


def part_of(name, index, parts, *, transpose=True, axis=0):
    """Return a `Conversion` that takes one of several equal parts of a tensor.

    An example is the query in a projection that also computes key and value. The tensor `name` is
    split along `axis` into `parts` equal parts, and the part number `index`, from 0, is taken.
    `transpose` is explained in `Conversion`.
    """

    def invert(value, whole):
        pieces = np.split(whole, parts, axis=axis)
        pieces[index] = value.reshape(pieces[index].shape)
        return [np.concatenate(pieces, axis=axis)]

    return Conversion((name,), lambda x: np.split(x, parts, axis=axis)[index], transpose, invert)


def untransposed(name):
    """Return a `Conversion` for a kernel that the file stores as Keras does, (inputs, outputs).

    `name` is the name of the tensor in the file.
    """
    return Conversion((name,), transpose=False)


def plus_one(name, factor=1.0):
    """Return a `Conversion` that loads the tensor `name`, x, as the weight `factor * (x + 1)`.

    Gemma stores the scale of an RMS normalization minus 1.
    """
    return Conversion(
        (name,),
        lambda x: factor * (np.asarray(x, "float32") + 1),
        invert=lambda value, x: [value / factor - 1],
    )


def joined(names, factor=1.0, axis=1):
    """Return a `Conversion` that loads tensors, concatenated and times `factor`, as one weight.

    `names` are the names of the tensors in the file, and `axis` is the axis of concatenation.
    """

    def invert(value, *parts):
        ends = np.cumsum([part.shape[axis] for part in parts])[:-1]
        return [part / factor for part in np.split(value, ends, axis=axis)]

    return Conversion(
        tuple(names), lambda *parts: factor * np.concatenate(parts, axis=axis), invert=invert
    )


def mean_of(first, second):
    """Return a `Conversion` that loads the mean of the tensors called `first` and `second`."""

    def invert(value, a, b):
        change = value - (a + b) / 2
        return [a + change, b + change]

    return Conversion((first, second), lambda a, b: (a + b) / 2, invert=invert)


def dense(ours, theirs):
    """Return {weight name: tensor name} for a dense layer or a convolution.

    `ours` is the path of the layer in our model, `theirs` the prefix of its tensors in the file.
    """
    return {f"{ours}/kernel": f"{theirs}.weight", f"{ours}/bias": f"{theirs}.bias"}


def split_dense(ours, theirs, layers, *, transpose=True):
    """Return {weight name: part of a tensor} for dense layers that a file stores as one.

    Args:
        ours: str, path of the layer that contains the dense layers in our model.
        theirs: str, prefix of the stored names, before `weight` and `bias`.
        layers: names of our layers inside `ours`, in the order of the fused kernel.
        transpose: bool, whether the stored kernel is (outputs, inputs).
    """
    entries, count, axis = {}, len(layers), 0 if transpose else 1
    for k, name in enumerate(layers):
        kernel = part_of(f"{theirs}weight", k, count, transpose=transpose, axis=axis)
        entries[f"{ours}/{name}/kernel"] = kernel
        entries[f"{ours}/{name}/bias"] = part_of(f"{theirs}bias", k, count)
    return entries


def layer_norm(ours, theirs):
    """Return {weight name: tensor name} for a layer normalization.

    `ours` is the path of the layer in our model, `theirs` the prefix of its tensors in the file.
    """
    return {f"{ours}/gamma": f"{theirs}.weight", f"{ours}/beta": f"{theirs}.bias"}


def rms_norm(ours, theirs):
    """Return {weight name: tensor name} for an RMS normalization.

    `ours` is the path of the layer in our model, `theirs` the prefix of its tensors in the file.
    """
    return {f"{ours}/scale": f"{theirs}.weight"}


def attention(ours, theirs, names):
    """Return {weight name: tensor name} for an attention layer.

    `ours` is the path of the layer in our model, `theirs` the prefix of its tensors in the file.
    `names` are the names of the query, key, value and output projections in the file.
    """
    entries = {}
    for layer, name in zip(ATTENTION, names, strict=True):
        entries |= dense(f"{ours}/{layer}", f"{theirs}.{name}")
    return entries


def feed_forward(ours, theirs, names):
    """Return {weight name: tensor name} for a feed-forward network.

    `ours` is the path of the network in our model, `theirs` the prefix of its tensors in the file.
    `names` are the names in the file of the gate, if there is one, the first and the last layer.
    """
    entries = {}
    for layer, name in zip(("gate", "intermediate", "output")[-len(names) :], names, strict=True):
        entries |= dense(f"{ours}/{layer}", f"{theirs}.{name}")
    return entries


def encoder_block(ours, theirs, names):
    """Return {weight name: tensor name} for an encoder block.

    Args:
        ours, theirs: str, the path of the block in our model and in the file.
        names: eight names of layers in the file, relative to `theirs`: query, key, value and output
            of attention, its norm, both layers of the feed-forward network, and its norm.
    """
    return (
        attention(f"{ours}/attention", theirs, names[:4])
        | layer_norm(f"{ours}/attention_norm", f"{theirs}.{names[4]}")
        | feed_forward(f"{ours}/feed_forward", theirs, names[5:7])
        | layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.{names[7]}")
    )


def find_base(base, tensors):
    """Return `base` if names of `tensors` begin with `base`, else an empty string.

    `base` is the name of the model. Files without a head often omit this prefix.
    """
    return base if any(name.startswith(base) for name in tensors) else ""
