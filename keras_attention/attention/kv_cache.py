"""The cache of attention layers: keys and values of earlier tokens."""

import dataclasses

from keras import ops

from keras_attention import masks
from keras_attention.core import in_place, scope


def extend_cache(layer, query, value, key, visibility):
    """Append a layer's new keys and values to the cache, if a model is decoding token by token.

    The cache belongs to the active `scope.Decoding`. If the value is the output of an encoder (a
    source), its keys and values are stored in the first call and reused later.

    Args:
        layer: an `AttentionLayer`.
        query: (B, T, D), the new tokens.
        value: (B, S, D), the tokens to attend to.
        key: (B, S, D), the same or other features of these tokens.
        visibility: `Visibility` of the new tokens. If it has no positions, the tokens follow those
            in the cache.

    Returns:
        A pair (heads, visibility), or None if this call does not use a cache. `heads` is a dict of
        the cached and new keys and values by name, tensors (B, ..., S, H). `visibility` is for
        these tokens.
    """
    decoding = scope.current(scope.Decoding)
    if decoding is None:
        return None
    _check_arguments(layer, query, visibility)
    slot, shapes = decoding.slot(layer), layer.cache_shapes
    if decoding.tracing:
        _declare(slot, value, shapes, visibility)
        return None
    has_source = not any(name in slot or f"recent_{name}" in slot for name in shapes)
    if decoding.encoding and not has_source:
        return None
    i = visibility.query_positions
    i = decoding.positions(ops.shape(query)[1]) if i is None else i

    def project(positions):
        at_positions = dataclasses.replace(visibility, key_positions=positions)
        heads = layer.project_for_cache(value, key, at_positions)
        _check_entries(layer, heads, shapes)
        return heads

    if has_source:
        heads, j, key_mask = _read_source(slot, project, value, visibility.key_mask)
    else:
        heads, j, key_mask = _append_tokens(slot, project(i), visibility)
    return heads, dataclasses.replace(
        visibility, key_mask=key_mask, query_positions=i, key_positions=j
    )


def rotate_and_transpose(position, heads, positions):
    """Convert heads (B, S, ...), a dict keyed by name, to the layout of a cache.

    The entry `"key"` is rotated by `position`, unless `position` is None. `positions` are the
    positions of the S tokens, int (S,) or (B, S). Tensors (B, S, K, H) are transposed to (B, K, S,
    H), and tensors (B, S, features) are unchanged.
    """
    if position is not None:
        heads = heads | {"key": position.rotate_key(heads["key"], positions)}
    return {name: heads_first(x) if len(x.shape) == 4 else x for name, x in heads.items()}


def _check_entries(layer, heads, expected):
    """Raise a ValueError if projected heads differ from `expected`, the layer's `cache_shapes`."""
    shapes = {name: (*x.shape[1:-2], x.shape[-1]) for name, x in heads.items()}
    expected = {name: tuple(shape) for name, shape in expected.items()}
    if shapes != expected:
        raise ValueError(
            f"{layer.name} gives its cache {shapes} for a token, but its cache_shapes are "
            f"{expected}. List there each name that project_key_value (or project_for_cache) "
            "returns, with its shape without batch and length."
        )


def heads_first(x):
    """Transpose (B, S, K, H) to (B, K, S, H), or back."""
    return ops.transpose(x, (0, 2, 1, 3))


def _check_arguments(layer, query, visibility):
    """Raise a ValueError for call arguments that do not work with a cache."""
    shared = visibility.key_positions is visibility.query_positions
    refused = {
        "attention_mask": visibility.attention_mask,
        "value_positions": None if shared else visibility.key_positions,
        "segment_ids": visibility.segments,
    }
    if names := [name for name, argument in refused.items() if argument is not None]:
        raise ValueError(
            f"{layer.name} decodes token by token and was given {names[0]}, which describes all "
            "tokens at once. Leave it out of models that decode, or call them without a cache."
        )
    if len(query.shape) != 3:
        raise ValueError(
            f"{layer.name} attends within a tensor of {len(query.shape)} axes. Decoding with a "
            "cache needs (batch, length, features)."
        )


