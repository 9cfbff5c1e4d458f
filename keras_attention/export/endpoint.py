"""`Endpoint`: a model as a function of named tensors, which is saved in a SavedModel."""

import dataclasses
import re
from collections.abc import Callable

import keras
from keras import ops

from keras_attention.blocks.token_embedding import find_padding
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.paths import unique_names
from keras_attention.export import backend
from keras_attention.export.checks.report import Tensor
from keras_attention.export.errors import ExportError, first_line
from keras_attention.generation.compiled import dtype_of

SCOPE = r"[A-Za-z0-9_.\\/>-]*"  # valid layer names in a TensorFlow graph
_SMALL = r"u?int(8|16)|bool"  # dtypes whose values fit into int32


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """A function of named tensors that becomes a signature (a callable function) of a file.

    Attributes:
        name: str, the name of the signature.
        inputs: tuple of `Tensor`. None in a shape is a dynamic axis.
        lengths: dict from the name of an input to its axes whose size `sequence_length` fixes.
        outputs: tuple of str, the names of the outputs.
        call: function from a dict of tensors to a dict of tensors, which runs in inference mode.
        cache: tuple of str, the names of inputs and outputs that belong to the key-value cache.
        padding: dict from the name of an input of ids to its `Padding`. Inputs that are missing
            here are padded with id 0.
    """

    name: str
    inputs: tuple[Tensor, ...]
    lengths: dict[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    call: Callable
    cache: tuple[str, ...] = ()
    padding: dict = dataclasses.field(default_factory=dict)


def make_endpoint(model, batch_size=None, sequence_length=None):
    """Return an `Endpoint` called `serving_default`, which runs a whole functional model.

    Args:
        model: functional `keras.Model`.
        batch_size: int, a fixed size for the first axis of every input. None does not change it.
        sequence_length: int, a fixed size for all other dynamic axes. None keeps all of these axes
            dynamic.
    """
    inputs, outputs = name_inputs(model), _name_outputs(model)
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
        results = model(pack_inputs(model, tensors), training=False)
        return as_signature(dict(zip(outputs, keras.tree.flatten(results), strict=True)))

    padding = {
        name: find_padding(keras_internals.find_readers(tensor))
        for name, tensor in inputs.items()
        if "int" in dtype_of(tensor)
    }
    return Endpoint("serving_default", specs, lengths, tuple(outputs), call, padding=padding)


def pack_inputs(model, tensors):
    """Convert `tensors`, a dict {name of an input: tensor}, to the argument of `model(...)`.

    The result has the structure of `model.input`: a tensor, or a list or dict of tensors. Inputs
    that are bool in the model are cast from int32.
    """
    flat = [from_signature(tensors[name], t.dtype) for name, t in name_inputs(model).items()]
    return keras.tree.pack_sequence_as(_get_structure(model), flat)


def from_signature(tensor, dtype):
    """Return `tensor`, an input of a signature, cast to bool if the model expects bool.

    `dtype` is the dtype of this input in the model.
    """
    return ops.cast(tensor, "bool") if dtype == "bool" else tensor


def as_signature(tensors):
    """Return a dict of tensors, with bool and integers of 8 or 16 bits cast to int32.

    Browsers support neither bool nor small integers, but all runtimes support int32.
    """
    small = {n: x for n, x in tensors.items() if re.fullmatch(_SMALL, dtype_of(x))}
    return tensors | {name: ops.cast(x, "int32") for name, x in small.items()}


def signature_dtype(dtype):
    """Return the dtype that a signature uses for `dtype`: int32 for all integers and bool.

    Other dtypes do not change. Phones and delegates do not support 64-bit integers, and browsers do
    not support bool.
    """
    return "int32" if re.fullmatch(r"u?int(8|16|32|64)|bool", dtype) else dtype


def list_input_names(model):
    """Return the names that the inputs of a model have in a signature, in the model's order."""
    return list(name_inputs(model))


def _get_structure(model):
    """Return the symbolic inputs of a model: a tensor, or a list or dict of tensors."""
    if not keras_internals.is_functional(model):
        raise ValueError(
            f"{model!r} has no inputs to export. Expected a functional keras.Model, made with "
            "keras.Model(inputs, outputs), or a Sequential model. Build it before the export."
        )
    checks.check_gives_logits(model)
    return model.inputs[0] if isinstance(model, keras.Sequential) else model.input


def name_inputs(model):
    """Return a dict from the name of each input in a signature to its symbolic tensor."""
    structure = _get_structure(model)
    flat = keras.tree.flatten(structure)
    names = _list_keys(structure) or [tensor.name for tensor in flat]
    return dict(zip(unique_names(names), flat, strict=True))


def _name_outputs(model):
    """Return a list of the names that the outputs of a model have in a signature."""
    structure = model.outputs if isinstance(model, keras.Sequential) else model.output
    flat = keras.tree.flatten(structure)
    names = _list_keys(structure) or [keras_internals.producer(tensor).name for tensor in flat]
    return unique_names(names)


def _list_keys(structure):
    """Return the keys of a dict of tensors in the order of `keras.tree.flatten`.

    Return None if `structure` is not a dict.
    """
    if not isinstance(structure, dict):
        return None
    return [path[-1] for path, _ in keras.tree.flatten_with_path(structure)]


def _fix_batch(name, shape, batch_size):
    if batch_size is not None and shape[0] not in (None, batch_size):
        raise ValueError(
            f"batch_size={batch_size}, but the model's input {name!r} has a fixed batch of "
            f"{shape[0]}. Build the model without it, or leave batch_size out."
        )
    return (shape[0] if batch_size is None else batch_size, *shape[1:])


def _check_length(axes, sequence_length):
    fixed = {axis for shape in axes.values() for axis in shape[1:]}
    if None not in fixed and sequence_length not in fixed:
        raise ValueError(
            f"sequence_length={sequence_length}, but no input has a free axis after the batch: "
            f"{', '.join(f'{name} {shape}' for name, shape in axes.items())}. Leave it out."
        )


def save_endpoints(model, endpoints, folder, mask_constant):
    """Trace the endpoints of a model, and write the functions to a folder as a SavedModel.

    The saved module refers to the raw TensorFlow variables (`v.value`). A reference to the Keras
    model would write every variable twice. Without any reference, the LiteRT converter would
    silently drop the variables.

    Args:
        model: `keras.Model`, whose weights are saved.
        endpoints: list of `Endpoint`, the functions to save.
        folder: path of the folder.
        mask_constant: float, the value that masks add to attention scores.

    Returns:
        int, the total number of values in the variables.
    """
    tf = backend.import_tensorflow()
    _check_names(model, endpoints)
    module = tf.Module()
    with scope.Export(mask_constant):
        functions = {endpoint.name: _trace(endpoint) for endpoint in endpoints}
    owned = {id(weight.value): weight.value for weight in model.weights}
    for function in functions.values():  # includes variables that are not weights, such as seeds
        owned |= {id(v): v for v in function.graph.variables}
    module.owned = list(owned.values())
    kind = tf.saved_model.experimental.TrackableResource  # such as the table of `TextVectorization`
    layers = keras_internals.all_layers(model)
    module.tables = [x for layer in layers for x in vars(layer).values() if isinstance(x, kind)]
    try:
        with backend.hide_stderr():
            tf.saved_model.save(module, str(folder), signatures=functions)
    except (tf.errors.OpError, OSError) as error:  # for example, the disk is full
        raise ExportError(
            f"The SavedModel could not be written: {first_line(error)} Its parts were removed."
        ) from error
    return sum(int(v.shape.num_elements()) for v in module.owned)


def _check_names(model, endpoints):
    """Raise an ExportError if the name of an input or a layer is not allowed in TensorFlow."""
    for endpoint in endpoints:
        if any(tensor.name == "self" for tensor in endpoint.inputs):
            raise ExportError(
                "TensorFlow does not allow an input called 'self'. Rename it with name=."
            )
    for layer in keras_internals.all_layers(model):
        if not isinstance(layer, keras.layers.InputLayer) and not re.fullmatch(SCOPE, layer.name):
            raise ExportError(
                f"The layer {layer.name!r} cannot be exported. TensorFlow allows ASCII letters, "
                "digits and _ . > - in names. Rename it with name=.",
                layer=layer.name,
            )


def _trace(endpoint):
    tf = backend.import_tensorflow()
    names = [tensor.name for tensor in endpoint.inputs]
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.name) for t in endpoint.inputs]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*tensors):
        outputs = endpoint.call(dict(zip(names, tensors, strict=True)))
        # An output that is an input, or is returned twice, needs its own node.
        return {name: tf.identity(value, name=name) for name, value in outputs.items()}

    return serve.get_concrete_function()
