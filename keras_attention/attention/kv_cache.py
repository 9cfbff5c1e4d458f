"""The cache of attention layers: keys and values of earlier tokens, with new ones behind them."""

import dataclasses

from keras import ops

from keras_attention import masks
from keras_attention.core import in_place, scope


def extend_cache(layer, query, value, key, visibility):
    """Appends new keys and values to those that a decoding scope keeps for `layer`.

    Args:
        layer: an `AttentionLayer`. query: (B, T, D). value, key: (B, S, D).
        visibility: `Visibility` of the new tokens, whose `mask` and `key_mask` a cache takes.
            Without positions they count on from the tokens in the cache.

    Returns:
        All that the new tokens may attend to, a dict, name -> (B, ..., S, H), and its `Visibility`;
        or None where the layer computes as without a cache.
    """
    decoding = scope.current(scope.Decoding)
    if decoding is None:
        return None
    _check_arguments(layer, query, visibility)
    slot, kept = decoding.slot(layer), layer.cache_shapes
    if decoding.tracing:
        _declare(slot, value, kept, visibility)
        return None
    of_source = not any(name in slot or f"recent_{name}" in slot for name in kept)
    if decoding.encoding and not of_source:
        return None
    i = visibility.query_positions
    i = decoding.positions(ops.shape(query)[1]) if i is None else i

    def project(positions):
        at_positions = dataclasses.replace(visibility, key_positions=positions)
        heads = layer.project_for_cache(value, key, at_positions)
        _check_entries(layer, heads, kept)
        return heads

    if of_source:
        heads, j, key_mask = _read_source(slot, project, value, visibility.key_mask)
    else:
        heads, j, key_mask = _append_tokens(slot, project(i), visibility)
    return heads, dataclasses.replace(
        visibility, key_mask=key_mask, query_positions=i, key_positions=j
    )


def rotate_and_transpose(position, heads, positions):
    """Map heads, name -> (B, S, ...), to those that a cache keeps: name -> (B, ..., S, H).

    The heads called `"key"` are rotated. All of four axes, (B, S, K, H), become (B, K, S, H).
    """
    if position is not None:
        heads = heads | {"key": position.rotate_key(heads["key"], positions)}
    return {name: heads_first(x) if len(x.shape) == 4 else x for name, x in heads.items()}


def _check_entries(layer, heads, kept):
    """Refuses heads other than what is `kept` of every token."""
    given = {name: (*x.shape[1:-2], x.shape[-1]) for name, x in heads.items()}
    stated = {name: tuple(shape) for name, shape in kept.items()}
    if given != stated:
        raise ValueError(
            f"{layer.name} gives its cache {given} of a token, and its cache_shapes state "
            f"{stated}. State there what project_key_value (or project_for_cache) gives: each "
            "name, and its shape without batch and length."
        )


def heads_first(x):
    """Map (B, S, K, H) -> (B, K, S, H), and back."""
    return ops.transpose(x, (0, 2, 1, 3))


def _check_arguments(layer, query, visibility):
    """Refuses call arguments that a cache cannot honour."""
    shared = visibility.key_positions is visibility.query_positions
    refused = {
        "attention_mask": visibility.attention_mask,
        "value_positions": None if shared else visibility.key_positions,
        "segment_ids": visibility.segments,
    }
    if given := [name for name, argument in refused.items() if argument is not None]:
        raise ValueError(
            f"{layer.name} decodes token by token and was given {given[0]}, which is about all "
            "tokens at once. Leave it out of models that decode, or call them without a cache."
        )
    if len(query.shape) != 3:
        raise ValueError(
            f"{layer.name} attends within a tensor of {len(query.shape)} axes: what decodes token "
            "by token is attention over (batch, length, features)."
        )


def _declare(slot, value, shapes, visibility):
    """Declare the entries of a layer. A value of another length than the tokens is a source."""
    dtype, key_mask = slot.layer.compute_dtype, visibility.key_mask
    if value.shape[1] != slot.scope.spec.length:
        entries = {f"source_{name}": scope.Source(shape, dtype) for name, shape in shapes.items()}
        if key_mask is not None:
            entries["source_mask"] = scope.Source((), "bool")
    else:
        slot.declare_mask(visibility.mask)
        window = window_of(visibility.mask)
        entries = {name: scope.Sequence(shape, dtype, window) for name, shape in shapes.items()}
        if key_mask is not None:
            of_mask, is_new = _mask_slot(slot, key_mask, window)
            if is_new:
                of_mask.declare(mask=scope.Sequence((), "bool", window))
    slot.declare(**entries)


def window_of(mask):
    """Return how many tokens before a new one `mask` allows at most, or None for all."""
    if mask is None or mask.global_tokens():
        return None
    left, right = mask.band()
    return None if left is None or right is None or right > 0 else max(left, 1)


def looks_back(mask):
    """Return whether `mask` is known to hide all later tokens."""
    if isinstance(mask, masks.Both):
        return looks_back(mask.left) or looks_back(mask.right)
    if mask is None or mask.global_tokens():
        return False
    right = mask.band()[1]
    return right is not None and right <= 0


def _read_source(slot, project, value, key_mask):
    """Return heads, key positions and key mask of a source. Encoding writes them first."""
    if slot.scope.encoding:
        new = project(ops.arange(ops.shape(value)[1], dtype="int32"))
        slot.update(**{f"source_{name}": x for name, x in new.items()})
        if key_mask is not None:
            slot.update(source_mask=ops.cast(key_mask, "bool"))
    heads = {name: slot[f"source_{name}"] for name in slot.layer.cache_shapes}
    j = ops.arange(_length_of(heads), dtype="int32")
    return heads, j, slot["source_mask"] if "source_mask" in slot else None


