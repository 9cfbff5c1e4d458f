"""Every private name of Keras that this package uses, each behind a function.

Nothing else imports `keras.src` or reads a private attribute of a Keras object. If a release of
Keras moves one of these names, only this file changes.
"""

import keras
from keras.src import backend
from keras.src.backend.common import global_state
from keras.src.backend.common.name_scope import current_path
from keras.src.backend.common.variables import AutocastScope
from keras.src.layers.convolutional.base_conv import BaseConv
from keras.src.layers.preprocessing.data_layer import DataLayer
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell
from keras.src.losses.loss import reduce_weighted_values
from keras.src.models.functional import Functional
from keras.src.ops.numpy import NotEqual, Pad
from keras.src.saving import saving_lib, serialization_lib

from keras_attention.core.token_layout import BatchLayout, get_batch_layout

# The operations in the graphs of our builders. HDF5 files name them without their module, and Keras
# looks such names up among its layers and registered classes only.
for _operation in (NotEqual, Pad):
    keras.saving.get_custom_objects().setdefault(_operation.__name__, _operation)


LOW_RANK = (keras.layers.Dense, keras.layers.EinsumDense, keras.layers.Embedding, BaseConv)


def get_mask(tensor):
    """Return the implicit padding mask of a tensor, bool (B, T), or None.

    Keras passes masks between layers this way. Code outside of a layer has no public access to it.
    """
    return backend.get_keras_mask(tensor)


def set_mask(tensor, mask):
    """Give a tensor an implicit mask. For the values of a loss it says which count in the mean."""
    backend.set_keras_mask(tensor, mask)


def sum_losses(losses, sample_weight, mask):
    """Sum losses by Keras's rules for weights and a mask.

    On PyTorch Keras multiplies the weights by the mask in place, so it gets a copy.
    """
    if sample_weight is not None:
        sample_weight = keras.ops.copy(sample_weight)
    return reduce_weighted_values(losses, sample_weight, mask, "sum", losses.dtype)


def all_layers(layer):
    """Return the layer and every layer inside it, at any depth, as a list.

    `Model.layers` is public, but leaves out what is inside those layers.
    """
    return layer._flatten_layers()


def inner_layers(layer):
    """Return every layer inside `layer`, at any depth, as a list."""
    return layer._flatten_layers(include_self=False)


def direct_layers(layer):
    """Return the layers that `layer` itself holds, as a list."""
    return layer._flatten_layers(include_self=False, recursive=False)


def own_variables(layer):
    """Return the variables that a layer made itself."""
    return [*layer._trainable_variables, *layer._non_trainable_variables]


def trained_variables(layer):
    """Return the variables that a layer itself made to be trained, frozen or not."""
    return list(layer._trainable_variables)


def read_values(variables):
    """Return the stored values of variables, also inside layers of mixed precision.

    Within a layer Keras casts what is read of a variable to the layer's compute dtype.
    """
    with AutocastScope(None):
        return [variable.value for variable in variables]


def variable_index(optimizer, variable):
    """Return the place of a variable, or of its backend's own, in an optimizer."""
    return optimizer._get_variable_index(variable)


def adam_variables(optimizer, variable):
    """Return (TensorFlow's variable, its first and its second moment) of a Keras Adam."""
    index = variable_index(optimizer, variable)
    groups = (optimizer._trainable_variables, optimizer._momentums, optimizer._velocities)
    return tuple(each[index].value for each in groups)


def decays(optimizer, variable):
    """Return whether a Keras optimizer's weight decay applies to this variable."""
    return optimizer._use_weight_decay(variable)


def forget_compilation(model):
    """Make a model as if it had not been compiled, so that it is saved without its optimizer.

    The optimizer has variables for the weights that were trained, and a file is refused if a new
    optimizer would have others.
    """
    model.optimizer, model.compiled = None, False


def has_low_rank(layer):
    """Return whether the kernel of a layer has LoRA matrices beside it."""
    return isinstance(layer, LOW_RANK) and layer.lora_enabled


