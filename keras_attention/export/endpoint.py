"""Endpoints: models as functions from named tensors to named tensors, and as a SavedModel."""

import dataclasses
import re
from collections.abc import Callable

import keras
from keras import ops

from keras_attention.blocks.padding import find_padding
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.paths import unique_names
from keras_attention.export import backend
from keras_attention.export.checks.report import Tensor
from keras_attention.export.errors import ExportError, first_line
from keras_attention.generation.compiled import dtype_of

SCOPE = r"[A-Za-z0-9_.\\/>-]*"  # of the name of a layer in a graph
_SMALL = r"u?int(8|16)|bool"  # dtypes whose values int32 holds; wider integers stay as they are


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One function of an exported file.

    Attributes:
        name: str, the signature's name.
        inputs: tuple of `Tensor`; None in a shape is an axis of any size.
        lengths: dict, input name -> axes that `sequence_length` fixes, or would.
        outputs: names of the outputs.
        call: dict of tensors -> dict of tensors, in inference mode.
        cache: names of inputs and outputs that are entries of a decoder's cache.
        padding: dict, name of an input of ids -> its `Padding`; id 0 for inputs that are left out.
    """

    name: str
    inputs: tuple[Tensor, ...]
    lengths: dict[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    call: Callable
    cache: tuple[str, ...] = ()
    padding: dict = dataclasses.field(default_factory=dict)


def make_endpoint(model, batch_size=None, sequence_length=None):
    """Return the endpoint `serving_default` of a functional model.

    Args:
        batch_size: int fixes the first axis of every input; None leaves it as the model has it.
        sequence_length: int fixes every other free axis of every input; None leaves them free.
    """
    inputs, outputs = _name_inputs(model), _name_outputs(model)
    axes = {name: _fix_batch(name, t.shape, batch_size) for name, t in inputs.items()}
    lengths = {
        name: tuple(i for i, axis in enumerate(shape) if i and axis is None)
        for name, shape in axes.items()
    }
    if sequence_length is not None:
        _check_length(axes, sequence_length)
        axes = {
            name: (rows, *(sequence_length if axis is None else axis for axis in shape))
            for name, (rows, *shape) in axes.items()
        }
    specs = tuple(Tensor(name, axes[name], signature_dtype(t.dtype)) for name, t in inputs.items())

    def call(tensors):
        given = model(pack_inputs(model, tensors), training=False)
        return as_signature(dict(zip(outputs, keras.tree.flatten(given), strict=True)))

    padding = {
        name: find_padding(keras_internals.find_readers(tensor))
        for name, tensor in inputs.items()
        if "int" in dtype_of(tensor)
    }
    return Endpoint("serving_default", specs, lengths, tuple(outputs), call, padding=padding)


def pack_inputs(model, tensors):
    """`tensors`, by the names of the endpoint's inputs, as `model` takes them."""
    flat = [from_signature(tensors[name], t.dtype) for name, t in _name_inputs(model).items()]
    return keras.tree.pack_sequence_as(_get_structure(model), flat)


def from_signature(tensor, dtype):
    """Return a tensor of a signature as the model takes it: bool where that is its dtype."""
    return ops.cast(tensor, "bool") if dtype == "bool" else tensor


def as_signature(tensors):
    """A dict of tensors as a signature gives them: int32 where they are bool or small integers.

    Runtimes in browsers take neither; the others take int32 as well.
    """
    small = {n: x for n, x in tensors.items() if re.fullmatch(_SMALL, dtype_of(x))}
    return tensors | {name: ops.cast(x, "int32") for name, x in small.items()}


def signature_dtype(dtype):
    """Return the dtype that a signature has for `dtype`: int32 for all integers and bool.

    Phones and their delegates have no 64-bit integers, and browsers no bool.
    """
    return "int32" if re.fullmatch(r"u?int(8|16|32|64)|bool", dtype) else dtype


def list_input_names(model):
    """Return the names of the endpoint's inputs, in the model's order."""
    return list(_name_inputs(model))


def _get_structure(model):
    """The symbolic inputs of a model as it takes them: a tensor, a list or a dict of them."""
    if not keras_internals.is_functional(model):
        raise ValueError(
            f"{model!r} has no inputs to export: expected a functional keras.Model, made with "
            "keras.Model(inputs, outputs), or a Sequential model that has been built."
        )
    checks.check_gives_logits(model)
    return model.inputs[0] if isinstance(model, keras.Sequential) else model.input


