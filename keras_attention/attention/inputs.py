"""Call arguments of attention layers: the masks they make, and what is refused of them."""

import dataclasses
import functools
import math
import operator

import keras
import numpy as np
from keras import ops

from keras_attention import masks
from keras_attention.attention import axes
from keras_attention.attention.kv_cache import looks_back
from keras_attention.positions.indices import to_numpy_or_none


@dataclasses.dataclass(frozen=True)
class AttentionInputs:
    """The tensors that one call of an attention layer is given, by the names of `call`.

    Args:
        query: (B, dims..., D). value, key: (B, dims..., D).
        attended: the axes of `query` that are attended over. As a sequence, a tensor has these in
            one axis, and all others in its batch.
    """

    query: object
    value: object
    key: object
    query_mask: object = None
    value_mask: object = None
    key_mask: object = None
    attention_mask: object = None
    segment_ids: object = None
    value_segment_ids: object = None
    query_positions: object = None
    value_positions: object = None
    attended: tuple = (1,)

    def check(self, owner, heads):
        """Refuses, in the name of a layer with this many heads, what does not fit."""
        given = {name: getattr(self, name) for name in (*_ROWS, "attention_mask")}
        check_given(owner, self.query.shape, self.value.shape, self.attended, heads, **given)

    @functools.cached_property
    def query_sequence(self):
        """(B, T, D)."""
        return axes.to_sequences(self.query, self.attended)

    @functools.cached_property
    def value_sequence(self):
        """(B, S, D)."""
        return axes.to_sequences(self.value, self.attended)

    @functools.cached_property
    def key_sequence(self):
        """(B, S, D)."""
        if self.key is self.value:
            return self.value_sequence
        return axes.to_sequences(self.key, self.attended)

    @property
    def query_padding(self):
        """Which queries are tokens, bool (B, T), or None for all."""
        return self._mask_to_sequence(self.query_mask)

    @property
    def key_padding(self):
        """Which keys are tokens, by one mask or both: bool (B, dims...), or None for all."""
        if self.key_mask is None or self.key_mask is self.value_mask:
            return self.value_mask
        return masks.all_of(self.value_mask, self.key_mask)

    def mask_tensor(self, segments=True):
        """What all masks but the query's allow: bool, broadcastable to (B, N, T, S), or None.

        `segments` are among them, or a kernel makes their mask itself, from `segment_pair`.
        """
        given = self.attention_mask
        if given is not None:
            given = ops.cast(ops.convert_to_tensor(given), "bool")
            given = axes.mask_to_sequences(given, self.query, self.attended)
        key_mask = None if self.key_mask is self.value_mask else self.key_mask
        padding = (self._mask_to_sequence(mask) for mask in (self.value_mask, key_mask))
        segments = segment_mask(self.segment_ids, self.value_segment_ids) if segments else None
        return masks.all_of(given, padding_mask(None, *padding), segments)

    def padding_lengths(self, mask_tensor):
        """The padding in numbers, if it comes after the tokens and no other mask is given, or None.

        `mask_tensor` is what the method of this name gave.
        """
        key_mask = self.key_padding
        others = (self.attention_mask, self.segment_ids, self.value_segment_ids)
        if key_mask is None or len(key_mask.shape) != 2 or any(x is not None for x in others):
            return None
        keys = count_tokens(key_mask)
        queries = keys if self.query_mask is key_mask else count_tokens(self.query_mask)
        return PaddingLengths(queries, keys, self.query_mask, mask_tensor)

    def segment_pair(self):
        """The documents of queries and keys, int (B, T) and (B, S), or None."""
        if self.segment_ids is None:
            segment_mask(self.segment_ids, self.value_segment_ids)  # refuses those of values alone
            return None
        values = self.segment_ids if self.value_segment_ids is None else self.value_segment_ids
        return tuple(ops.convert_to_tensor(x) for x in (self.segment_ids, values))

    def with_shared_positions(self):
        """The same, where query and value are one tensor: positions of either are of both."""
        if self.value is not self.query or self.key is not self.value:
            return self
        queries, values = self.query_positions, self.value_positions
        return dataclasses.replace(
            self,
            query_positions=values if queries is None else queries,
            value_positions=queries if values is None else values,
        )

    def in_cache(self, cached):
        """The same over all tokens that `cached`, a `CachedHeads`, holds."""
        return dataclasses.replace(
            self,
            value_mask=cached.mask,
            key_mask=None,
            query_positions=cached.query_positions,
            value_positions=cached.key_positions,
        )

    def _mask_to_sequence(self, mask):
        return mask if mask is None else axes.to_sequences(mask, self.attended, features=0)


@dataclasses.dataclass(frozen=True)
class PaddingLengths:
    """How many tokens come before the padding of each row, and the masks that say so.

    Args:
        queries, keys: int32 (B,); one tensor where queries and keys have one mask; or None.
        query_mask: bool (B, T), or None. attention_mask: bool (B, 1, 1, S).
    """

    queries: object
    keys: object
    query_mask: object
    attention_mask: object


def count_tokens(mask):
    """How many tokens each row of a mask (B, T) has: int32 (B,), or None for None."""
    return None if mask is None else ops.sum(ops.cast(mask, "int32"), axis=1)