def merge_low_rank(layer):
    """Add the LoRA matrices of a dense layer to its kernel, and remove them.

    Keras merges them when it saves or quantizes a layer, but not in one that goes on. The second
    matrix becomes 0: a function compiled before, such as that of `predict`, adds the product of
    both to the kernel again.
    """
    kernel = layer.kernel
    for variable in (layer.lora_kernel_a, layer.lora_kernel_b):
        layer._untrack_variable(variable)
    layer.lora_enabled, layer.lora_rank, layer.lora_alpha = False, None, None
    layer._kernel.assign(kernel)
    layer.lora_kernel_b.assign(keras.ops.zeros_like(layer.lora_kernel_b))
    layer._kernel.trainable = True


def is_functional(model):
    """Return whether a model has symbolic inputs and outputs: functional, or built sequential."""
    built = isinstance(model, keras.Sequential) and model._functional is not None
    return built or isinstance(model, Functional)


def producer(tensor):
    """Return the operation, such as a layer, whose output a symbolic tensor is."""
    return tensor._keras_history.operation


def inputs_of(tensor):
    """Return the symbolic inputs of the call whose output a symbolic tensor is, as a list.

    `Layer.input` is public, but raises if the layer was called more than once.
    """
    return producer(tensor)._inbound_nodes[tensor._keras_history.node_index].input_tensors


def call_arguments(tensor):
    """Return (args, kwargs) of the call whose output a symbolic tensor is."""
    node = producer(tensor)._inbound_nodes[tensor._keras_history.node_index]
    return node.arguments.args, node.arguments.kwargs


def consumers(tensor):
    """Return pairs (operation, its input tensors) for each call that takes an input of a model.

    The public graph of a functional model is drawn from its outputs, and cannot be followed down.
    """
    return [(node.operation, node.input_tensors) for node in producer(tensor)._outbound_nodes]


def find_readers(tensor):
    """Yield the layers that take a symbolic tensor first, and the layers inside them."""
    for operation, _ in consumers(tensor):
        if isinstance(operation, keras.layers.Layer):
            yield from all_layers(operation)


def list_call_arguments(layer):
    """Return the names of the arguments of a layer's `call`, which Keras has read from it."""
    return tuple(layer._call_signature.parameters)


def takes_training(layer):
    """Return whether the `call` of a layer has the argument `training`.

    Keras fills the argument in, except for RNN cells: their caller passes it.
    """
    return layer._call_has_training_arg


def takes_argument(layer, name):
    """Return whether the `call` of a layer has an argument `name`, or takes any name.

    Keras reads the signature once, to fill in the masks that a `call` names.
    """
    parameters = layer._call_signature.parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def can_use_flash_attention(query, key, value, *more, raise_error=False):
    """Return whether the device has flash attention for heads of these shapes and dtypes.

    On JAX (B, T, N, H) each. On PyTorch (B, N, T, H), and `more` is a mask and whether it is
    causal. With `raise_error`, an error says why not.
    """
    bias = {"bias": None} if backend.backend() == "jax" else {}
    return backend.nn._can_use_flash_attention(
        query, key, value, *more, **bias, raise_error=raise_error
    )


def share_objects():
    """Return a context that writes a layer with several holders once, and reads it as one layer.

    `.keras` files are written and read in it. `keras.saving` does not make it public.
    """
    return serialization_lib.ObjectSharingScope()


def first_epoch(model):
    """Return the first epoch of `fit`, as `keras.callbacks.BackupAndRestore` sets it."""
    return model._initial_epoch


def set_first_epoch(model, epoch):
    """Let the running `fit` begin with an epoch, as that callback does."""
    model._initial_epoch = epoch


def read_model_config(json, compile=True):
    """Return the model of the JSON configuration that `keras.callbacks.OrbaxCheckpoint` saves."""
    return saving_lib._model_from_config(json, None, compile, safe_mode=True)


def seed_layers(layer, seeds):
    """Set, in a function of `tf.data`, the next seeds of the preprocessing layers in `layer`.

    Their generators count their calls. These run ahead of what is read of the data set, differently
    in every run and every process.

    Args:
        seeds: ints (2,), a tensor of TensorFlow.
    """
    for k, inside in enumerate(all_layers(layer)):
        if isinstance(inside, DataLayer) and hasattr(inside, "generator"):
            inside.backend.set_backend("tensorflow")
            try:
                state = inside._get_seed_generator("tensorflow").state
                state.assign(inside.backend.cast(seeds + k, state.dtype))
            finally:
                inside.backend.reset()


