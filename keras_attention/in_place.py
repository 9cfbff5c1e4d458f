"""Writing into a tensor at an index, in place where that can be: `write(x, axis, index, new)`."""

import keras
from keras import ops

from keras_attention import scope


def write(x, axis, index, new):
    """`x` with `new` in the places from `index` on of one axis.

    `keras.ops.slice_update` does that on every backend, in files of LiteRT and under XLA. On
    TensorFlow it copies all of `x`, through a program of XLA that is compiled for each shape. In
    `scope.AsItIs` it is TensorFlow's own slice assignment, which writes into the memory of `x` if
    nothing else reads it any more; XLA has it outside of loops alone, and LiteRT has not.

    Args:
        x: a tensor.
        axis: int. index: int or int32 scalar, in 0 ... size of the axis - length of `new` there.
        new: of the shape of `x` but along `axis`; cast to its dtype.
    """
    new = ops.cast(new, x.dtype)
    if keras.backend.backend() != "tensorflow" or scope.current(scope.AsItIs) is None:
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


def _along(x, axis, index):
    where = [0] * len(x.shape)
    where[axis] = index
    return where