def is_first(decoding):
    """Return whether the new tokens are the first, which attend only to one another."""
    return isinstance(decoding.index, int) and decoding.index == 0


def _append_tokens(slot, new, visibility):
    """Append `new` (B, ..., T, H) and return all heads, key positions and key mask."""
    decoding, length = slot.scope, _length_of(new)
    mask, key_mask = visibility.mask, visibility.key_mask
    rolls = f"recent_{next(iter(new))}" in slot
    heads = {name: _append(slot, name, x, rolls) for name, x in new.items()}
    count = _length_of(heads)
    indices = ops.arange(count, dtype="int32")
    if rolls:
        indices = indices + (decoding.index + length - count)
    start, since, is_token = decoding.cache.get("start"), indices, None
    if start is not None:  # rows begin with padding
        since = ops.expand_dims(indices, axis=0) - ops.expand_dims(start, axis=1)
        is_token = since >= 0
    j = ops.maximum(since, 0)
    if rolls and not is_first(decoding):
        is_token = masks.all_of(is_token, ops.expand_dims(indices >= 0, axis=0))
    elif not looks_back(mask) and not is_first(decoding):
        filled = indices < decoding.index + length
        is_token = masks.all_of(is_token, ops.expand_dims(filled, axis=0))
    if key_mask is not None:
        is_token = masks.all_of(is_token, _append_mask(slot, key_mask, window_of(mask), rolls))
    return heads, j, is_token


def _length_of(heads):
    """S of the tensors (B, ..., S, H)."""
    return ops.shape(next(iter(heads.values())))[-2]


def _append(slot, name, new, rolls):
    """Append `new` (B, ..., T, H) to an entry of the cache, and return the whole entry."""
    name = f"recent_{name}" if rolls else name
    write = _write_rolling if rolls else _write_at_index
    if f"{name}_scale" in slot:
        x = ops.cast(new, "float32")  # to whole numbers from -127 to 127, by token and head
        scale = ops.maximum(ops.max(ops.abs(x), axis=-1, keepdims=True), 1e-8) / 127.0
        numbers = ops.cast(ops.round(x / scale), "int8")
        numbers, scale = write(slot, name, numbers), write(slot, f"{name}_scale", scale)
        kept = ops.cast(numbers, scale.dtype) * scale
    else:
        kept = write(slot, name, new)
    return ops.cast(kept, new.dtype)


def _write_at_index(slot, name, new):
    """Writes into a tensor of fixed length, at the scope's index."""
    axis, decoding = _length_axis(new), slot.scope
    _check_room(slot, name, new, axis)
    new = ops.cast(new, slot[name].dtype)
    after = in_place.write(slot[name], axis, decoding.index, new)
    slot.update(**{name: after})
    return new if is_first(decoding) else after


def _check_room(slot, name, new, axis):
    """Refuses tokens behind the end, which would overwrite the last ones.

    It raises at once where sizes are known, else when the graph runs, if the backend can.
    """
    index, length, room = slot.scope.index, ops.shape(new)[axis], ops.shape(slot[name])[axis]
    more = "Begin with a larger max_length, or keep only the newest: memory_length=..."
    if not all(isinstance(size, int) for size in (index, length, room)):
        if ("room", name) not in slot.scope.shared:  # once: others have as much room
            slot.scope.shared["room", name] = room
            sentence = f"The new tokens do not fit the cache of {slot.layer.name}. {more}"
            in_place.assert_room(index, length, room, sentence)
    elif index + length > room:
        raise ValueError(
            f"{length} tokens after {index} do not fit the cache of {slot.layer.name}, which has "
            f"room for {room}. {more}"
        )


def _write_rolling(slot, name, new):
    """Appends to a tensor that keeps only the newest tokens."""
    before, axis = slot[name], _length_axis(new)
    new = ops.cast(new, before.dtype)
    both = ops.concatenate([before, new], axis=axis)
    newest = both[(slice(None),) * axis + (slice(-before.shape[axis], None),)]
    # In a traced loop a cache keeps its shape, which the slice of an unknown length has lost.
    slot.update(**{name: ops.reshape(newest, (-1, *before.shape[1:]))})
    return new if is_first(slot.scope) else both


def _length_axis(x):
    """Return the axis of the length: the last but one, or the last of (B, length)."""
    return max(len(x.shape) - 2, 1)


def _append_mask(slot, key_mask, window, rolls):
    """Append to the mask (B, S) of all calls. Layers that receive the same mask keep it once."""
    of_mask, is_new = _mask_slot(slot, key_mask, window)
    shared, key = slot.scope.shared, ("extended", of_mask.prefix)
    if is_new:
        shared[key] = _append(of_mask, "mask", ops.cast(key_mask, "bool"), rolls)
    return shared[key]


def _mask_slot(slot, key_mask, window):
    """Return the slot of a mask that layers with the same `window` share, and whether it is new."""
    shared = slot.scope.shared
    key = ("mask", id(key_mask), window)
    if known := shared.get(key):
        return known[0], False
    number = sum(name[0] == "mask" for name in shared)
    prefix = f"tokens_{number}" if number else "tokens"
    of_mask = scope.CacheSlot(slot.scope, prefix, slot.layer)
    shared[key] = of_mask, key_mask  # kept alive, so that no other mask gets its id
    return of_mask, True
