"""All uses of Keras's private API in this package, each wrapped in a function.

No other file imports `keras.src` or reads a private attribute of a Keras object.
"""

import keras
from keras.src import backend
from keras.src.backend.common import global_state, tensor_attributes
from keras.src.backend.common.name_scope import current_path
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from keras.src.backend.common.variables import AutocastScope
from keras.src.layers.convolutional.base_conv import BaseConv
from keras.src.layers.preprocessing.data_layer import DataLayer
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell
from keras.src.losses.loss import reduce_weighted_values
from keras.src.models.functional import Functional
from keras.src.ops.numpy import LogicalNot, NotEqual, Pad
from keras.src.saving import saving_lib, serialization_lib

from keras_attention.core.token_layout import BatchLayout, get_batch_layout

# Our models contain these operations. HDF5 files store only their names, without a module, and then
# Keras finds only layers and registered classes.
for _operation in (LogicalNot, NotEqual, Pad):
    keras.saving.get_custom_objects().setdefault(_operation.__name__, _operation)


LOW_RANK = (keras.layers.Dense, keras.layers.EinsumDense, keras.layers.Embedding, BaseConv)


def get_mask(tensor):
    """Return the Keras mask that is attached to a tensor, bool (B, T), or None."""
    return backend.get_keras_mask(tensor)


def set_mask(tensor, mask):
    """Attach a Keras mask, bool, to a tensor.

    If the tensor is the result of the `call` of a `keras.losses.Loss`, the mean that Keras computes
    leaves out values whose mask is False.
    """
    backend.set_keras_mask(tensor, mask)


def attach(tensor, name, value):
    """Attach a value to a tensor under a name, as Keras attaches masks. A loss can read it."""
    tensor_attributes.set_tensor_attr(tensor, f"_keras_attention_{name}", value)


def read_attached(tensor, name):
    """Return the value that `attach` attached to a tensor under `name`, a str, or None."""
    return tensor_attributes.get_tensor_attr(tensor, f"_keras_attention_{name}")


def infers_shapes():
    """Return whether Keras runs code only for the shapes of its results.

    On JAX and PyTorch, `fit` begins with such a run. The loss then gets other tensors than the
    model's outputs.
    """
    return in_symbolic_scope()


def sum_losses(losses, sample_weight, mask):
    """Return the sum of losses, each multiplied by its sample weight and its mask, as Keras does.

    `losses` is a float tensor. `sample_weight` and `mask` are tensors, or None. Keras gets a copy
    of the weights, because on PyTorch Keras multiplies weights by the mask in place.
    """
    if sample_weight is not None:
        sample_weight = keras.ops.copy(sample_weight)
    return reduce_weighted_values(losses, sample_weight, mask, "sum", losses.dtype)


def all_layers(layer):
    """Return a list of `layer` and all layers inside it, at any depth."""
    return layer._flatten_layers()


def inner_layers(layer):
    """Return a list of all layers inside `layer`, at any depth."""
    return layer._flatten_layers(include_self=False)


def direct_layers(layer):
    """Return a list of the direct sublayers of `layer`."""
    return layer._flatten_layers(include_self=False, recursive=False)


def own_variables(layer):
    """Return the variables that a layer created itself, without variables of its sublayers."""
    return [*layer._trainable_variables, *layer._non_trainable_variables]


def trained_variables(layer):
    """Return the variables that a layer created with `trainable=True`, even if they are frozen.

    The variables of its sublayers are not included.
    """
    return list(layer._trainable_variables)


def read_values(variables):
    """Return the stored values of variables, without a cast to the layer's compute dtype."""
    with AutocastScope(None):
        return [variable.value for variable in variables]


def variable_index(optimizer, variable):
    """Return the index of a variable (Keras's or the backend's) in the lists of an optimizer."""
    return optimizer._get_variable_index(variable)


def adam_variables(optimizer, variable):
    """Return (variable, first moment, second moment) of Keras's Adam as TensorFlow variables.

    `optimizer` is the Adam that trains the Keras variable `variable`.
    """
    index = variable_index(optimizer, variable)
    groups = (optimizer._trainable_variables, optimizer._momentums, optimizer._velocities)
    return tuple(each[index].value for each in groups)


