"""Attention of new tokens to those before them, whose keys and values a cache keeps."""

from keras import ops

from keras_attention import masks, scope


def open_place(layer, query, value, mask, heads, value_mask=None, **refused):
    """The place in the cache of this decoding scope that `layer` reads from and writes to.

    Args:
        query, value: what it attends with, and to: (B, T, D) and (B, S, D).
        mask: the mask part that it attends with, or None.
        heads: dict, name -> shape of what it keeps of a token: `{"key": (K, H), ...}`.
        value_mask: bool (B, S), as the layer was given it, or None.
        refused: call arguments that a cache cannot honour; one that is not None is an error.

    Returns:
        A `Place`; None outside of a scope, and in those where the layer computes as without one.
    """
    decoding = scope.current(scope.Decoding)
    if decoding is None:
        return None
    if given := [name for name, argument in refused.items() if argument is not None]:
        raise ValueError(
            f"{layer.name} decodes token by token and was given {given[0]}, which speaks of all "
            "tokens at once. Leave it out of models that decode, or call them without a cache."
        )
    if len(query.shape) != 3:
        raise ValueError(
            f"{layer.name} attends within a tensor of {len(query.shape)} axes: what decodes token "
            "by token is attention over (batch, length, features)."
        )
    place = decoding.place(layer, tuple(heads))
    if decoding.planning:
        _plan(layer, place, value, mask, heads, value_mask)
        return None
    return None if decoding.encoding and not _has_source(place, heads) else place


def _has_source(place, heads):
    """Whether what is attended to does not grow with the tokens, as in cross-attention."""
    return not any(name in place or f"recent_{name}" in place for name in heads)


def _plan(layer, place, value, mask, heads, value_mask):
    decoding, dtype = place.scope, layer.compute_dtype
    if value.shape[1] != decoding.length:
        kept = {f"source_{name}": scope.Source(shape, dtype) for name, shape in heads.items()}
        if value_mask is not None:
            kept["source_mask"] = scope.Source((), "bool")
    else:
        decoding.attends(place, mask)
        window = window_of(mask)
        kept = {name: scope.Sequence(shape, dtype, window) for name, shape in heads.items()}
        if value_mask is not None:
            of_mask, is_new = _place_of_mask(place, value_mask, window)
            if is_new:
                decoding.declare(of_mask, mask=scope.Sequence((), "bool", window))
    decoding.declare(place, **kept)


def window_of(mask):
    """How many tokens before a new one `mask` shows at most, or None for all."""
    if mask is None or mask.global_tokens():
        return None
    left, right = mask.band()
    return None if left is None or right is None or right > 0 else max(left, 1)


def looks_back(mask):
    """Whether it is sure that `mask` hides all that comes later."""
    if mask is None or mask.global_tokens():
        return False
    right = mask.band()[1]
    return right is not None and right <= 0


def recall(place, make, query, value, mask, value_mask=None, query_positions=None):
    """All that there is to attend to: what is kept, and behind it what is new and is kept now.

    Args:
        place: from `open_place`.
        make: function of positions, (S,) or (B, S), that makes of the value what is kept of it: a
            dict, name -> (B, ..., S, H). Not called for a source that was encoded before.
        query, value, mask, value_mask: as for `open_place`.
        query_positions: where the new tokens are, if that is not counted.

    Returns:
        The same names -> (B, ..., S, H); query positions, (T,) or (B, T), and key positions, (S,)
        or (B, S); and which places hold tokens, bool (1 or B, S), or None for all of them.
    """
    decoding = place.scope
    if query_positions is None:
        query_positions = decoding.positions(ops.shape(query)[1])
    if not _has_source(place, place.names):
        found, keys, is_token = _extend(place, make(query_positions), mask, value_mask)
    else:
        if decoding.encoding:
            new = make(ops.arange(ops.shape(value)[1], dtype="int32"))
            place.keep(**{f"source_{name}": x for name, x in new.items()})
            if value_mask is not None:
                place.keep(source_mask=ops.cast(value_mask, "bool"))
        found = place.get if decoding.encoding else place.__getitem__
        found = {name: found(f"source_{name}") for name in place.names}
        keys, is_token = ops.arange(_count(found), dtype="int32"), place.get("source_mask")
    return found, query_positions, keys, is_token


def heads_first(x):
    """(B, S, K, H) -> (B, K, S, H), and back."""
    return ops.transpose(x, (0, 2, 1, 3))


