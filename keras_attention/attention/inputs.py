"""Checks of the call arguments of attention: masks, positions, and segments (packed documents)."""

import math

import keras
import numpy as np

from keras_attention.attention.kv_cache import looks_back
from keras_attention.positions.indices import to_numpy_or_none

_TOKENS = "True for a token and False for padding"
_DOCUMENTS = "the number of each token's document"
_POSITIONS = "the position of each token"

_ROWS = {
    "query_mask": ("query", _TOKENS),
    "value_mask": ("value", _TOKENS),
    "key_mask": ("value", _TOKENS),
    "segment_ids": ("query", _DOCUMENTS),
    "value_segment_ids": ("value", _DOCUMENTS),
    "query_positions": ("query", _POSITIONS),
    "value_positions": ("value", _POSITIONS),
    "key_positions": ("value", _POSITIONS),
}


def check_call(layer_name, query_shape, value_shape, arguments, attended=(1,), heads=None):
    """Raise a ValueError for masks, segments and positions that do not fit queries and values.

    Args:
        layer_name: str, the name of the layer for error messages.
        query_shape: (B, dims..., D), the shape of the query. Dynamic sizes are None.
        value_shape: (B, dims..., D), the shape of the value.
        arguments: dict of call arguments of `AttentionLayer`, keyed by name. Values are tensors,
            arrays, lists or None. Arguments other than masks, segments and positions are ignored.
        attended: tuple of ints, the axes to attend over.
        heads: int, N, or None if the `attention_mask` cannot have a heads axis.
    """
    shapes = {"query": tuple(query_shape), "value": tuple(value_shape)}
    for name, shape in shapes.items():
        check_rank(layer_name, name, shape)
    for name, (side, _) in _ROWS.items():
        check_rows(layer_name, name, arguments.get(name), side, shapes[side], attended)
    segments = arguments.get("segment_ids")
    if arguments.get("value_segment_ids") is None:
        check_rows(layer_name, "segment_ids", segments, "value", shapes["value"], attended)
    elif segments is None:
        raise ValueError(
            "value_segment_ids came without segment_ids, the segments of the queries. Give both. "
            "To hide only padding, give value_mask=ids != 0."
        )
    mask = arguments.get("attention_mask")
    if mask is not None:
        check_mask(layer_name, "attention_mask", mask)
        _check_attention_mask(layer_name, shape_of(mask), *shapes.values(), attended, heads)


def check_heads(query, key, key_axis, bias, visibility):
    """Raise a ValueError for arguments of `attend` with shapes that do not fit.

    Args:
        query: must be (B, T, N, H).
        key: must have rank 4.
        key_axis: int, the axis of `key` that has length S.
        bias: a tensor that must broadcast to (B, N, T, S), or None.
        visibility: `Visibility`, whose masks and positions are checked.
    """
    if len(query.shape) != 4 or len(key.shape) != 4:
        raise ValueError(
            "attend takes queries and keys of shape (batch, length, heads, size), but received "
            f"query {tuple(query.shape)} and key {tuple(key.shape)}. Split the heads first: "
            "reshape to (batch, length, heads, size)."
        )
    batch, queries, heads, _ = query.shape
    keys = key.shape[key_axis]
    _check_broadcastable("attention_mask", visibility.attention_mask, (batch, heads, queries, keys))
    _check_broadcastable("bias", bias, (batch, heads, queries, keys))
    for side, length in (("query", queries), ("key", keys)):
        for name in (f"{side}_mask", f"{side}_positions"):
            check_rows("attend", name, getattr(visibility, name), side, (batch, length, heads))


def check_rank(layer_name, name, shape):
    """Raise a ValueError if the `shape` of an input has no batch axis.

    `layer_name` and `name` (of the layer and of its argument) are str for the message.
    """
    if len(shape) < 3:
        raise ValueError(
            f"{layer_name}: {name} has shape {tuple(shape)}. Expected (batch, length, features), "
            "or more axes between the first and the last. Pass one sequence as a batch: x[None]."
        )


def check_mask(layer_name, name, mask):
    """Raise a ValueError for float masks that are not known to be zeros and ones.

    Masks that are added to scores, with values 0 and -1e9, would mean the opposite if they were
    cast to bool. In a traced graph, values may be unknown. `mask` is a tensor, an array or None.
    `layer_name` and `name` (of the layer and of its argument) are str for the message.
    """
    dtype = getattr(mask, "dtype", None)
    dtype = keras.backend.standardize_dtype(np.asarray(mask).dtype if dtype is None else dtype)
    if not keras.backend.is_float_dtype(dtype):
        return
    values = _values(mask)
    if values is None:
        content = "with unknown values"
    elif np.isin(values, (0, 1)).all():
        return
    else:
        content = f"with values from {values.min():g} to {values.max():g}"
    raise ValueError(
        f"{layer_name} was given {name} as {dtype} {content}. A mask is bool, True = may attend. "
        f"Give {name}=mask != 0 if 1 means that a query may attend, and {name}=mask == 0 if the "
        "mask is added to scores (0 and -1e9). For other numbers that are added, use bias= of "
        "ka.attention.attend, or a position that biases."
    )


def check_lengths(mask, position, queries, keys, query_positions=None, key_positions=None):
    """Raise a ValueError if sequence lengths do not fit the image grids of `mask` and `position`.

    `mask` is a `Mask` or None, and `position` a `Position` or None. `queries` and `keys` are the
    lengths T and S. The lengths are not checked if `query_positions` or `key_positions` are passed,
    because then tokens may be at any place. With a causal mask there may be fewer tokens than the
    grid has, because they are the beginning of an image.
    """
    exact = not looks_back(mask)
    for part in (mask, position):
        for length, positions in ((queries, query_positions), (keys, key_positions)):
            if part is not None and positions is None:
                part.check_length(length, exact)


