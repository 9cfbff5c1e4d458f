"""A model seen from outside: a function from named arrays to named arrays, with its shapes."""

import collections
import dataclasses
import re
from collections.abc import Callable

import keras

from keras_attention.export.report import Tensor


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One function of an exported file.

    Attributes:
        name: str, the signature's name.
        inputs: what it takes; None in a shape is an axis of any size.
        lengths: dict, input name -> axes that `sequence_length` fixes, or would.
        outputs: names of what it returns.
        call: dict of tensors -> dict of tensors, in inference mode.
        cache: names of inputs and outputs that are what a decoder keeps between its calls.
    """

    name: str
    inputs: tuple[Tensor, ...]
    lengths: dict[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    call: Callable
    cache: tuple[str, ...] = ()


def of(model, batch_size=None, sequence_length=None):
    """The endpoint `serving_default` of a functional model.

    Args:
        batch_size: int fixes the first axis of every input; None leaves it as the model has it.
        sequence_length: int fixes every other free axis of every input; None leaves them free.
    """
    inputs, outputs = _inputs(model), _outputs(model)
    axes = {name: _shape(name, t.shape, batch_size) for name, t in inputs.items()}
    lengths = {
        name: tuple(i for i, axis in enumerate(shape) if i and axis is None)
        for name, shape in axes.items()
    }
    if sequence_length is not None:
        _check_length(axes, sequence_length)
        axes = {name: _fix(shape, sequence_length) for name, shape in axes.items()}
    specs = tuple(Tensor(name, axes[name], _dtype(t.dtype)) for name, t in inputs.items())

    def call(tensors):
        given = model(pack(model, tensors), training=False)
        return dict(zip(outputs, keras.tree.flatten(given), strict=True))

    return Endpoint("serving_default", specs, lengths, tuple(outputs), call)


def pack(model, tensors):
    """`tensors`, by the names of the endpoint's inputs, as `model` takes them."""
    flat = [tensors[name] for name in _inputs(model)]
    return keras.tree.pack_sequence_as(_structure(model), flat)


def names(model):
    """The names of the endpoint's inputs, in the model's order."""
    return list(_inputs(model))


def _structure(model):
    """What the model was called with when it was built: a tensor, a list or a dict of them."""
    if not isinstance(model, keras.Model) or not getattr(model, "inputs", None):
        raise ValueError(
            f"{model!r} has no inputs to export: expected a functional keras.Model, made with "
            "keras.Model(inputs, outputs), or a Sequential model that has been built."
        )
    return model.inputs[0] if isinstance(model, keras.Sequential) else model.input


def _inputs(model):
    structure = _structure(model)
    flat = keras.tree.flatten(structure)
    names = _keys(structure) or [tensor.name for tensor in flat]
    return dict(zip(_unique(names), flat, strict=True))


def _outputs(model):
    structure = model.outputs if isinstance(model, keras.Sequential) else model.output
    flat = keras.tree.flatten(structure)
    names = _keys(structure) or [tensor._keras_history.operation.name for tensor in flat]
    return _unique(names)


def _keys(structure):
    """The keys of a dict of tensors in the order in which it flattens, or None."""
    if not isinstance(structure, dict):
        return None
    return [path[-1] for path, _ in keras.tree.flatten_with_path(structure)]


def _unique(names):
    """Names that a signature accepts (letters, digits, underscores), numbered when repeated."""
    seen, unique = collections.Counter(), []
    for name in names:
        name = re.sub(r"\W", "_", str(name))
        unique.append(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return unique


def _shape(name, shape, batch_size):
    if batch_size is not None and shape[0] not in (None, batch_size):
        raise ValueError(
            f"batch_size={batch_size}, but the model's input {name!r} has a fixed batch of "
            f"{shape[0]}: build the model without it, or leave batch_size out."
        )
    return (shape[0] if batch_size is None else batch_size, *shape[1:])


def _fix(shape, sequence_length):
    return (shape[0], *(sequence_length if axis is None else axis for axis in shape[1:]))


def _check_length(axes, sequence_length):
    fixed = {axis for shape in axes.values() for axis in shape[1:]}
    if None not in fixed and sequence_length not in fixed:
        raise ValueError(
            f"sequence_length={sequence_length}, but no input has a free axis after the batch: "
            f"{', '.join(f'{name} {shape}' for name, shape in axes.items())}."
        )


def _dtype(dtype):
    """int32 for all integers: phones and their delegates have no use for 64 bits."""
    return "int32" if re.fullmatch(r"u?int(8|16|32|64)", dtype) else dtype