def is_first(decoding):
    """Whether the new tokens are known to be the first: they then see one another alone."""
    return isinstance(decoding.index, int) and decoding.index == 0


def _extend(place, heads, mask, value_mask):
    """`heads` (B, ..., T, H) of new tokens behind those kept; where all are; which are tokens."""
    decoding, length = place.scope, _count(heads)
    rolls = f"recent_{next(iter(heads))}" in place
    found = {name: _append(place, name, new, rolls) for name, new in heads.items()}
    count = _count(found)
    slots = ops.arange(count, dtype="int32")
    if rolls:
        slots = slots + (decoding.index + length - count)
    keys, is_token = _since_start(slots, decoding)
    if rolls and not is_first(decoding):
        is_token = masks.all_of(is_token, ops.expand_dims(slots >= 0, axis=0))
    elif not looks_back(mask) and not is_first(decoding):
        is_token = masks.all_of(is_token, ops.expand_dims(slots < decoding.index + length, axis=0))
    if value_mask is not None:
        is_token = masks.all_of(is_token, _extend_mask(place, value_mask, window_of(mask), rolls))
    return found, keys, is_token


def _count(heads):
    """S of the tensors (B, ..., S, H)."""
    return ops.shape(next(iter(heads.values())))[-2]


def _since_start(slots, decoding):
    """Where the tokens in `slots` (S,) are, and which slots are not before a row's start."""
    start = decoding.before.get("start")
    if start is None:
        return ops.maximum(slots, 0), None
    since = ops.expand_dims(slots, axis=0) - ops.expand_dims(start, axis=1)
    return ops.maximum(since, 0), since >= 0


def _append(place, name, new, rolls):
    """`new` (B, ..., T, H) behind what is kept, and kept; all that there is then to see."""
    name = f"recent_{name}" if rolls else name
    put = _roll if rolls else _write
    if f"{name}_scale" in place:
        numbers, scale = _quantize(new)
        numbers, scale = put(place, name, numbers), put(place, f"{name}_scale", scale)
        kept = ops.cast(numbers, scale.dtype) * scale
    else:
        kept = put(place, name, new)
    return ops.cast(kept, new.dtype)


def _write(place, name, new):
    """Into a tensor of fixed length, at the index."""
    axis, decoding = _axis(new), place.scope
    where = [0] * len(new.shape)
    where[axis] = decoding.index
    new = ops.cast(new, place[name].dtype)
    after = ops.slice_update(place[name], where, new)
    place.keep(**{name: after})
    return new if is_first(decoding) else after


def _roll(place, name, new):
    """At the end; as many of the newest are kept as there were before."""
    before, axis = place[name], _axis(new)
    new = ops.cast(new, before.dtype)
    both = ops.concatenate([before, new], axis=axis)
    newest = both[(slice(None),) * axis + (slice(-before.shape[axis], None),)]
    # In a traced loop a cache keeps its shape, which the slice of an unknown length has lost.
    place.keep(**{name: ops.reshape(newest, (-1, *before.shape[1:]))})
    return new if is_first(place.scope) else both


def _axis(x):
    """The axis of places: the last but one, or the last of (B, length)."""
    return max(len(x.shape) - 2, 1)


def _quantize(x):
    """Whole numbers from -127 to 127, and what to multiply them by, for each token and head."""
    x = ops.cast(x, "float32")
    scale = ops.maximum(ops.max(ops.abs(x), axis=-1, keepdims=True), 1e-8) / 127.0
    return ops.cast(ops.round(x / scale), "int8"), scale


def _extend_mask(place, value_mask, window, rolls):
    """Which of all places hold tokens by the masks of all calls, bool (B, S).

    Layers that are given one mask keep it once.
    """
    of_mask, is_new = _place_of_mask(place, value_mask, window)
    shared, key = place.scope.shared, ("extended", of_mask.prefix)
    if is_new:
        shared[key] = _append(of_mask, "mask", ops.cast(value_mask, "bool"), rolls)
    return shared[key]


def _place_of_mask(place, value_mask, window):
    """Where a mask is kept that layers with the same `window` share, and whether it is new."""
    shared = place.scope.shared
    key = ("mask", id(value_mask), window)
    if known := shared.get(key):
        return known[0], False
    number = sum(name[0] == "mask" for name in shared)
    of_mask = scope.Place(place.scope, f"tokens_{number}" if number else "tokens", place.layer)
    shared[key] = of_mask, value_mask  # which lives on, so that no other mask gets its id
    return of_mask, True