def check_previous_scores(scores, expected):
    """Raise a ValueError if the `previous_scores` of a call do not have the shape `expected`.

    `scores` may be None.
    """
    if scores is not None and not _all_same(tuple(scores.shape), expected):
        raise ValueError(
            f"previous_scores has shape {tuple(scores.shape)}, but the scores of this layer have "
            f"shape {tuple(expected)}. Give the raw scores of a layer with the same number of "
            "heads, for the same queries and values."
        )


def _check_broadcastable(name, x, expected):
    """Raise a ValueError if a mask or a bias does not broadcast to `expected`, (B, N, T, S)."""
    if x is None:
        return
    shape = shape_of(x)
    if len(shape) > len(expected) or not all(
        map(_fits, shape, expected[len(expected) - len(shape) :])
    ):
        raise ValueError(
            f"attend was given {name} of shape {shape}, which does not broadcast to "
            f"(batch, heads, queries, keys) = {_show(expected)}."
        )


def shape_of(x):
    """Return the shape of a tensor, an array or a list, with None for dynamic sizes."""
    shape = x.shape if hasattr(x, "shape") else np.shape(x)
    return tuple(size if isinstance(size, int) else None for size in shape)


def check_rows(layer_name, name, x, side, side_shape, attended=(1,)):
    """Raise a ValueError if an argument does not have one value for each token.

    Args:
        layer_name: str, the name of the layer for error messages.
        name: str, the name of the argument, such as "query_mask".
        x: the argument, a tensor, an array, a list or None.
        side: str, the input that it must fit, such as "query" or "value".
        side_shape: (B, dims..., D), the shape of this input.
        attended: tuple of ints, the axes to attend over.
    """
    if x is None:
        return
    _, meaning = _ROWS[name]
    shape, (batch, *dims) = shape_of(x), side_shape[:-1]
    sizes = [side_shape[axis] for axis in attended]
    length = None if any(not isinstance(size, int) for size in sizes) else math.prod(sizes)
    if meaning is _TOKENS:
        check_mask(layer_name, name, x)
        expected = [(batch, *dims)]
    else:
        rows = batch if len(dims) == len(attended) else None  # else one for each sequence
        expected = [(rows, length)] + [(length,)] * (meaning is _POSITIONS)
    allowed = list(expected)
    if meaning is not _TOKENS or len(dims) <= len(attended):  # then all rows may share one
        allowed += [(1, *one[1:]) for one in expected if len(one) > 1]
    if any(_all_same(shape, one) for one in allowed):
        return
    fix = ""
    if side == "value" and name == "segment_ids":
        fix = " Give value_segment_ids too, the documents of the values."
    raise ValueError(
        f"{layer_name} was given {name} of shape {shape}, which does not fit its {side} of shape "
        f"{_show(side_shape)}. Expected {' or '.join(map(_show, expected))}, {meaning}.{fix}"
    )


def _check_attention_mask(layer_name, shape, query_shape, value_shape, attended, heads):
    """Raise a ValueError unless an attention mask is (B, [other dims..., N,] query dims, key dims).

    The query and key dims are the sizes of the attended axes. Sizes of 1 are allowed. `shape` is
    that of the mask, and `query_shape` and `value_shape` are those of the inputs. `attended` are
    the attended axes, a tuple of int, and `heads` is N. The message begins with `layer_name`.
    """
    unattended = [size for axis, size in enumerate(query_shape[1:-1], 1) if axis not in attended]
    queries = [query_shape[axis] for axis in attended]
    keys = [value_shape[axis] for axis in attended]
    front = [query_shape[0], *unattended, heads]
    mask_front, mask_pairs = shape[: -2 * len(attended)], shape[-2 * len(attended) :]
    fits = (
        len(mask_pairs) == 2 * len(attended)
        and len(mask_front) <= len(front)
        and all(map(_fits, mask_front, front))
        and _all_fit(mask_pairs[: len(queries)], queries)
        and _all_fit(mask_pairs[len(queries) :], keys)
    )
    if not fits:
        raise ValueError(
            f"{layer_name} was given attention_mask of shape {shape}, which does not fit its query "
            f"of shape {_show(query_shape)} and its value of shape {_show(value_shape)}. Expected "
            f"{_show([query_shape[0], *queries, *keys])}, True = may attend, or a shape that "
            f"broadcasts to {_show([*front, *queries, *keys])}."
        )


def _all_fit(shape, sizes):
    """Return whether `shape` may be equal to `sizes`, or all its axes have length 1."""
    return all(map(_same, shape, sizes)) or all(size in (1, None) for size in shape)


def _all_same(shape, expected):
    """Return whether two shapes may be equal. Unknown sizes fit any size."""
    return len(shape) == len(expected) and all(map(_same, shape, expected))


def _same(size, expected):
    """Return whether two sizes may be equal. Unknown sizes (None, JAX symbols) fit any size."""
    return not (isinstance(size, int) and isinstance(expected, int)) or size == expected


def _fits(size, expected):
    """Return whether the size of an axis is 1 or may equal `expected`, so that it broadcasts."""
    return size == 1 or _same(size, expected)


def _values(x):
    """Return the values of `x` as a NumPy array, or None if they are unknown in a traced graph."""
    values = to_numpy_or_none(x)
    if values is None and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not keras.backend.is_keras_tensor(x):
            values = tf.get_static_value(x)  # a constant in a graph
    return None if values is None else np.asarray(values, "float32")


def _show(shape):
    sizes = [str(size) if isinstance(size, int) else "any" for size in shape]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
