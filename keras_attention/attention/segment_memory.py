"""Memory of earlier segments: the newest tokens of a text, of fixed length."""

import dataclasses

import keras
from keras import ops

from keras_attention import masks
from keras_attention.attention.inputs import positions_of
from keras_attention.core import scope


def filled_mask(count, length):
    """Which of M = `length` slices hold a token, the last `count` (B,) of a row: bool (B, M)."""
    index = ops.expand_dims(ops.arange(length, dtype="int32"), axis=0)
    return index >= length - ops.expand_dims(ops.cast(count, "int32"), axis=1)


def append_tokens(memory, count, new, mask=None):
    """Appends tokens to those remembered, and drops the oldest that no longer fit.

    Args:
        memory: list of tensors (B, M, ...), of which the last `count` (B,) hold tokens.
        new: list of as many tensors (B, T, ...).
        mask: bool (B, T), False = padding, which is not remembered; or None.

    Returns:
        The new memory, in the dtype of the old, and its count. No gradient flows through either.
    """
    length = memory[0].shape[1]
    both = [
        ops.concatenate([old, ops.cast(ops.stop_gradient(x), old.dtype)], axis=1)
        for old, x in zip(memory, new, strict=True)
    ]
    if mask is None:
        total = ops.cast(count, "int32") + ops.shape(new[0])[1]
        return [x[:, -length:] for x in both], ops.minimum(total, length)
    is_token = ops.concatenate([filled_mask(count, length), ops.cast(mask, "bool")], axis=1)
    order = _last_tokens(is_token, length)
    total = ops.sum(ops.cast(is_token, "int32"), axis=1)
    return [_take_rows(x, order) for x in both], ops.minimum(total, length)


def _last_tokens(is_token, length):
    """Indices (B, length) of each row's last tokens in order, behind others where they are few."""
    size = ops.shape(is_token)[1]
    index = ops.expand_dims(ops.arange(size, dtype="int32"), axis=0)
    age = index - size * (1 - ops.cast(is_token, "int32"))  # negative: no token
    _, order = ops.top_k(age, length)
    return ops.flip(order, axis=1)


def _take_rows(x, order):
    """Row b of the result is `x[b, order[b]]`; x (B, S, ...), order (B, M)."""
    shape = ops.shape(x)
    flat = ops.reshape(x, (-1, *shape[2:]))
    first = ops.expand_dims(ops.arange(shape[0], dtype="int32") * shape[1], axis=1)
    rows = ops.reshape(ops.cast(order, "int32") + first, (-1,))
    return ops.reshape(ops.take(flat, rows, axis=0), (-1, order.shape[1], *x.shape[2:]))


@dataclasses.dataclass(frozen=True)
class SegmentPast:
    """The tokens of earlier segments, in front of those of this one.

    Attributes:
        hidden: (B, M, D).
        mask: bool (B, M), False where the memory is not filled yet.
    """

    hidden: object
    mask: object

    def join_hidden(self, segment):
        """The hidden states of the memory and the segment, (B, M + T, D)."""
        return ops.concatenate([ops.cast(self.hidden, segment.dtype), segment], axis=1)

    def join_masks(self, segment, *segment_masks):
        """Which of the M + T are tokens, bool (B, M + T)."""
        given = [ops.cast(mask, "bool") for mask in segment_masks if mask is not None]
        own = masks.all_of(ops.ones(ops.shape(segment)[:2], dtype="bool"), *given)
        return ops.concatenate([self.mask, own], axis=1)

    def widen_mask(self, attention_mask, segment):
        """A mask (..., T, T) of the segment as one (..., T, M + T) that hides no memory."""
        if attention_mask is None:
            return None
        attention_mask = ops.cast(ops.convert_to_tensor(attention_mask), "bool")
        if attention_mask.shape[-1] == 1 != segment.shape[1]:
            return attention_mask  # one column stands for all keys
        ones = ops.ones((*ops.shape(attention_mask)[:-1], self.hidden.shape[1]), dtype="bool")
        return ops.concatenate([ones, attention_mask], axis=-1)

    def join_positions(self, segment, query_positions=None, value_positions=None):
        """Positions of the T queries, and of the M + T keys that end with those of the segment."""
        length = self.hidden.shape[1]
        default = positions_of(segment) + length
        given = [x for x in (query_positions, value_positions) if x is not None] or [default]
        queries, keys = (ops.cast(ops.convert_to_tensor(x), "int32") for x in (given[0], given[-1]))
        before = ops.take(keys, [0], axis=-1) + ops.arange(-length, 0, dtype="int32")
        return queries, ops.concatenate([before, keys], axis=-1)


def recall_past(layer, query, value, key, value_mask=None, key_mask=None, **packed):
    """The memory of `layer`, a self-attention, of earlier segments (Dai et al., 2019, 3.2).

    The hidden states of this segment join its memory for the next call. `packed` are arguments
    that pack several texts into a row, which a memory cannot tell apart.

    Returns:
        `SegmentPast`, or None outside a `scope.SegmentMemory` and for cross-attention.
    """
    memory = scope.current(scope.SegmentMemory)
    if memory is None or not memory.length or value is not query or key is not value:
        return None
    if len(query.shape) != 3:
        return None
    if given := [name for name, x in packed.items() if x is not None]:
        raise packed_text_error(layer, given[0])
    slot = memory.slot(layer, "hidden")
    if slot is None:
        return None
    if slot.tracing:
        dtype = keras.backend.standardize_dtype(query.dtype)
        hidden = scope.State((memory.length, query.shape[-1]), dtype)
        slot.declare(hidden=hidden, num_hidden=scope.State((), "int32"))
        return None
    hidden, count = slot["hidden"], slot["num_hidden"]
    tokens = masks.all_of(value_mask, key_mask)
    [after], number = append_tokens([hidden], count, [query], tokens)
    slot.update(hidden=after, num_hidden=number)
    return SegmentPast(hidden, filled_mask(count, memory.length))


def join_past(layer, inputs):
    """The `AttentionInputs` of `layer` with what it remembers of earlier segments in front."""
    segment, padding = inputs.query, (inputs.value_mask, inputs.key_mask)
    packed = {"segment_ids": inputs.segment_ids, "value_segment_ids": inputs.value_segment_ids}
    past = recall_past(layer, segment, inputs.value, inputs.key, *padding, **packed)
    if past is None:
        return inputs
    joined, positions = past.join_hidden(segment), (inputs.query_positions, inputs.value_positions)
    query_positions, value_positions = past.join_positions(segment, *positions)
    return dataclasses.replace(
        inputs,
        value=joined,
        key=joined,
        value_mask=past.join_masks(segment, *padding),
        key_mask=None,
        attention_mask=past.widen_mask(inputs.attention_mask, segment),
        query_positions=query_positions,
        value_positions=value_positions,
    )


def packed_text_error(layer, argument):
    """The error for several texts in a row, where a memory is of one text."""
    return ValueError(
        f"{layer.name} remembers earlier segments of one text, and {argument} packs several texts "
        "into a row: the memory would not know whose it is. Leave one of the two out."
    )
