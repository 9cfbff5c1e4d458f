"""Helpers to reshape and tile tensors, and to merge the batch and token axes."""

import keras
from keras import ops


def prepend_batch(x, *sizes):
    """Return the target shape (B, *sizes) of a reshape, where B is the batch size of `x`.

    B is -1, which does not need an op in the graph. If another size is unknown or may be 0, -1 is
    ambiguous, so B is the actual size.
    """
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return (-1, *sizes)
    return (ops.shape(x)[0], *sizes)


def tile(x, repeats):
    """Tile `x` like `ops.tile`, but keep static sizes, which Keras 3.12 loses in TensorFlow graphs.

    `repeats` has one number for each axis.
    """
    tiled = ops.tile(x, repeats)
    if keras.backend.backend() == "tensorflow" and not isinstance(tiled, keras.KerasTensor):
        pairs = zip(x.shape, repeats, strict=True)
        tiled.set_shape(
            [n * r if isinstance(n, int) and isinstance(r, int) else None for n, r in pairs]
        )
    return tiled


def merges_tokens():
    """Return whether layers should merge (B, T, D) to (B · T, D) before a matrix product.

    This is faster on TensorFlow. On JAX it would gather a sequence that is split over devices.
    """
    return keras.backend.backend() == "tensorflow"


def merge_tokens(x):
    """Reshape x (B, T, D) to (B · T, D) on TensorFlow. On other backends, return x unchanged.

    `part_tokens` undoes it.
    """
    return ops.reshape(x, (-1, x.shape[-1])) if merges_tokens() else x


def part_tokens(x, like, *sizes):
    """Undo `merge_tokens`: reshape x (B · T, ...) to (B, *sizes).

    B is the batch size of the tensor `like`, and `sizes` are the other sizes, such as T and D. If
    `merge_tokens` did nothing, return x unchanged.
    """
    return ops.reshape(x, prepend_batch(like, *sizes)) if merges_tokens() else x