def _declare(slot, value, shapes, visibility):
    """Declare the cache entries of a layer while its model is traced to find them.

    If the value is not as long as the cache, it is a source: the output of an encoder. `slot` is
    the layer's part of the cache, and `shapes` are its `cache_shapes`.
    """
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
            mask_slot, is_new = _mask_slot(slot, key_mask, window)
            if is_new:
                mask_slot.declare(mask=scope.Sequence((), "bool", window))
    slot.declare(**entries)


def window_of(mask):
    """Return how many of the newest tokens a cache must keep, or None for all.

    With a sliding window as `mask`, no later query sees older tokens.
    """
    if mask is None or mask.global_tokens():
        return None
    left, right = mask.band()
    return None if left is None or right is None or right > 0 else max(left, 1)


def looks_back(mask):
    """Return whether `mask` is known to hide all later tokens, as a causal mask does."""
    if isinstance(mask, masks.Both):
        return looks_back(mask.left) or looks_back(mask.right)
    if mask is None or mask.global_tokens():
        return False
    right = mask.band()[1]
    return right is not None and right <= 0


def _read_source(slot, project, value, key_mask):
    """Return heads, key positions and key mask of a source (an encoder's output) from the cache.

    In the call that encodes the source, first compute its heads by `project`, a function of key
    positions, and store them. `slot` holds the layer's cache entries, and `value` is (B, S, D).
    """
    if slot.scope.encoding:
        new = project(ops.arange(ops.shape(value)[1], dtype="int32"))
        slot.update(**{f"source_{name}": x for name, x in new.items()})
        if key_mask is not None:
            slot.update(source_mask=ops.cast(key_mask, "bool"))
    heads = {name: slot[f"source_{name}"] for name in slot.layer.cache_shapes}
    j = ops.arange(_length_of(heads), dtype="int32")
    return heads, j, slot["source_mask"] if "source_mask" in slot else None


def is_first(decoding):
    """Return whether the new tokens are the first tokens in the cache.

    `decoding` is the active `Decoding`, the scope in which a model decodes with a cache.
    """
    return isinstance(decoding.index, int) and decoding.index == 0


def _append_tokens(slot, new, visibility):
    """Append the heads of new tokens to the cache.

    `slot` holds the layer's cache entries. `new` is a dict of tensors (B, ..., T, H) keyed by name.
    Return the heads of all tokens, the positions of their keys, and a mask (B or 1, S) of the
    entries that hold tokens, or None.
    """
    decoding, length = slot.scope, _length_of(new)
    mask, key_mask = visibility.mask, visibility.key_mask
    rolls = f"recent_{next(iter(new))}" in slot
    heads = {name: _append(slot, name, x, rolls) for name, x in new.items()}
    count = _length_of(heads)
    indices = ops.arange(count, dtype="int32")
    if rolls:
        indices = indices + (decoding.index + length - count)
    start, positions, is_token = decoding.cache.get("start"), indices, None
    if start is not None:  # rows begin with padding
        positions = ops.expand_dims(indices, axis=0) - ops.expand_dims(start, axis=1)
        is_token = positions >= 0
    j = ops.maximum(positions, 0)
    if rolls and not is_first(decoding):
        is_token = masks.all_of(is_token, ops.expand_dims(indices >= 0, axis=0))
    elif not looks_back(mask) and not is_first(decoding):
        filled = indices < decoding.index + length
        is_token = masks.all_of(is_token, ops.expand_dims(filled, axis=0))
    if key_mask is not None:
        is_token = masks.all_of(is_token, _append_mask(slot, key_mask, window_of(mask), rolls))
    return heads, j, is_token


def _length_of(heads):
    """Return the length S of heads, a dict of tensors (B, ..., S, H)."""
    return ops.shape(next(iter(heads.values())))[-2]


