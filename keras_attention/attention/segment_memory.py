"""A memory of earlier segments: the newest tokens of a text, in tensors of fixed length."""

import dataclasses

import keras
from keras import ops

from keras_attention import masks
from keras_attention.core import scope


def filled_mask(count, length):
    """Return which entries of a memory hold tokens: bool (B, `length`).

    A memory is filled from the end: the last `count` (B,) entries of each row hold tokens.
    """
    index = ops.expand_dims(ops.arange(length, dtype="int32"), axis=0)
    return index >= length - ops.expand_dims(ops.cast(count, "int32"), axis=1)


def append_tokens(memory, count, new, mask=None):
    """Append tokens to a memory, and drop the oldest ones that no longer fit.

    Args:
        memory: list of tensors (B, M, ...), the old entries, at most M tokens per row.
        count: int (B,). In each row of the memory, the last `count` entries hold tokens.
        new: list of as many tensors (B, T, ...), the tokens to append.
        mask: bool (B, T), False = padding, which is left out. None appends all tokens.

    Returns:
        The new memory, in the dtypes of the old one, and its count. No gradient flows through them.
    """
    length = memory[0].shape[1]
    joined = [
        ops.concatenate([old, ops.cast(ops.stop_gradient(x), old.dtype)], axis=1)
        for old, x in zip(memory, new, strict=True)
    ]
    if mask is None:
        total = ops.cast(count, "int32") + ops.shape(new[0])[1]
        return [x[:, -length:] for x in joined], ops.minimum(total, length)
    is_token = ops.concatenate([filled_mask(count, length), ops.cast(mask, "bool")], axis=1)
    order = _last_tokens(is_token, length)
    total = ops.sum(ops.cast(is_token, "int32"), axis=1)
    return [_take_rows(x, order) for x in joined], ops.minimum(total, length)


def _last_tokens(is_token, length):
    """Return the indices (B, `length`) of the last tokens of each row, in order.

    If a row has fewer tokens, indices of padding come first.
    """
    size = ops.shape(is_token)[1]
    index = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    age = index - size * (1 - ops.cast(is_token, "int32"))  # negative for padding
    _, order = ops.top_k(age, length)
    return ops.flip(order, axis=1)


def _take_rows(x, order):
    """Return `x[b, order[b]]` for each batch row b, for x (B, S, ...) and order (B, M)."""
    shape = ops.shape(x)
    flat = ops.reshape(x, (-1, *shape[2:]))
    first = ops.expand_dims(ops.arange(shape[0], dtype="int32") * shape[1], axis=1)
    rows = ops.reshape(ops.cast(order, "int32") + first, (-1,))
    return ops.reshape(ops.take(flat, rows, axis=0), (-1, order.shape[1], *x.shape[2:]))


def join_past(layer, query, value, key, visibility):
    """Prepend hidden states of earlier segments to value and key (Dai et al., 2019, section 3.2).

    The hidden states of this segment are then stored in the memory of `layer` for the next call.

    Args:
        layer: a self-attention layer.
        query, value, key: the same tensor (B, T, D) in self-attention.
        visibility: the `Visibility`, the masks and positions of the call.

    Returns:
        Value, key and `Visibility` of M + T tokens, for a memory of M tokens. All three are
        unchanged in cross-attention, and if no memory is active (a `scope.SegmentMemory`).
    """
    memory = scope.current(scope.SegmentMemory)
    is_self_attention = value is query and key is value and len(query.shape) == 3
    if memory is None or not memory.length or not is_self_attention:
        return value, key, visibility
    if visibility.segments is not None:
        raise packed_text_error(layer)
    slot = memory.slot(layer, "hidden")
    if slot is None:
        return value, key, visibility
    if slot.tracing:
        dtype = keras.backend.standardize_dtype(query.dtype)
        hidden = scope.State((memory.length, query.shape[-1]), dtype)
        slot.declare(hidden=hidden, num_hidden=scope.State((), "int32"))
        return value, key, visibility
    hidden, count = slot["hidden"], slot["num_hidden"]
    [after], number = append_tokens([hidden], count, [query], visibility.key_mask)
    slot.update(hidden=after, num_hidden=number)
    joined = ops.concatenate([ops.cast(hidden, query.dtype), query], axis=1)
    return joined, joined, _see_past(visibility, query, filled_mask(count, memory.length))


def _see_past(visibility, segment, filled):
    """Return `visibility` extended to the M tokens of a memory, which come before the keys.

    `segment` (B, T, D) is the input of this call. `filled` (B, M) is True for entries of the memory
    that hold tokens.
    """
    length, attention_mask = filled.shape[1], visibility.attention_mask
    i, j = visibility.query_positions, visibility.key_positions
    if i is None and j is None:
        i = ops.arange(ops.shape(segment)[1], dtype="int32") + length
    i, j = (
        ops.cast(ops.convert_to_tensor(x), "int32")
        for x in (j if i is None else i, i if j is None else j)
    )
    before = ops.take(j, [0], axis=-1) + ops.arange(-length, 0, dtype="int32")
    key_mask = visibility.key_mask
    key_mask = key_mask if key_mask is None else ops.cast(key_mask, "bool")
    own = masks.all_of(ops.ones(ops.shape(segment)[:2], dtype="bool"), key_mask)
    if attention_mask is not None and not attention_mask.shape[-1] == 1 != segment.shape[1]:
        ones = ops.ones((*ops.shape(attention_mask)[:-1], length), dtype="bool")
        attention_mask = ops.concatenate([ones, attention_mask], axis=-1)  # the memory is visible
    return dataclasses.replace(
        visibility,
        attention_mask=attention_mask,
        key_mask=ops.concatenate([filled, own], axis=1),
        query_positions=i,
        key_positions=ops.concatenate([before, j], axis=-1),
    )


def packed_text_error(layer):
    """Return the error for a layer with a memory that is called with packed documents."""
    return ValueError(
        f"{layer.name} has a memory of one document per row, but segment_ids packs several "
        "documents into a row. Leave one of the two out."
    )
