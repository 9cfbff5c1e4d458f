"""Attention over some axes of an N-dimensional input, by reshaping it to sequences.

The dims of an input are its axes between the batch and the features. Attended dims are merged into
a sequence of length T or S, and all other dims are merged with the batch.
"""

import math

from keras import ops


def resolve_axes(attention_axes, rank):
    """Return the axes to attend over, of `rank` axes, as a sorted tuple of positive ints.

    `attention_axes` is a list of ints, negative ones counted from the end. None means all axes but
    the batch and the features. Raise a ValueError if an axis is the batch or the features, or does
    not exist.
    """
    if attention_axes is None:
        return tuple(range(1, rank - 1))
    axes = tuple(sorted(axis if axis >= 0 else rank + axis for axis in attention_axes))
    if not all(0 < axis < rank - 1 for axis in axes):
        raise ValueError(
            f"attention_axes={tuple(attention_axes)} does not fit an input of rank {rank}: "
            f"choose axes from 1 to {rank - 2}, between the batch and the features."
        )
    return axes


def to_sequences(x, axes, features=1):
    """Reshape `x` (B, dims..., features) to sequences (rows, T, features).

    The attended `axes` are merged into one axis of length T. All other dims are merged with the
    batch into rows. `features` is the number of feature axes at the end, 1 or 0.
    """
    rank = len(x.shape)
    if rank == 2 + features and axes == (1,):
        return x
    unattended = [axis for axis in range(1, rank - features) if axis not in axes]
    x = ops.transpose(x, (0, *unattended, *axes, *range(rank - features, rank)))
    shape, first = ops.shape(x), 1 + len(unattended)
    length, sizes = math.prod(shape[first : rank - features]), shape[rank - features :]
    return ops.reshape(x, (_rows(shape[:first], length, *sizes), length, *sizes))


def rows_to_sequences(mask, axes):
    """Reshape a padding mask (B, dims...) to (rows, T), or return None for None.

    `axes` are the attended axes, a tuple of int, as in `to_sequences`.
    """
    return None if mask is None else to_sequences(mask, axes, features=0)


def from_sequences(x, like, axes):
    """Undo `to_sequences`: reshape `x` (rows, T, features...) to (B, dims..., features...).

    `like` is a tensor with the batch size and dims of the result. `axes` are the attended axes, a
    tuple of int.
    """
    rank = len(like.shape)
    if rank == 3 and axes == (1,):
        return x
    shape, features = ops.shape(like), ops.shape(x)[2:]
    order = [0, *(axis for axis in range(1, rank - 1) if axis not in axes), *axes]
    x = ops.reshape(x, (*(shape[axis] for axis in order), *features))
    back = [order.index(axis) for axis in range(rank - 1)]
    return ops.transpose(x, (*back, *range(rank - 1, len(x.shape))))


def mask_to_sequences(mask, query, axes):
    """Reshape an attention mask for several attended `axes` to bool (rows or 1, N or 1, T, S).

    The mask has the shape (B, [other dims..., N,] query dims, key dims), where dims are the sizes
    of the attended axes. Missing axes are added before the query dims, as in
    `keras.layers.MultiHeadAttention`. The result is None for the mask None.
    """
    if mask is None:
        return None
    mask = ops.cast(ops.convert_to_tensor(mask), "bool")
    attended, unattended = 2 * len(axes), len(query.shape) - 2 - len(axes)
    full = 2 + unattended + attended
    while len(mask.shape) < full:
        mask = ops.expand_dims(mask, axis=-attended - 1)
    shape = ops.shape(mask)
    queries = math.prod(shape[full - attended : full - len(axes)])
    keys = math.prod(shape[full - len(axes) :])
    heads = shape[1 + unattended]
    if unattended:  # a batch element has several sequences
        front = [axis for axis in range(len(query.shape) - 1) if axis not in axes]
        target = [ops.shape(query)[axis] for axis in front]
        mask = ops.broadcast_to(mask, (*target, *shape[1 + unattended :]))
    rows = _rows(ops.shape(mask)[: 1 + unattended], heads, queries, keys)
    return ops.reshape(mask, (rows, heads, queries, keys))


def weights_from_sequences(weights, query, key, axes, slots=0):
    """Reshape weights (rows, N, T, S + slots) to (B, other dims..., N, query dims, key dims).

    `query` and `key` are the inputs (B, dims..., D), and `axes` the attended axes, a tuple of int.
    `slots` is the number of memory slots. `weights_shape` describes the result.
    """
    if len(query.shape) == 3:
        return weights
    shape = weights_shape(weights.shape[1], ops.shape(query), ops.shape(key), axes, slots)
    return ops.reshape(weights, shape)


def weights_to_sequences(weights, query, key, axes):
    """Undo `weights_from_sequences` without slots: reshape weights to (rows, N, T, S).

    `weights` may be None, and then the result is None. `query` and `key` are the inputs (B,
    dims..., D), and `axes` the attended axes, a tuple of int.
    """
    rank = len(query.shape)
    if weights is None or rank == 3:
        return weights
    lengths = [math.prod(ops.shape(x)[axis] for axis in axes) for x in (query, key)]
    first = rank - 1 - len(axes)
    rows = _rows(ops.shape(weights)[:first], weights.shape[first], *lengths)
    return ops.reshape(weights, (rows, weights.shape[first], *lengths))


def weights_shape(heads, query_shape, key_shape, axes, slots=0):
    """Return the shape of a layer's attention weights: (B, other dims..., N, query dims, key dims).

    `heads` is N, and `query_shape` and `key_shape` are the shapes of the inputs (B, dims..., D).
    The query and key dims are the sizes of the attended `axes`, a tuple of int. For inputs
    (B, T, D) the result is (B, N, T, S). `slots` is the number of memory slots, which are learned
    keys. If there are any, the key dims are merged into one axis, and the slots are last on this
    axis.
    """
    front = [query_shape[axis] for axis in range(len(query_shape) - 1) if axis not in axes]
    queries, keys = ([shape[axis] for axis in axes] for shape in (query_shape, key_shape))
    if slots:
        keys = [None if any(size is None for size in keys) else math.prod(keys) + slots]
    return (*front, heads, *queries, *keys)


def _rows(front, *sizes):
    """Return the first size for a reshape to (rows, *sizes): -1, or the product of `front`.

    `front` are the sizes of the axes that are merged into rows. A reshape cannot infer -1 if
    another size is 0 or dynamic.
    """
    are_ints = all(isinstance(size, int) and size > 0 for size in sizes)
    return -1 if are_ints else math.prod(front)