def decays(optimizer, variable):
    """Return whether `optimizer`, of Keras, applies weight decay to `variable`."""
    return optimizer._use_weight_decay(variable)


def forget_compilation(model):
    """Reset a model to its state before `compile`, so that it is saved without its optimizer.

    Keras could not load a saved optimizer if the trainable variables changed since `compile`.
    """
    model.optimizer, model.compiled = None, False


def has_low_rank(layer):
    """Return whether Keras's LoRA is enabled in a layer."""
    return isinstance(layer, LOW_RANK) and layer.lora_enabled


def merge_low_rank(layer):
    """Add the product of a layer's LoRA matrices to its kernel, and remove the matrices.

    Keras only does this when it saves or quantizes a layer. The second matrix is set to 0, because
    a function that was compiled before, such as that of `predict`, still adds the product.
    """
    kernel = layer.kernel
    for variable in (layer.lora_kernel_a, layer.lora_kernel_b):
        layer._untrack_variable(variable)
    layer.lora_enabled, layer.lora_rank, layer.lora_alpha = False, None, None
    layer._kernel.assign(kernel)
    layer.lora_kernel_b.assign(keras.ops.zeros_like(layer.lora_kernel_b))
    layer._kernel.trainable = True


def is_functional(model):
    """Return whether a model has symbolic inputs and outputs.

    These are functional models, and `Sequential` models that are built.
    """
    built = isinstance(model, keras.Sequential) and model._functional is not None
    return built or isinstance(model, Functional)


def producer(tensor):
    """Return the operation, such as a layer, that produced a symbolic tensor."""
    return tensor._keras_history.operation


def inputs_of(tensor):
    """Return a list of the symbolic inputs of the call that produced a symbolic tensor."""
    return producer(tensor)._inbound_nodes[tensor._keras_history.node_index].input_tensors


def call_arguments(tensor):
    """Return (args, kwargs) of the call that produced a symbolic tensor."""
    node = producer(tensor)._inbound_nodes[tensor._keras_history.node_index]
    return node.arguments.args, node.arguments.kwargs


def consumers(tensor):
    """Return a list of (operation, inputs of the operation) for all calls that read `tensor`.

    `tensor` is a symbolic input of a functional model.
    """
    return [(node.operation, node.input_tensors) for node in producer(tensor)._outbound_nodes]


def find_readers(tensor):
    """Yield the layers that read `tensor`, an input of a model, and the layers inside them."""
    for operation, _ in consumers(tensor):
        if isinstance(operation, keras.layers.Layer):
            yield from all_layers(operation)


def list_call_arguments(layer):
    """Return a tuple with the names of the arguments of a layer's `call`."""
    return tuple(layer._call_signature.parameters)


def takes_training(layer):
    """Return whether the `call` of a layer has the argument `training`.

    Keras passes it automatically, except to RNN cells: their caller must pass it.
    """
    return layer._call_has_training_arg


def takes_argument(layer, name):
    """Return whether the `call` of a layer accepts an argument `name`, possibly by `**kwargs`."""
    parameters = layer._call_signature.parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def can_use_flash_attention(query, key, value, *more, raise_error=False):
    """Return whether this device supports flash attention for tensors of these shapes and dtypes.

    Args:
        query, key, value: tensors, (B, T, N, H) on JAX and (B, N, T, H) on PyTorch.
        *more: on PyTorch, the mask and whether attention is causal.
        raise_error: bool, whether to raise an error with the reason instead of returning False.
    """
    bias = {"bias": None} if backend.backend() == "jax" else {}
    return backend.nn._can_use_flash_attention(
        query, key, value, *more, **bias, raise_error=raise_error
    )


def share_objects():
    """Return a context manager in which Keras serializes a shared layer only once."""
    return serialization_lib.ObjectSharingScope()


def first_epoch(model):
    """Return the epoch that `fit` starts at, which `keras.callbacks.BackupAndRestore` also sets."""
    return model._initial_epoch