def build_without_values(build):
    """(what `build()` gives, the list of its variables): they have no values, and take no memory.

    `give_value` gives them one. No layer may be called with numbers before all have.
    """
    others = global_state.get_global_attribute(_UNINITIALIZED, [])
    global_state.set_global_attribute(_UNINITIALIZED, [])
    try:
        with keras.StatelessScope(initialize_variables=False):
            built = build()
        return built, global_state.get_global_attribute(_UNINITIALIZED, [])
    finally:
        global_state.set_global_attribute(_UNINITIALIZED, others)


_UNINITIALIZED = "uninitialized_variables"


def give_value(variable, array=None):
    """Give a variable of `build_without_values` a value: an array, or its initializer's."""
    if array is not None:
        variable._initializer = lambda shape, dtype=None: keras.ops.convert_to_tensor(array, dtype)
    variable._deferred_initialize()


def has_value(variable):
    """Return whether a variable has its initial value. In a stateless scope it is drawn later."""
    return variable._value is not None


def wrap_initializer(variable, change):
    """Let a variable without a value start from `change(value)`."""
    draw = variable._initializer
    variable._initializer = lambda *args, **kwargs: change(draw(*args, **kwargs))


def layout_of(variable):
    """Return the `keras.distribution.TensorLayout` that a variable was made with, or None."""
    return getattr(variable, "_layout", None)


def find_maker(variable):
    """Return the layer that is making a variable, while Keras asks for its layout, or None.

    Keras asks a distribution about a variable, which does not know its layer, but the layer's scope
    of names is open. In a symbolic call values are drawn later, when only the scope of the outer
    layer is open. Then the variable is searched for.
    """
    scopes = global_state.get_global_attribute("name_scope_stack") or []
    caller = scopes[-1].caller if scopes else None
    if not isinstance(caller, keras.layers.Layer):
        return None
    if variable.path == f"{current_path()}/{variable.name}":
        return caller
    for layer in all_layers(caller):
        if any(variable is own for own in own_variables(layer)):
            return layer
    return None


def choose_layouts(model):
    """Ask the active distribution for layouts of variables that have no value yet."""
    distribution = keras.distribution.distribution()
    if distribution is None or backend.backend() != "jax":
        return
    for layer in all_layers(model):
        with backend.name_scope(layer.name, caller=layer):
            for variable in own_variables(layer):
                if not has_value(variable):
                    variable._layout = distribution.get_variable_layout(variable)


def lay_out_every_batch():
    """Let `fit`, `evaluate` and `predict` on JAX ask a `BatchLayout` about every batch.

    Keras asks for the layouts of the first batch of an epoch and uses them for all others. A batch
    of another size, such as the last, is an error if its devices do not divide it.
    """
    from keras.src.backend.jax.trainer import JAXEpochIterator

    lay_out_first = JAXEpochIterator._get_distributed_iterator
    if lay_out_first.__module__ == __name__:
        return

    def lay_out(iterator, distribution):
        if isinstance(distribution, BatchLayout):
            return map(distribution.lay_out_batch, iterator.data_adapter.get_jax_iterator())
        return lay_out_first(iterator, distribution)

    JAXEpochIterator._get_distributed_iterator = lay_out


def gather_predictions():
    """Let `predict` on JAX pass its outputs to `BatchLayout.gather_outputs`.

    Keras makes NumPy arrays of them, which fails if other processes hold some of the rows.
    """
    from keras.src.backend.jax.trainer import JAXTrainer

    make_step = JAXTrainer.make_predict_function
    if make_step.__module__ == __name__:
        return

    def make(trainer, force=False):
        before = trainer.predict_function
        make_step(trainer, force)
        step = trainer.predict_function
        if step is before:
            return

        def gather(state, iterator):
            outputs, state = step(state, iterator)
            if (layout := get_batch_layout()) is not None:
                outputs = layout.gather_outputs(outputs)
            return outputs, state

        trainer.predict_function = gather

    JAXTrainer.make_predict_function = make


class CellWithDropout(DropoutRNNCell):
    """A cell whose dropout `keras.layers.RNN` draws before its loop, and resets afterwards.

    Keras recognizes its own cells by this base class, which has no public name.
    """
