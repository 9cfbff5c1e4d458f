"""Target shapes of reshapes and tiles, and where the tokens of a batch are merged to one axis."""

import keras
from keras import ops


def prepend_batch(x, *sizes):
    """(B, *sizes), B the first axis of `x`, as the target shape of a reshape.

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
    """Whether (B, T, D) is faster as (B · T, D), a product of two matrices: TensorFlow's CPU path.

    Elsewhere a batch keeps its axes: of a sequence that is split among devices, as JAX may, merged
    ones would have to be gathered.
    """
    return keras.backend.backend() == "tensorflow"


def merge_tokens(x):
    """(B, T, D) to (B · T, D) where that is faster, else unchanged; `part_tokens` undoes it."""
    return ops.reshape(x, (-1, x.shape[-1])) if merges_tokens() else x


def part_tokens(x, like, *sizes):
    """What `merge_tokens` made, or layers of it, as (B, *sizes), B the first axis of `like`."""
    return ops.reshape(x, prepend_batch(like, *sizes)) if merges_tokens() else x
