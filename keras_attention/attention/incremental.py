"""Attention of new tokens to those before them, whose keys and values a cache keeps."""

import dataclasses

from keras import ops

from keras_attention import in_place, masks, scope


@dataclasses.dataclass(frozen=True)
class Seen:
    """All that new tokens may attend to, as a cache keeps it.

    Attributes:
        heads: dict, name -> (B, ..., S, H).
        query_positions, key_positions: int (T,) or (B, T), and (S,) or (B, S).
        mask: bool (1 or B, S), which places hold tokens, or None for all of them.
    """

    heads: dict
    query_positions: object
    key_positions: object
    mask: object

    @property
    def where(self):
        """The positions, by the names that `attend` has for them."""
        return {"query_positions": self.query_positions, "key_positions": self.key_positions}


def recall(
    layer, make, kept, query, value, *, mask, value_mask=None, query_positions=None, **refused
):
    """What the cache of a decoding scope keeps for `layer`, with what is new behind it, kept now.

    Args:
        make: function of positions, (S,) or (B, S), that makes of the value what is kept of it: a
            dict, name -> (B, ..., S, H). Not called for a source that was encoded before.
        kept: dict, name -> its shape for one token: `{"key": (K, H), ...}`.
        query, value: what the layer attends with, and to: (B, T, D) and (B, S, D).
        mask: the mask part that it attends with, or None.
        value_mask: bool (B, S), as the layer was given it, or None.
        query_positions: where the new tokens are, if that is not counted.
        refused: call arguments that a cache cannot honour; one that is not None is an error.

    Returns:
        `Seen`; None outside of a scope, and in those where the layer computes as without one.
    """
    decoding = scope.current(scope.Decoding)
    if decoding is None:
        return None
    _check(layer, query, refused)
    place = decoding.place(layer)
    if decoding.planning:
        _plan(layer, place, value, mask, kept, value_mask)
        return None
    of_source = not any(name in place or f"recent_{name}" in place for name in kept)
    if decoding.encoding and not of_source:
        return None
    if query_positions is None:
        query_positions = decoding.positions(ops.shape(query)[1])
    if of_source:
        return _source(place, make, kept, value, value_mask, query_positions)
    return _extend(place, make(query_positions), mask, value_mask, query_positions)


def to_keep(position, key, value, positions):
    """Keys (B, S, K, H), turned, and values (B, S, K, Hv) as a cache keeps them, heads first."""
    if position is not None:
        key = position.rotate_key(key, positions)
    return {"key": heads_first(key), "value": heads_first(value)}


def heads_first(x):
    """(B, S, K, H) -> (B, K, S, H), and back."""
    return ops.transpose(x, (0, 2, 1, 3))


def _check(layer, query, refused):
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


def _source(place, make, kept, value, value_mask, query_positions):
    """`Seen` of a source, which is kept when it is encoded."""
    if place.scope.encoding:
        new = make(ops.arange(ops.shape(value)[1], dtype="int32"))
        place.keep(**{f"source_{name}": x for name, x in new.items()})
        if value_mask is not None:
            place.keep(source_mask=ops.cast(value_mask, "bool"))
    heads = {name: place[f"source_{name}"] for name in kept}
    keys = ops.arange(_count(heads), dtype="int32")
    mask = place["source_mask"] if "source_mask" in place else None
    return Seen(heads, query_positions, keys, mask)


def is_first(decoding):
    """Whether the new tokens are known to be the first: they then see one another alone."""
    return isinstance(decoding.index, int) and decoding.index == 0


def _extend(place, heads, mask, value_mask, query_positions):
    """`Seen` of the tokens: `heads` (B, ..., T, H) of new ones behind those kept."""
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
    return Seen(found, query_positions, keys, is_token)


def _count(heads):
    """S of the tensors (B, ..., S, H)."""
    return ops.shape(next(iter(heads.values())))[-2]


def _since_start(slots, decoding):
    """Where the tokens in `slots` (S,) are, and which slots are not before a row's start."""
    start = decoding.cache.get("start")
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
    _check_room(place, name, new, axis)
    new = ops.cast(new, place[name].dtype)
    after = in_place.write(place[name], axis, decoding.index, new)
    place.keep(**{name: after})
    return new if is_first(decoding) else after


def _check_room(place, name, new, axis):
    """Refuses tokens behind the end, where that is known: they would be put over the last ones."""
    index, length, room = place.scope.index, new.shape[axis], place[name].shape[axis]
    known = all(isinstance(size, int) for size in (index, length, room))
    if known and index + length > room:
        raise ValueError(
            f"{length} tokens after {index} do not fit the cache of {place.layer.name}, which has "
            f"room for {room}. Begin with a larger max_length, or keep the newest alone: "
            "memory_length=..."
        )


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