def join_masks(*parts):
    """The mask part that allows what all of `parts` allow; None, as a part, allows everything."""
    parts = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, parts) if parts else None


def positions_of(x, given=None):
    """`given`, or 0, 1, 2, ... along the second axis of `x`."""
    return ops.arange(ops.shape(x)[1], dtype="int32") if given is None else given


def padding_mask(query_mask=None, value_mask=None, key_mask=None):
    """Padding of queries, bool (B, T), and of keys, bool (B, S), as one mask (B, 1, T or 1, S)."""
    rows = query_mask if query_mask is None else ops.cast(query_mask, "bool")
    rows = rows if rows is None else ops.expand_dims(ops.expand_dims(rows, axis=1), axis=3)
    columns = (mask for mask in (value_mask, key_mask) if mask is not None)
    return masks.all_of(rows, *(masks.padding(mask) for mask in columns))


def segment_mask(query_segments=None, key_segments=None):
    """Packed documents: bool (B, 1, T, S); the keys' segments default to the queries'."""
    if query_segments is None and key_segments is not None:
        raise ValueError(
            "value_segment_ids came without segment_ids, which say to which of these segments each "
            "query belongs. Give both; to hide padding alone, give value_mask=ids != 0."
        )
    return masks.same_segment(query_segments, key_segments)


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
}


def check_given(owner, query_shape, value_shape, attended=(1,), heads=None, **given):
    """Refuses call arguments that do not fit queries and values, and numbers that are no mask.

    Args:
        owner: str, what messages call the layer.
        query_shape, value_shape: (B, dims..., D), sizes or None.
        attended: which of the axes are attended over.
        heads: int, N, or None if there is no axis of heads that an `attention_mask` could have.
        given: the call arguments of `MultiHeadAttention` of these names, each a tensor, an array,
            a list or None: `query_mask`, `value_mask`, `key_mask`, `attention_mask`,
            `segment_ids`, `value_segment_ids`, `query_positions`, `value_positions`.
    """
    shapes = {"query": tuple(query_shape), "value": tuple(value_shape)}
    for name, shape in shapes.items():
        check_rank(owner, name, shape)
    attention_mask = given.pop("attention_mask", None)
    for name, x in given.items():
        side, _ = _ROWS[name]
        check_rows(owner, name, x, side, shapes[side], attended)
    if given.get("value_segment_ids") is None:
        check_rows(
            owner, "segment_ids", given.get("segment_ids"), "value", shapes["value"], attended
        )
    if attention_mask is not None:
        check_mask(owner, "attention_mask", attention_mask)
        _check_broadcastable(owner, shape_of(attention_mask), *shapes.values(), attended, heads)


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


def check_positions(owner, name, positions, length, batch=None):
    """Refuses positions that are not (T,) or (B, T) for T = `length` tokens."""
    if positions is None:
        return
    shape = shape_of(positions)
    if len(shape) not in (1, 2) or not (
        _same(shape[-1], length) and (len(shape) == 1 or _fits(shape[0], batch))
    ):
        raise ValueError(
            f"{owner} was given {name} of shape {shape}, {_POSITIONS}, for {_say(length)} tokens: "
            f"expected ({_say(length)},) or (batch, {_say(length)})."
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


def check_broadcastable(owner, name, x, shape):
    """Refuses a mask or a bias that does not broadcast to `shape`, (B, N, T, S)."""
    if x is None:
        return
    if name == "attention_mask":
        check_mask(owner, name, x)
    given = shape_of(x)
    tail = shape[len(shape) - len(given) :]
    if len(given) > len(shape) or not all(map(_fits, given, tail)):
        raise ValueError(
            f"{owner} was given {name} of shape {given}, which does not broadcast to "
            f"(batch, heads, queries, keys) = {_show(shape)}."
        )


def shape_of(x):
    """The shape of a tensor, an array or a list, with None for what is not known."""
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


def _check_broadcastable(owner, given, query_shape, value_shape, attended, heads):
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
    """Whether axes are those of `sizes`, or all of length 1."""
    return all(map(_same, given, sizes)) or all(size in (1, None) for size in given)


def _is_like(given, shape, whole=False):
    """Whether a shape is `shape`, of which the first of several axes may be 1, if not `whole`."""
    if len(given) != len(shape):
        return False
    if len(shape) == 1 or whole:
        return all(map(_same, given, shape))
    return _fits(given[0], shape[0]) and all(map(_same, given[1:], shape[1:]))


def _same(given, size):
    """Whether two sizes may be equal; an unknown one (None, a symbol of JAX) may equal any."""
    return not (isinstance(given, int) and isinstance(size, int)) or given == size


def _fits(given, size):
    """Whether a size broadcasts to another."""
    return given == 1 or _same(given, size)


def _values(x):
    """The values of `x` as NumPy, or None while they are not known."""
    values = to_numpy_or_none(x)
    if values is None and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not keras.backend.is_keras_tensor(x):
            values = tf.get_static_value(x)  # a constant in a graph
    return None if values is None else np.asarray(values, "float32")


def _show(shape):
    sizes = [_say(size) for size in shape]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def _say(size):
    return str(size) if isinstance(size, int) else "any"