def _append(slot, name, new, rolls):
    """Append `new` (B, ..., T, H) to an entry of the cache, and return the whole entry.

    `slot` holds the layer's entries, of which one has the name `name`. If `rolls`, the entry holds
    only the newest tokens.
    """
    name = f"recent_{name}" if rolls else name
    write = _write_rolling if rolls else _write_at_index
    if f"{name}_scale" in slot:
        x = ops.cast(new, "float32")  # quantized to int8 with one scale per token and head
        scale = ops.maximum(ops.max(ops.abs(x), axis=-1, keepdims=True), 1e-8) / 127.0
        numbers = ops.cast(ops.round(x / scale), "int8")
        numbers, scale = write(slot, name, numbers), write(slot, f"{name}_scale", scale)
        whole = ops.cast(numbers, scale.dtype) * scale
    else:
        whole = write(slot, name, new)
    return ops.cast(whole, new.dtype)


def _write_at_index(slot, name, new):
    """Write `new` at the scope's index into an entry of fixed length, and return the entry.

    `slot` is the `CacheSlot`, the entries of one layer, and `name` the name of the entry.
    """
    axis, decoding = _length_axis(new), slot.scope
    _check_room(slot, name, new, axis)
    new = ops.cast(new, slot[name].dtype)
    after = in_place.write(slot[name], axis, decoding.index, new)
    slot.update(**{name: after})
    return new if is_first(decoding) else after


def _check_room(slot, name, new, axis):
    """Raise a ValueError if the new tokens do not fit the cache entry `name` along `axis`.

    If sizes are dynamic, the graph raises the error at run time, on backends that support it.
    """
    index, length, room = slot.scope.index, ops.shape(new)[axis], ops.shape(slot[name])[axis]
    fix = "Begin with a larger max_length, or keep only the newest tokens: memory_length=..."
    if not all(isinstance(size, int) for size in (index, length, room)):
        if ("room", name) not in slot.scope.shared:  # checked once, as all layers have equal room
            slot.scope.shared["room", name] = room
            message = f"The new tokens do not fit the cache of {slot.layer.name}. {fix}"
            in_place.assert_room(index, length, room, message)
    elif index + length > room:
        raise ValueError(
            f"{length} tokens after {index} do not fit the cache of {slot.layer.name}, which has "
            f"room for {room}. {fix}"
        )


def _write_rolling(slot, name, new):
    """Append `new` to an entry that holds only the newest tokens, and return old and new tokens.

    `slot` is the `CacheSlot`, the entries of one layer, and `name` the name of the entry.
    """
    before, axis = slot[name], _length_axis(new)
    new = ops.cast(new, before.dtype)
    joined = ops.concatenate([before, new], axis=axis)
    newest = joined[(slice(None),) * axis + (slice(-before.shape[axis], None),)]
    # A traced loop needs a cache of static shape, which a slice of unknown length does not have.
    slot.update(**{name: ops.reshape(newest, (-1, *before.shape[1:]))})
    return new if is_first(slot.scope) else joined


def _length_axis(x):
    """Return the length axis of (B, ..., length, H), the second to last, or of (B, length)."""
    return max(len(x.shape) - 2, 1)


def _append_mask(slot, key_mask, window, rolls):
    """Append `key_mask` to the mask of all cached tokens, and return the whole mask (B, S).

    `window` is the number of newest tokens to keep, or None. If `rolls`, older ones are dropped.
    Layers that receive the same mask share one entry, which is extended only once.
    """
    mask_slot, is_new = _mask_slot(slot, key_mask, window)
    shared, key = slot.scope.shared, ("extended", mask_slot.prefix)
    if is_new:
        shared[key] = _append(mask_slot, "mask", ops.cast(key_mask, "bool"), rolls)
    return shared[key]


def _mask_slot(slot, key_mask, window):
    """Return the cache entries (a slot) of `key_mask`, and whether they are new in this call.

    All layers with the same mask and `window` share a slot.
    """
    shared = slot.scope.shared
    key = ("mask", id(key_mask), window)
    if entry := shared.get(key):
        return entry[0], False
    number = sum(name[0] == "mask" for name in shared)
    prefix = f"tokens_{number}" if number else "tokens"
    mask_slot = scope.CacheSlot(slot.scope, prefix, slot.layer)
    shared[key] = mask_slot, key_mask  # keep the mask alive, so that no other mask gets its id
    return mask_slot, True
