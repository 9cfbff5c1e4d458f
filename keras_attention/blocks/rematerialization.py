"""Rematerialisation: what a block computes on the way is computed again for the gradients.

The one place for what differs between backends there.
"""

import functools
import inspect

import keras
from keras import ops, tree

from keras_attention import keras_internals, scope


def rematerializes(call):
    """Decorates the `call` of a layer whose attribute `remat` says whether to rematerialise it.

    Only training does: inference, decoding with a cache, recorded attention and exports run `call`
    as it is.
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapped(self, *args, **kwargs):
        if not self.remat or scope.current(Rematerialized) is not None or runs_plainly():
            return call(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs).arguments
        if not given.get("training"):
            return call(self, *args, **kwargs)
        del given["self"]
        return call_rematerialized(self, functools.partial(call, self), given)

    return wrapped


class Rematerialized(scope.Scope):
    """Tells blocks that who calls them rematerialises them, if anybody does."""


def runs_plainly():
    """Whether layers run one by one and as they are: recorded, with a cache, or to be exported."""
    kinds = (scope.Recording, scope.CacheScope, scope.Export)
    return any(scope.current(kind) is not None for kind in kinds)


def call_rematerialized(layer, call, given):
    """`call(**given)` of a layer, whose activations are not kept, but computed again.

    The state of the layer goes in and comes out as values, the seeds of its dropouts among it:
    both computations draw the same, and the state advances once, as by a plain call.
    """
    state = find_state(layer)
    leaves = tree.flatten(given)
    places = [i for i, x in enumerate(leaves) if ops.is_tensor(x)]
    masks = [keras_internals.get_mask(leaves[i]) for i in places]

    def compute(tensors, masks, values):
        filled = list(leaves)
        for i, tensor, mask in zip(places, tensors, masks, strict=True):
            filled[i] = tensor
            if mask is not None:
                keras_internals.set_mask(tensor, mask)
        return call_stateless(call, state, values, **tree.pack_sequence_as(given, filled))

    checkpoint = keras.remat
    if keras.backend.backend() == "tensorflow":
        checkpoint = _checkpoint_tensorflow
    tensors, values = [leaves[i] for i in places], read_state(layer, state)
    output, changed, losses = checkpoint(compute)(tensors, masks, values)
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


def _checkpoint_tensorflow(compute):
    """`compute` as a function whose gradient computes it again.

    `tf.recompute_grad` neither takes nor returns integers and truth values, and adds a number to
    every weight, so that it has them twice.
    """
    import tensorflow as tf

    def checkpointed(*arguments):
        leaves = tree.flatten(arguments)
        places = [i for i, x in enumerate(leaves) if tf.is_tensor(x)]
        num_streams = sum(i < len(tree.flatten(arguments[0])) for i in places)
        returned = []

        def run(tensors):
            filled = list(leaves)
            for i, tensor in zip(places, tensors, strict=True):
                filled[i] = tensor
            returned[:] = [compute(*tree.pack_sequence_as(arguments, filled))]
            return tree.flatten(returned[0])

        @tf.custom_gradient
        def run_twice(*tensors):
            def gradient(*upstream):
                inputs = _wait_for(upstream, tensors, num_streams)
                sources = [x for x in inputs if x.dtype.is_floating]
                with tf.GradientTape() as tape:
                    tape.watch(sources)
                    again = run(inputs)
                pairs = zip(again, upstream, strict=True)
                targets, given = zip(*(p for p in pairs if p[0].dtype.is_floating), strict=True)
                found = iter(tape.gradient(targets, sources, given))
                return [next(found) if x.dtype.is_floating else None for x in inputs]

            # A tape keeps what is computed of a tensor that it watches: of these it watches none.
            return run([tf.stop_gradient(x) for x in tensors]), gradient

        outputs = run_twice(*(tf.convert_to_tensor(leaves[i]) for i in places))
        return tree.pack_sequence_as(returned[0], outputs)

    return checkpointed


def _wait_for(upstream, tensors, num_streams):
    """`tensors` that are there when the gradients `upstream` are, and no sooner.

    The first `num_streams` depend on their values: XLA knows no other order, and computes what is
    equal once.
    """
    import tensorflow as tf

    upstream = [x for x in upstream if x is not None]
    with tf.control_dependencies(upstream):
        tensors = [tf.identity(x) for x in tensors]
    first = next(x for x in upstream if x.dtype.is_floating)
    element = tf.reshape(first, [-1])[:1]
    nothing = tf.reduce_sum(tf.minimum(tf.abs(element), 0))
    return [
        x + tf.cast(nothing, x.dtype) if i < num_streams and x.dtype.is_floating else x
        for i, x in enumerate(tensors)
    ]
