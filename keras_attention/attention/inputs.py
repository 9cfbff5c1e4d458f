"""Checks of what a call of attention is given: masks, positions and segments that do not fit."""

import math

import keras
import numpy as np

from keras_attention.attention.kv_cache import looks_back
from keras_attention.positions.indices import to_numpy_or_none

_TOKENS = "True for a token and False for padding"
_DOCUMENTS = "the number of each token's document"
_POSITIONS = "where each token is"

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


def check_call(owner, query_shape, value_shape, arguments, attended=(1,), heads=None):
    """Refuses call arguments that do not fit queries and values, and numbers that are no mask.

    Args:
        owner: str, what messages call the layer.
        query_shape, value_shape: (B, dims..., D), sizes or None.
        arguments: dict of call arguments of `AttentionLayer` by name, each a tensor, an array, a
            list or None. Those that are no mask, no segments and no positions are ignored.
        attended: which of the axes are attended over.
        heads: int, N, or None if there is no axis of heads that an `attention_mask` could have.
    """
    shapes = {"query": tuple(query_shape), "value": tuple(value_shape)}
    for name, shape in shapes.items():
        check_rank(owner, name, shape)
    for name, (side, _) in _ROWS.items():
        check_rows(owner, name, arguments.get(name), side, shapes[side], attended)
    segments = arguments.get("segment_ids")
    if arguments.get("value_segment_ids") is None:
        check_rows(owner, "segment_ids", segments, "value", shapes["value"], attended)
    elif segments is None:
        raise ValueError(
            "value_segment_ids came without segment_ids, which say to which of these segments each "
            "query belongs. Give both; to hide padding alone, give value_mask=ids != 0."
        )
    attention_mask = arguments.get("attention_mask")
    if attention_mask is not None:
        check_mask(owner, "attention_mask", attention_mask)
        _check_attention_mask(owner, shape_of(attention_mask), *shapes.values(), attended, heads)


def check_heads(query, key, key_axis, bias, visibility):
    """Refuses what does not fit queries (B, T, N, H) and keys, whose length is axis `key_axis`."""
    if len(query.shape) != 4 or len(key.shape) != 4:
        raise ValueError(
            "attend takes queries and keys of shape (batch, length, heads, size); received query "
            f"{tuple(query.shape)} and key {tuple(key.shape)}. Split the heads first: reshape to "
            "(batch, length, heads, size)."
        )
    batch, queries, heads, _ = query.shape
    keys = key.shape[key_axis]
    _check_broadcastable("attention_mask", visibility.attention_mask, (batch, heads, queries, keys))
    _check_broadcastable("bias", bias, (batch, heads, queries, keys))
    for side, length in (("query", queries), ("key", keys)):
        for name in (f"{side}_mask", f"{side}_positions"):
            check_rows("attend", name, getattr(visibility, name), side, (batch, length, heads))


def check_rank(owner, name, shape):
    """Refuses a sequence without a batch: every token would attend only to itself."""
    if len(shape) < 3:
        raise ValueError(
            f"{owner}: {name} has shape {tuple(shape)}: expected (batch, length, features), or "
            "more axes between the first and the last. Pass one sequence as a batch: x[None]."
        )


def check_mask(owner, name, mask):
    """Refuses float masks with other values than 0 and 1, or with unknown values.

    A mask that is added to scores, 0 and -1e9, would mean the opposite as a bool. While a graph is
    traced, values are not known, and floats are refused.
    """
    dtype = getattr(mask, "dtype", None)
    dtype = keras.backend.standardize_dtype(np.asarray(mask).dtype if dtype is None else dtype)
    if not keras.backend.is_float_dtype(dtype):
        return
    values = _values(mask)
    if values is None:
        found = "whose values are not known yet"
    elif np.isin(values, (0, 1)).all():
        return
    else:
        found = f"with values from {values.min():g} to {values.max():g}"
    raise ValueError(
        f"{owner} was given {name} as {dtype} {found}; a mask is bool, True = may attend. Give "
        f"{name}=mask != 0 if it is 1 where one may attend, and mask == 0 if it is added to scores "
        "(0 and -1e9). Other numbers that are added are the bias= of ka.attention.attend, or a "
        "position that biases."
    )


def check_lengths(mask, position, queries, keys, query_positions=None, key_positions=None):
    """Refuses lengths that do not fit the grids of `mask` and `position`, where no positions count.

    With a causal mask, fewer tokens are the beginning of an image.
    """
    exact = not looks_back(mask)
    for part in (mask, position):
        for length, given in ((queries, query_positions), (keys, key_positions)):
            if part is not None and given is None:
                part.check_length(length, exact)


