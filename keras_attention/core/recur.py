"""`recur`: a loop over time that can be differentiated in training, and exported to LiteRT."""

import keras
from keras import ops

from keras_attention.core import in_place, scope


def recur(step, inputs, states, mask=None, backwards=False):
    """Run a loop over time: call `outputs, states = step(inputs, states)` for each time step.

    While a model is exported or generates with a cache, the outputs are written into one tensor of
    their final size, because LiteRT has no built-in operations for lists of tensors. That loop has
    no gradient.

    Args:
        step: function of the inputs of one time step, tensors (B, ...), and the states. It returns
            the outputs of this step, tensors (B, ...), and new states with the same structure,
            shapes and dtypes.
        inputs: a tensor (B, T, ...) of rank 3 or 4, or a structure of such tensors. T must be at
            least 1.
        states: list of tensors (B, ...), the initial states.
        mask: bool (B, T), True = a token, or None. At padding, the states do not change, and the
            outputs are zero.
        backwards: bool, whether to run from the last time step to the first.

    Returns:
        The outputs, tensors (B, T, ...) in the order of the inputs, and the list of final states.
    """
    if mask is not None:
        inputs, step = (inputs, ops.expand_dims(mask, axis=2)), _hold_where_masked(step)
    if scope.current(scope.Export) or scope.current(scope.Decoding):
        return _write_into_tensors(step, inputs, states, backwards)
    if keras.backend.backend() == "tensorflow":
        return _scan_tensorflow(step, inputs, states, backwards)

    def scanned(states, inputs):
        outputs, states = step(inputs, states)
        return states, outputs

    def swap(x):  # (B, T, ...) to (T, B, ...) and back
        return keras.tree.map_structure(lambda x: ops.swapaxes(x, 0, 1), x)

    states, outputs = ops.scan(scanned, states, swap(inputs), reverse=backwards)
    return swap(outputs), states


def _scan_tensorflow(step, inputs, states, backwards):
    """Run the loop of `recur` with `TensorArray`s, which TensorFlow can differentiate under XLA.

    The arguments are those of `recur`. Keras's `ops.scan` requires outputs with the shapes of the
    states. It also does not limit the number of iterations, which XLA requires to differentiate a
    loop.
    """
    import tensorflow as tf

    def array(dtype, length, shape):
        return tf.TensorArray(dtype, length, element_shape=shape)

    def swap(x):  # (B, T, ...) to (T, B, ...) and back
        return tf.transpose(x, (1, 0, *range(2, len(x.shape))))

    flat = [swap(x) for x in keras.tree.flatten(inputs)]
    length = ops.shape(flat[0])[0]
    arrays = [array(x.dtype, length, x.shape[1:]).unstack(x) for x in flat]
    first = keras.tree.pack_sequence_as(inputs, [x[0] for x in flat])
    structure, _ = step(first, states)  # only for dtypes and shapes
    written = [array(x.dtype, length, x.shape) for x in keras.tree.flatten(structure)]

    def body(i, written, states):
        index = length - 1 - i if backwards else i
        read = keras.tree.pack_sequence_as(inputs, [each.read(index) for each in arrays])
        outputs, states = step(read, states)
        outputs = keras.tree.flatten(outputs)
        written = [w.write(index, x) for w, x in zip(written, outputs, strict=True)]
        return i + 1, written, states

    _, written, states = tf.while_loop(
        lambda i, *_: i < length, body, (0, written, list(states)), maximum_iterations=length
    )
    outputs = [swap(each.stack()) for each in written]
    return keras.tree.pack_sequence_as(structure, outputs), list(states)


def _hold_where_masked(step):
    """Wrap `step` so that at padding it keeps the states and returns zeros.

    The inputs of the new step are a pair: the inputs of `step`, and a mask (B, 1), True = a token.
    """

    def held(inputs, states):
        inputs, mask = inputs
        outputs, new = step(inputs, states)
        new = [ops.where(_with_rank_of(mask, x), x, y) for x, y in zip(new, states, strict=True)]
        outputs = keras.tree.map_structure(
            lambda x: ops.where(_with_rank_of(mask, x), x, ops.zeros_like(x)), outputs
        )
        return outputs, new

    return held


def _with_rank_of(mask, x):
    return ops.reshape(mask, (-1, *[1] * (len(x.shape) - 1)))


def _write_into_tensors(step, inputs, states, backwards):
    length = ops.shape(keras.tree.flatten(inputs)[0])[1]
    outputs, after = step(_at(inputs, 0), states)  # also determines the shapes
    if isinstance(length, int) and length == 1:
        return keras.tree.map_structure(lambda x: ops.expand_dims(x, axis=1), outputs), after
    structure, flat = outputs, keras.tree.flatten(outputs)
    written = [ops.zeros((ops.shape(x)[0], length, *ops.shape(x)[1:]), dtype=x.dtype) for x in flat]

    def body(i, written, states):
        index = length - 1 - i if backwards else i
        outputs, states = step(_at(inputs, index), states)
        outputs = keras.tree.flatten(outputs)
        written = [
            in_place.write(w, 1, index, ops.expand_dims(x, axis=1))
            for w, x in zip(written, outputs, strict=True)
        ]
        return i + 1, written, states

    _, written, states = ops.while_loop(
        lambda i, *_: i < length, body, (0, written, states), maximum_iterations=length
    )
    return keras.tree.pack_sequence_as(structure, written), states


def _at(inputs, i):
    """Return the inputs (B, ...) of time step i, from a structure of tensors (B, T, ...)."""

    def take(x):
        shape = ops.shape(x)
        start = (0, i, *[0] * (len(shape) - 2))
        taken = ops.slice(x, start, (shape[0], 1, *shape[2:]))
        return ops.reshape(taken, (shape[0], *shape[2:]))

    return keras.tree.map_structure(take, inputs)
