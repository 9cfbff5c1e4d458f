"""Attention over some axes of an N-dimensional input, as attention over sequences."""

import math

from keras import ops


def resolve_axes(attention_axes, rank):
    """Return the axes of an input of this rank, positive and sorted. None is all inner ones."""
    if attention_axes is None:
        return tuple(range(1, rank - 1))
    axes = tuple(sorted(axis if axis >= 0 else rank + axis for axis in attention_axes))
    if not all(0 < axis < rank - 1 for axis in axes):
        raise ValueError(
            f"attention_axes={tuple(attention_axes)} does not fit an input of rank {rank}: "
            f"the axes are from 1 to {rank - 2}; the first is the batch, the last the features."
        )
    return axes


def to_sequences(x, axes, features=1):
    """Map (B, dims..., features) to (B·rest, T, features), T the product of dims in `axes`."""
    rank = len(x.shape)
    if rank == 2 + features and axes == (1,):
        return x
    rest = [axis for axis in range(1, rank - features) if axis not in axes]
    x = ops.transpose(x, (0, *rest, *axes, *range(rank - features, rank)))
    shape = ops.shape(x)
    length, kept = math.prod(shape[1 + len(rest) : rank - features]), shape[rank - features :]
    rows = _rows(shape[: 1 + len(rest)], length, *kept)
    return ops.reshape(x, (rows, length, *kept))


def rows_to_sequences(mask, axes):
    """Map a mask (B, dims...) -> (B·rest, T), as `to_sequences`. None is None."""
    return None if mask is None else to_sequences(mask, axes, features=0)


def from_sequences(x, like, axes):
    """Undoes `to_sequences`: (B·rest, T, features...) -> `like`'s batch and dims, then features."""
    rank = len(like.shape)
    if rank == 3 and axes == (1,):
        return x
    shape, features = ops.shape(like), ops.shape(x)[2:]
    rest = [axis for axis in range(1, rank - 1) if axis not in axes]
    order = [0, *rest, *axes]
    x = ops.reshape(x, (*(shape[axis] for axis in order), *features))
    back = [order.index(axis) for axis in range(rank - 1)]
    return ops.transpose(x, (*back, *range(rank - 1, len(x.shape))))


def mask_to_sequences(mask, query, axes):
    """Map a mask (B, [N, or rest...], query dims, key dims) -> bool (B·rest or 1, N or 1, T, S).

    Missing axes are filled in front of the query dims, as `keras.layers.MultiHeadAttention` does.
    None is None.
    """
    if mask is None:
        return None
    mask = ops.cast(ops.convert_to_tensor(mask), "bool")
    attended, rest = 2 * len(axes), len(query.shape) - 2 - len(axes)
    full = 2 + rest + attended
    while len(mask.shape) < full:
        mask = ops.expand_dims(mask, axis=-attended - 1)
    shape = ops.shape(mask)
    queries = math.prod(shape[full - attended : full - len(axes)])
    keys = math.prod(shape[full - len(axes) :])
    if rest:  # every batch element has `rest` sequences of its own
        others = [axis for axis in range(1, len(query.shape) - 1) if axis not in axes]
        target = [ops.shape(query)[axis] for axis in (0, *others)]
        mask = ops.broadcast_to(mask, (*target, *shape[1 + rest :]))
    rows = _rows(ops.shape(mask)[: 1 + rest], shape[1 + rest], queries, keys)
    return ops.reshape(mask, (rows, shape[1 + rest], queries, keys))


def weights_from_sequences(weights, query, key, axes, slots=0):
    """Map (B·rest, N, T, S + slots) to the `weights_shape`."""
    if len(query.shape) == 3:
        return weights
    shape = weights_shape(weights.shape[1], ops.shape(query), ops.shape(key), axes, slots)
    return ops.reshape(weights, shape)


def weights_to_sequences(weights, query, key, axes):
    """Undoes `weights_from_sequences`: from its shape back to (B·rest, N, T, S). None is None."""
    rank = len(query.shape)
    if weights is None or rank == 3:
        return weights
    lengths = [math.prod(ops.shape(x)[axis] for axis in axes) for x in (query, key)]
    rest = rank - 2 - len(axes)
    rows = _rows(ops.shape(weights)[: 1 + rest], weights.shape[1 + rest], *lengths)
    return ops.reshape(weights, (rows, weights.shape[1 + rest], *lengths))


def weights_shape(heads, query_shape, key_shape, axes, slots=0):
    """Return the shape of the weights: (B, rest..., N, query dims, key dims); usually (B, N, T, S).

    `slots` keys that are in no grid come after all others, in one axis.
    """
    rest = [query_shape[axis] for axis in range(1, len(query_shape) - 1) if axis not in axes]
    queries, keys = ([shape[axis] for axis in axes] for shape in (query_shape, key_shape))
    if slots:
        keys = [None if any(size is None for size in keys) else math.prod(keys) + slots]
    return (query_shape[0], *rest, heads, *queries, *keys)


def _rows(front, *sizes):
    """B·rest for a reshape to (B·rest, *sizes), as in `prepend_batch`."""
    known = all(isinstance(size, int) and size > 0 for size in sizes)
    return -1 if known else math.prod(front)
