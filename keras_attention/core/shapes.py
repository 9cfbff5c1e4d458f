"""Target shapes of reshapes and tiles, and where the tokens of a batch are merged into one axis."""

import keras
from keras import ops


def prepend_batch(x, *sizes):
    """Return (B, *sizes) as the target shape of a reshape, with B the first axis of `x`.

    B is -1, which costs a graph no operation, unless another size may be 0 and -1 is ambiguous.
    """
    if all(isinstance(size, int) and size > 0 for size in sizes):
        return (-1, *sizes)
    return (ops.shape(x)[0], *sizes)


def tile(x, repeats):
    """Repeat `x` like `ops.tile`, with one number for each axis, and keep sizes that are known.

    In TensorFlow's graphs Keras 3.12 loses them.
    """
    tiled = ops.tile(x, repeats)
    if hasattr(tiled, "set_shape"):
        pairs = zip(x.shape, repeats, strict=True)
        tiled.set_shape(
            [n * r if isinstance(n, int) and isinstance(r, int) else None for n, r in pairs]
        )
    return tiled


def merges_tokens():
    """Return whether (B, T, D) is faster as (B · T, D), one matrix product: TensorFlow's CPU path.

    On other backends a batch keeps its axes. A sequence that JAX splits among devices would have to
    be gathered.
    """
    return keras.backend.backend() == "tensorflow"


def merge_tokens(x):
    """Reshape (B, T, D) to (B · T, D) if that is faster. `part_tokens` undoes it."""
    return ops.reshape(x, (-1, x.shape[-1])) if merges_tokens() else x


def part_tokens(x, like, *sizes):
    """Reshape merged tokens to (B, *sizes), with B the first axis of `like`."""
    return ops.reshape(x, prepend_batch(like, *sizes)) if merges_tokens() else x
