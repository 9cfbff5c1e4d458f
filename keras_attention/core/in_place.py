"""Writing into a tensor at an index, in place if the backend can."""

import keras
from keras import ops

from keras_attention.core import scope


def write(x, axis, index, new):
    """Return `x` with `new` written from `index` on along one axis.

    `keras.ops.slice_update` does this on every backend, in LiteRT files and under XLA. On
    TensorFlow it copies all of `x`, through an XLA program that is compiled for each shape. In
    `scope.NativeGraph` it is TensorFlow's own slice assignment, which writes into the memory of `x`
    if nothing else reads it. XLA has that op only outside of loops, and LiteRT lacks it.

    Args:
        x: a tensor.
        axis: int. index: int or int32 scalar, from 0 to the size of the axis minus the length of
        `new`.
        new: in the shape of `x` except along `axis`. Cast to its dtype.
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
    """Make a graph of TensorFlow raise an error when it runs with `index + length > room`.

    Compiled code of XLA and JAX, and exported files, cannot raise. In `scope.NativeGraph` all sizes
    were checked before, so no op is added.
    """
    silent = any(scope.current(kind) is not None for kind in (scope.NativeGraph, scope.Export))
    if keras.backend.backend() != "tensorflow" or silent:
        return
    import tensorflow as tf

    if tf.inside_function():
        tf.debugging.assert_less_equal(ops.cast(index + length, "int32"), room, message=message)


def _along(x, axis, index):
    where = [0] * len(x.shape)
    where[axis] = index
    return where
