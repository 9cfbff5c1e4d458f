"""The loop over time: the backend's own to train with, and one that devices can run."""

import keras
from keras import ops

from keras_attention import in_place, scope


def recur(step, inputs, states, mask=None, backwards=False):
    """Runs `step` over time: `output, states = step(inputs of one time, states)`.

    In training it is the loop of the backend. Inside `scope.Export` and `scope.Decoding` the
    outputs are written into a tensor of their final size instead of a list of tensors, for which
    LiteRT has no built-in ops. That loop has no gradient.

    Args:
        step: callable. It takes what `inputs` holds at one time, each (B, ...), and the states, and
            returns outputs, each (B, ...), and states of the same structure, shapes and dtypes.
        inputs: a tensor (B, T, ...) of rank 3 or 4, or a structure of them; T is at least 1.
        states: list of tensors (B, ...).
        mask: bool (B, T), True = a token. Elsewhere the states stay as they are, whichever way the
            loop runs, and the outputs are zeros. Or None.
        backwards: bool, whether to begin at the last place.

    Returns:
        The outputs, each (B, T, ...), at the places of their inputs, and the last states.
    """
    if mask is not None:
        inputs, step = (inputs, ops.expand_dims(mask, axis=2)), _holding(step)
    if scope.current(scope.Export) or scope.current(scope.Decoding):
        return _into_tensors(step, inputs, states, backwards)
    if keras.backend.backend() == "tensorflow":
        from keras_attention.recurrent import loop_tensorflow

        return loop_tensorflow.scan(step, inputs, states, backwards)
    return _scan(step, inputs, states, backwards)


def _scan(step, inputs, states, backwards):
    def swapped(states, inputs):
        outputs, states = step(inputs, states)
        return states, outputs

    states, outputs = ops.scan(swapped, states, _swap(inputs), reverse=backwards)
    return _swap(outputs), states


def _swap(x):
    """(B, T, ...) to (T, B, ...) and back."""
    return keras.tree.map_structure(lambda x: ops.swapaxes(x, 0, 1), x)


def _holding(step):
    """`step` on (inputs, mask (B, 1)): where the mask is False, nothing happens."""

    def held(inputs, states):
        inputs, mask = inputs
        outputs, new = step(inputs, states)
        new = [ops.where(_of_rank(mask, x), x, y) for x, y in zip(new, states, strict=True)]
        outputs = keras.tree.map_structure(
            lambda x: ops.where(_of_rank(mask, x), x, ops.zeros_like(x)), outputs
        )
        return outputs, new

    return held


def _of_rank(mask, x):
    return ops.reshape(mask, (-1, *[1] * (len(x.shape) - 1)))


def _into_tensors(step, inputs, states, backwards):
    length = ops.shape(keras.tree.flatten(inputs)[0])[1]
    outputs, after = step(_at(inputs, 0), states)  # for shapes; unless it is all there is
    if isinstance(length, int) and length == 1:
        return keras.tree.map_structure(lambda x: ops.expand_dims(x, axis=1), outputs), after
    structure, flat = outputs, keras.tree.flatten(outputs)
    written = [ops.zeros((_rows(x), length, *ops.shape(x)[1:]), dtype=x.dtype) for x in flat]

    def body(i, written, states):
        place = length - 1 - i if backwards else i
        outputs, states = step(_at(inputs, place), states)
        outputs = keras.tree.flatten(outputs)
        written = [_write(w, place, x) for w, x in zip(written, outputs, strict=True)]
        return i + 1, written, states

    _, written, states = ops.while_loop(
        lambda i, *_: i < length, body, (0, written, states), maximum_iterations=length
    )
    return keras.tree.pack_sequence_as(structure, written), states


def _rows(x):
    return ops.shape(x)[0]


def _at(inputs, i):
    """What `inputs` holds at time i."""

    def take(x):
        shape = ops.shape(x)
        start = (0, i, *[0] * (len(shape) - 2))
        taken = ops.slice(x, start, (shape[0], 1, *shape[2:]))
        return ops.reshape(taken, (shape[0], *shape[2:]))

    return keras.tree.map_structure(take, inputs)


def _write(written, i, x):
    return in_place.write(written, 1, i, ops.expand_dims(x, axis=1))
