"""Rematerialisation: what a block computes on the way is computed again for the gradients."""

import functools

import keras
from keras import ops, tree

from keras_attention.core import keras_internals, scope
from keras_attention.core.recompute import recompute


def rematerializes(call):
    """Decorates the `call` of a layer whose attribute `remat` says whether to rematerialise it.

    Only training does: inference, decoding with a cache, recorded attention and exports run `call`
    as it is.
    """

    @functools.wraps(call)
    def wrapped(self, *args, **kwargs):
        plain = scope.current(Rematerialized) is not None or runs_plainly()
        if plain or not self.remat or not kwargs.get("training"):  # Keras passes it by its name
            return call(self, *args, **kwargs)
        return call_rematerialized(self, functools.partial(call, self), args, kwargs)

    return wrapped


class Rematerialized(scope.Scope):
    """Tells blocks that who calls them rematerialises them, if anybody does."""


def runs_plainly():
    """Whether layers run one by one and as they are: recorded, with a cache, or to be exported."""
    kinds = (scope.Recording, scope.CacheScope, scope.Export)
    return any(scope.current(kind) is not None for kind in kinds)


def call_rematerialized(layer, call, args, kwargs):
    """Return `call(*args, **kwargs)` of a layer, whose activations are computed again.

    The state of the layer goes in and comes out as values, the seeds of its dropouts among it:
    both computations draw the same, and the state advances once, as by a plain call.
    """
    state = find_state(layer)
    leaves = tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(leaves) if ops.is_tensor(x)]
    masks = [keras_internals.get_mask(leaves[i]) for i in places]

    def compute(tensors, masks, values):
        filled = list(leaves)
        for i, tensor, mask in zip(places, tensors, masks, strict=True):
            filled[i] = tensor
            if mask is not None:
                keras_internals.set_mask(tensor, mask)
        args_again, kwargs_again = tree.pack_sequence_as((args, kwargs), filled)
        return call_stateless(call, state, values, *args_again, **kwargs_again)

    tensors, values = [leaves[i] for i in places], read_state(layer, state)
    output, changed, losses = recompute(compute)(tensors, masks, values)
    update_state(layer, state, changed, losses)
    return output


def find_state(layer):
    """The variables that a call of a layer may read or change, seeds and metrics included."""
    if keras.backend.backend() == "jax":  # where metrics have no value while layers run
        return layer.variables
    return [*layer.variables, *layer.metrics_variables]


def read_state(layer, state):
    """The values that the variables of `find_state` have now, whatever is assigned to them later.

    PyTorch writes into the tensor of a variable, which the second computation would then find.
    """
    values = keras_internals.read_values(state)
    if keras.backend.backend() != "torch":
        return values
    layers = keras_internals.all_layers(layer)
    trained = {id(v) for inner in layers for v in keras_internals.trained_variables(inner)}
    pairs = zip(state, values, strict=True)
    return [value if id(variable) in trained else ops.copy(value) for variable, value in pairs]


def call_stateless(call, variables, values, *args, **kwargs):
    """`call(*args, **kwargs)` where the variables have these values, and are not changed.

    Returns:
        Its output; a dict, place in `variables` -> new value, of those that a plain call would have
        changed; and a list of the losses that layers added.
    """
    with keras.StatelessScope(zip(variables, values, strict=True), collect_losses=True) as state:
        before = [state.get_current_value(variable) for variable in variables]
        output = call(*args, **kwargs)
        after = [state.get_current_value(variable) for variable in variables]
    pairs = enumerate(zip(before, after, strict=True))
    return output, {i: new for i, (old, new) in pairs if new is not old}, list(state.losses)


def update_state(layer, variables, changed, losses):
    """Gives variables their new values, and a layer the losses, of `call_stateless`."""
    for i, value in changed.items():
        variables[i].assign(value)
    for loss in losses:
        layer.add_loss(loss)
