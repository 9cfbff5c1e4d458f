"""The loop over time that TensorFlow trains: its arrays have gradients, in a compiled graph too."""

import keras
import tensorflow as tf


def scan(step, inputs, states, backwards):
    """As `recurrent.loop.recur`, without a mask.

    Keras's `ops.scan` wants outputs of the shapes of the states, and gives its loop no bound, which
    XLA needs for a gradient.
    """
    flat = [_swap(x) for x in keras.tree.flatten(inputs)]
    length = keras.ops.shape(flat[0])[0]
    arrays = [_array(x.dtype, length, x.shape[1:]).unstack(x) for x in flat]
    first = keras.tree.pack_sequence_as(inputs, [x[0] for x in flat])
    structure, _ = step(first, states)  # for dtypes and shapes: TensorFlow leaves it out of a graph
    written = [_array(x.dtype, length, x.shape) for x in keras.tree.flatten(structure)]

    def body(i, written, states):
        place = length - 1 - i if backwards else i
        read = keras.tree.pack_sequence_as(inputs, [array.read(place) for array in arrays])
        outputs, states = step(read, states)
        outputs = keras.tree.flatten(outputs)
        written = [w.write(place, x) for w, x in zip(written, outputs, strict=True)]
        return i + 1, written, states

    _, written, states = tf.while_loop(
        lambda i, *_: i < length, body, (0, written, list(states)), maximum_iterations=length
    )
    outputs = [_swap(array.stack()) for array in written]
    return keras.tree.pack_sequence_as(structure, outputs), list(states)


def _array(dtype, length, shape):
    return tf.TensorArray(dtype, length, element_shape=shape)


def _swap(x):
    """(B, T, ...) to (T, B, ...) and back."""
    return tf.transpose(x, (1, 0, *range(2, len(x.shape))))