def _check_broadcastable(name, x, shape):
    """Refuses a mask or a bias that does not broadcast to `shape`, (B, N, T, S)."""
    if x is None:
        return
    given = shape_of(x)
    tail = shape[len(shape) - len(given) :]
    if len(given) > len(shape) or not all(map(_fits, given, tail)):
        raise ValueError(
            f"attend was given {name} of shape {given}, which does not broadcast to "
            f"(batch, heads, queries, keys) = {_show(shape)}."
        )


def shape_of(x):
    """Return the shape of a tensor, an array or a list, with None for what is not known."""
    shape = x.shape if hasattr(x, "shape") else np.shape(x)
    return tuple(size if isinstance(size, int) else None for size in shape)


def check_rows(owner, name, x, side, shape, attended=(1,)):
    """Refuses what has no value for each token of `side`, "query" or "value", of `shape`."""
    if x is None:
        return
    _, meaning = _ROWS[name]
    given, (batch, *dims) = shape_of(x), shape[:-1]
    sizes = [shape[axis] for axis in attended]
    length = None if any(not isinstance(size, int) for size in sizes) else math.prod(sizes)
    if meaning is _TOKENS:
        check_mask(owner, name, x)
        expected = [(batch, *dims)]
    else:
        rows = batch if len(dims) == len(attended) else None  # else one for each of B · rest
        expected = [(rows, length)] + [(length,)] * (meaning is _POSITIONS)
    whole = len(dims) > len(attended) and meaning is _TOKENS  # then no single row stands for all
    if any(_is_like(given, other, whole) for other in expected):
        return
    also = ""
    if side == "value" and name == "segment_ids":
        also = " Give value_segment_ids too, the documents of the values."
    raise ValueError(
        f"{owner} was given {name} of shape {given}, which does not fit its {side} of shape "
        f"{_show(shape)}: expected {' or '.join(map(_show, expected))}, {meaning}.{also}"
    )


def _check_attention_mask(owner, given, query_shape, value_shape, attended, heads):
    """Checks an attention mask, (B, [rest..., N,] query dims, key dims)."""
    rest = [size for axis, size in enumerate(query_shape[1:-1], 1) if axis not in attended]
    queries = [query_shape[axis] for axis in attended]
    keys = [value_shape[axis] for axis in attended]
    front = [query_shape[0], *rest, heads]
    given_front, given_pairs = given[: -2 * len(attended)], given[-2 * len(attended) :]
    fits = (
        len(given_pairs) == 2 * len(attended)
        and len(given_front) <= len(front)
        and all(map(_fits, given_front, front))
        and _all_fit(given_pairs[: len(queries)], queries)
        and _all_fit(given_pairs[len(queries) :], keys)
    )
    if not fits:
        raise ValueError(
            f"{owner} was given attention_mask of shape {given}, which does not fit its query of "
            f"shape {_show(query_shape)} and its value of shape {_show(value_shape)}: expected "
            f"{_show([query_shape[0], *queries, *keys])}, True = may attend, or what broadcasts to "
            f"{_show([*front, *queries, *keys])}."
        )


def _all_fit(given, sizes):
    """Return whether axes are those of `sizes`, or all of length 1."""
    return all(map(_same, given, sizes)) or all(size in (1, None) for size in given)


def _is_like(given, shape, whole=False):
    """Return whether a shape is `shape`. The first of several axes may be 1, if not `whole`."""
    if len(given) != len(shape):
        return False
    if len(shape) == 1 or whole:
        return all(map(_same, given, shape))
    return _fits(given[0], shape[0]) and all(map(_same, given[1:], shape[1:]))


def _same(given, size):
    """Return whether two sizes may be equal. An unknown one (None, a symbol of JAX) may be any."""
    return not (isinstance(given, int) and isinstance(size, int)) or given == size


def _fits(given, size):
    """Return whether a size broadcasts to another."""
    return given == 1 or _same(given, size)


def _values(x):
    """Return the values of `x` as NumPy, or None while they are not known."""
    values = to_numpy_or_none(x)
    if values is None and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not keras.backend.is_keras_tensor(x):
            values = tf.get_static_value(x)  # a constant in a graph
    return None if values is None else np.asarray(values, "float32")


def _show(shape):
    sizes = [str(size) if isinstance(size, int) else "any" for size in shape]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
