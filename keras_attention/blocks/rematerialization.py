"""Rematerialization: recompute the activations of a block for the gradients, to save memory."""

import functools

import keras
from keras import ops, tree

from keras_attention.core import keras_internals, scope
from keras_attention.core.recompute import recompute


def rematerializes(call):
    """Decorator of the `call` of a layer: training recomputes activations for the gradients.

    Activations are recomputed if the attribute `remat` of the layer is True. Training then needs
    less memory and more time. Inference, generation with a cache, recorded attention and exports
    run `call` unchanged.
    """

    @functools.wraps(call)
    def wrapped(self, *args, **kwargs):
        plain = scope.current(Rematerialized) is not None or runs_plainly()
        if plain or not self.remat or not kwargs.get("training"):  # Keras passes it as a keyword
            return call(self, *args, **kwargs)
        return call_rematerialized(self, functools.partial(call, self), args, kwargs)

    return wrapped


class Rematerialized(scope.Scope):
    """A scope in which blocks do not recompute activations, because their caller already does."""


def runs_plainly():
    """Return whether blocks must not recompute activations or run as a loop.

    The result is True while attention is recorded, a cache is used, or a model is exported.
    """
    kinds = (scope.Recording, scope.CacheScope, scope.Export)
    return any(scope.current(kind) is not None for kind in kinds)


def call_rematerialized(layer, call, args, kwargs):
    """Return `call(*args, **kwargs)` in such a way that gradients recompute its activations.

    `call` is the `call` method of `layer` without the decorator `rematerializes`. The state of the
    layer, including the seeds of its dropouts, is passed in and returned as values. So both
    computations use the same random numbers, and the state advances once, as in a normal call.
    """
    state = find_state(layer)
    leaves = tree.flatten((args, kwargs))
    indices = [i for i, x in enumerate(leaves) if ops.is_tensor(x)]
    masks = [keras_internals.get_mask(leaves[i]) for i in indices]

    def compute(tensors, masks, values):
        filled = list(leaves)
        for i, tensor, mask in zip(indices, tensors, masks, strict=True):
            filled[i] = tensor
            if mask is not None:
                keras_internals.set_mask(tensor, mask)
        args_again, kwargs_again = tree.pack_sequence_as((args, kwargs), filled)
        return call_stateless(call, state, values, *args_again, **kwargs_again)

    tensors, values = [leaves[i] for i in indices], read_state(layer, state)
    output, changed, losses = recompute(compute)(tensors, masks, values)
    update_state(layer, state, changed, losses)
    return output


def find_state(layer):
    """Return a list of the variables that a call of `layer` may read or change.

    The list includes weights, seeds and metrics.
    """
    if keras.backend.backend() == "jax":  # metrics have no value there while layers run
        return layer.variables
    return [*layer.variables, *layer.metrics_variables]


def read_state(layer, state):
    """Return a list of the current values of `state`, a list of variables of `layer`.

    The values are for a second run of the layer, which recomputes activations. On PyTorch the first
    run changes values in place. So values that training does not update, such as seeds, are copied
    there.
    """
    values = keras_internals.read_values(state)
    if keras.backend.backend() != "torch":
        return values
    layers = keras_internals.all_layers(layer)
    trained = {id(v) for inner in layers for v in keras_internals.trained_variables(inner)}
    pairs = zip(state, values, strict=True)
    return [value if id(variable) in trained else ops.copy(value) for variable, value in pairs]


def call_stateless(call, variables, values, *args, **kwargs):
    """Run `call(*args, **kwargs)` with `values` for `variables`, without changing the variables.

    Returns:
        The output. A dict {index in `variables`: new value} of the variables that a normal call
        would have changed. A list of the losses that layers added.
    """
    with keras.StatelessScope(zip(variables, values, strict=True), collect_losses=True) as state:
        before = [state.get_current_value(variable) for variable in variables]
        output = call(*args, **kwargs)
        after = [state.get_current_value(variable) for variable in variables]
    pairs = enumerate(zip(before, after, strict=True))
    return output, {i: new for i, (old, new) in pairs if new is not old}, list(state.losses)


def update_state(layer, variables, changed, losses):
    """Assign the new values and add the losses that `call_stateless` returned.

    `variables` is the list of variables that `call_stateless` got. `changed` is a dict {index in
    this list: new value}, and `losses` a list, which is added to `layer`.
    """
    for i, value in changed.items():
        variables[i].assign(value)
    for loss in losses:
        layer.add_loss(loss)
