"""From the masks a layer is given, parts and tensors, to the one it attends with."""

import functools
import operator

from keras import ops

from keras_attention import masks


def together(*parts):
    """The mask part that allows what all of `parts` allow; None, as a part, allows everything."""
    parts = [part for part in parts if part is not None]
    return functools.reduce(operator.and_, parts) if parts else None


def structure(layer, use_causal_mask=False):
    """The mask part that a call of an attention layer attends with, or None."""
    window = getattr(layer, "_sliding_window", None)  # where Keras's layer keeps it
    return together(
        layer.mask,
        masks.Window(window) if window else None,
        masks.Causal() if use_causal_mask else None,
    )


def positions_of(x, given=None):
    """`given`, or 0, 1, 2, ... along the second axis of `x`."""
    return ops.arange(ops.shape(x)[1], dtype="int32") if given is None else given


def causal(query, key, query_positions=None, key_positions=None):
    """Which key may be seen when none may come later: bool (1 or B, 1, T, S)."""
    return masks.materialize(
        masks.Causal(), positions_of(query, query_positions), positions_of(key, key_positions)
    )


def both(value_mask=None, key_mask=None):
    """The padding of keys, given once or twice: bool (B, S) or None."""
    if key_mask is None or key_mask is value_mask:
        return value_mask
    return masks.all_of(value_mask, key_mask)


def padding(query_mask=None, value_mask=None, key_mask=None):
    """Padding of queries, bool (B, T), and of keys, bool (B, S), as one mask (B, 1, T or 1, S)."""
    rows = query_mask if query_mask is None else ops.cast(query_mask, "bool")
    rows = rows if rows is None else ops.expand_dims(ops.expand_dims(rows, axis=1), axis=3)
    columns = (mask for mask in (value_mask, key_mask) if mask is not None)
    return masks.all_of(rows, *(masks.padding(mask) for mask in columns))


def segments(query_segments=None, key_segments=None):
    """Packed documents: bool (B, 1, T, S); the keys' segments default to the queries'."""
    if query_segments is None:
        return None
    return masks.same_segment(
        query_segments, query_segments if key_segments is None else key_segments
    )
