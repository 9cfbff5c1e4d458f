"""Write into a tensor at an index, in place if the backend supports it."""

import keras
from keras import ops

from keras_attention.core import scope


def write(x, axis, index, new):
    """Return `x` with `new` written along one axis, starting at `index`.

    `keras.ops.slice_update` does this on every backend, in LiteRT files and under XLA. But on
    TensorFlow it copies all of `x`, in an XLA program that is compiled for each shape. Inside a
    `scope.NativeGraph`, this function calls TensorFlow's slice assignment instead, which writes
    into the memory of `x` if nothing else reads it. XLA supports that op only outside loops, and
    LiteRT not at all.

    Args:
        x: the tensor to write into.
        axis: int, the axis along which to write.
        index: int or int32 scalar, at most the size of the axis minus the length of `new`.
        new: tensor of the shape of `x`, except along `axis`. It is cast to the dtype of `x`.
    """
    new = ops.cast(new, x.dtype)
    if keras.backend.backend() != "tensorflow" or scope.current(scope.NativeGraph) is None:
        return ops.slice_update(x, _along(x, axis, index), new)
    import tensorflow as tf

    whole = sum(1 << other for other in range(len(x.shape)) if other != axis)
    return tf.ensure_shape(
        tf.raw_ops.TensorStridedSliceUpdate(
            input=x,
            begin=_along(x, axis, index),
            end=_along(x, axis, index + ops.shape(new)[axis]),
            strides=[1] * len(x.shape),
            value=new,
            begin_mask=whole,
            end_mask=whole,
        ),
        x.shape,
    )


def assert_room(index, length, room, message):
    """Add an op to a TensorFlow graph that raises an error at run time if index + length > room.

    Call it before `length` entries are written at `index` into an axis of size `room`. `message` is
    the message of the error. Nothing is added for XLA, JAX and exported files, which cannot raise
    errors, and in a `scope.NativeGraph`, where all sizes were checked before.
    """
    silent = any(scope.current(kind) is not None for kind in (scope.NativeGraph, scope.Export))
    if keras.backend.backend() != "tensorflow" or silent:
        return
    import tensorflow as tf

    if tf.inside_function():
        tf.debugging.assert_less_equal(ops.cast(index + length, "int32"), room, message=message)


def _along(x, axis, index):
    start = [0] * len(x.shape)
    start[axis] = index
    return start