def _name_inputs(model):
    """Return the model's inputs by their names in a signature."""
    structure = _get_structure(model)
    flat = keras.tree.flatten(structure)
    names = _list_keys(structure) or [tensor.name for tensor in flat]
    return dict(zip(unique_names(names), flat, strict=True))


def _name_outputs(model):
    """Return the names of the model's outputs in a signature."""
    structure = model.outputs if isinstance(model, keras.Sequential) else model.output
    flat = keras.tree.flatten(structure)
    names = _list_keys(structure) or [keras_internals.producer(tensor).name for tensor in flat]
    return unique_names(names)


def _list_keys(structure):
    """Return the keys of a dict of tensors in the order in which it flattens, or None."""
    if not isinstance(structure, dict):
        return None
    return [path[-1] for path, _ in keras.tree.flatten_with_path(structure)]


def _fix_batch(name, shape, batch_size):
    if batch_size is not None and shape[0] not in (None, batch_size):
        raise ValueError(
            f"batch_size={batch_size}, but the model's input {name!r} has a fixed batch of "
            f"{shape[0]}: build the model without it, or leave batch_size out."
        )
    return (shape[0] if batch_size is None else batch_size, *shape[1:])


def _check_length(axes, sequence_length):
    fixed = {axis for shape in axes.values() for axis in shape[1:]}
    if None not in fixed and sequence_length not in fixed:
        raise ValueError(
            f"sequence_length={sequence_length}, but no input has a free axis after the batch: "
            f"{', '.join(f'{name} {shape}' for name, shape in axes.items())}."
        )


def save_endpoints(model, endpoints, folder, mask_constant):
    """Traces `endpoints` of `model` and writes them as a SavedModel to `folder`.

    The module owns the raw variables (`v.value`). A module that holds the Keras model would write
    every variable twice; of one that holds nothing, the LiteRT converter silently drops them.

    Returns:
        int, how many numbers the variables hold.
    """
    tf = backend.import_tensorflow()
    _check_names(model, endpoints)
    module = tf.Module()
    with scope.Export(mask_constant):
        functions = {endpoint.name: _trace(endpoint) for endpoint in endpoints}
    owned = {id(weight.value): weight.value for weight in model.weights}
    for function in functions.values():  # state that is no weight, such as a seed in use
        owned |= {id(v): v for v in function.graph.variables}
    module.owned = list(owned.values())
    kind = tf.saved_model.experimental.TrackableResource  # such as those of a `TextVectorization`
    layers = keras_internals.all_layers(model)
    module.tables = [x for layer in layers for x in vars(layer).values() if isinstance(x, kind)]
    try:
        with backend.hide_stderr():
            tf.saved_model.save(module, str(folder), signatures=functions)
    except (tf.errors.OpError, OSError) as error:  # a full disk, among others
        raise ExportError(
            f"The SavedModel could not be written: {first_line(error)}. Nothing of it is left."
        ) from error
    return sum(int(v.shape.num_elements()) for v in module.owned)


def _check_names(model, endpoints):
    """Refuses names that TensorFlow's graphs do not take."""
    for endpoint in endpoints:
        if any(tensor.name == "self" for tensor in endpoint.inputs):
            raise ExportError(
                "TensorFlow takes no input that is called 'self': give it another name with name=."
            )
    for layer in keras_internals.all_layers(model):
        if not isinstance(layer, keras.layers.InputLayer) and not re.fullmatch(SCOPE, layer.name):
            raise ExportError(
                f"The layer {layer.name!r} cannot be exported: TensorFlow takes names of ASCII "
                "letters, digits and _ . > -. Give it another one with name=.",
                layer=layer.name,
            )


def _trace(endpoint):
    tf = backend.import_tensorflow()
    names = [tensor.name for tensor in endpoint.inputs]
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.name) for t in endpoint.inputs]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*tensors):
        outputs = endpoint.call(dict(zip(names, tensors, strict=True)))
        # An output that is an input, or that is returned twice, needs a node of its own.
        return {name: tf.identity(value, name=name) for name, value in outputs.items()}

    return serve.get_concrete_function()