def set_first_epoch(model, epoch):
    """Make the running `fit` of a model start at `epoch`, 0-based. Call it in `on_train_begin`."""
    model._initial_epoch = epoch


def read_model_config(json, compile=True):
    """Build a model from `json`, the config that `keras.callbacks.OrbaxCheckpoint` saves as a str.

    `compile` says whether the model is compiled with the saved loss and optimizer.
    """
    return saving_lib._model_from_config(json, None, compile, safe_mode=True)


def seed_layers(layer, seeds):
    """Set the random state of all preprocessing layers in `layer`, inside a `tf.data` function.

    By default these layers count their calls. Prefetching makes this count differ between runs, so
    results would not be reproducible.

    Args:
        layer: a Keras layer.
        seeds: int TensorFlow tensor (2,), the next seed. Each layer adds its index.
    """
    for k, inside in enumerate(all_layers(layer)):
        if isinstance(inside, DataLayer) and "generator" in vars(inside):
            inside.backend.set_backend("tensorflow")
            try:
                state = inside._get_seed_generator("tensorflow").state
                state.assign(inside.backend.cast(seeds + k, state.dtype))
            finally:
                inside.backend.reset()


def build_without_values(build):
    """Call `build`, which builds a model, without allocating the values of its variables.

    Call `give_value` for each variable before you call the model on data.

    Returns:
        (result of `build()`, list of its variables).
    """
    outer = global_state.get_global_attribute(_UNINITIALIZED, [])
    global_state.set_global_attribute(_UNINITIALIZED, [])
    try:
        with keras.StatelessScope(initialize_variables=False):
            built = build()
        return built, global_state.get_global_attribute(_UNINITIALIZED, [])
    finally:
        global_state.set_global_attribute(_UNINITIALIZED, outer)


_UNINITIALIZED = "uninitialized_variables"


def give_value(variable, array=None):
    """Give a variable of `build_without_values` a value: `array`, or None for its initial value."""
    if array is not None:
        variable._initializer = lambda shape, dtype=None: keras.ops.convert_to_tensor(array, dtype)
    variable._deferred_initialize()


def has_value(variable):
    """Return whether a variable has a value yet.

    A variable that is created in a `keras.StatelessScope` gets its value later.
    """
    return variable._value is not None


def wrap_initializer(variable, change):
    """Apply the function `change` to the initial value of a variable that has no value yet."""
    initializer = variable._initializer
    variable._initializer = lambda *args, **kwargs: change(initializer(*args, **kwargs))


def layout_of(variable):
    """Return the `keras.distribution.TensorLayout` of a variable, or None without a layout."""
    return getattr(variable, "_layout", None)


def find_maker(variable):
    """Return the layer that is creating a variable, or None if no layer is.

    A distribution needs the layer to decide how to split the variable over devices, but Keras
    passes only the variable. The layer is found by its name scope, which is still open. In a
    symbolic call, variables are initialized later, in the name scope of an outer layer. In this
    case the layers inside the outer layer are searched.
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
    """Let the active Keras distribution choose the layout of each variable that has no value yet.

    Do nothing without a distribution, or if Keras runs on another backend than JAX.
    """
    distribution = keras.distribution.distribution()
    if distribution is None or backend.backend() != "jax":
        return
    for layer in all_layers(model):
        with backend.name_scope(layer.name, caller=layer):
            for variable in own_variables(layer):
                if not has_value(variable):
                    variable._layout = distribution.get_variable_layout(variable)


def lay_out_every_batch():
    """Patch `fit`, `evaluate` and `predict` on JAX: call `BatchLayout.lay_out_batch` per batch.

    Keras uses the layout of the first batch for all batches of an epoch. This fails if the size of
    the last batch is not a multiple of the number of devices.
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
    """Patch `predict` on JAX: call `BatchLayout.gather_outputs` for the outputs of each batch.

    Keras converts the outputs to NumPy, which fails if other processes hold some of the rows.
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
    """Base class of RNN cells whose dropout masks `keras.layers.RNN` samples before its loop."""
