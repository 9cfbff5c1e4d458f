"""What a recurrent decoder keeps from one piece of the target to the next."""

import keras
from keras import ops

from keras_attention import masks, scope
from keras_attention.recurrent.source import Source


def plan_or_fill(place, cell, source, states):
    """Says what will be kept, or keeps the source and the states to begin with."""
    tensors = {**_of_source(source), **_of_states(cell, states)}
    if place.scope.planning:
        place.scope.declare(place, **{name: _entry(name, x) for name, x in tensors.items()})
    else:
        place.keep(**tensors)


def read(place, cell):
    """The `Source` and the states that were kept."""
    keys = ops.expand_dims(place["keys"], axis=2) if "keys" in place else None
    values = place["values"]
    states = [
        ops.cast(place[name], cell.compute_dtype) for name in _of_states(cell, cell.own_state_sizes)
    ]
    return Source(values, place["mask"], keys), states


def keep_states(place, cell, states):
    """Keeps the states for the next call, in the dtypes of the cache."""
    named = _of_states(cell, states)
    place.keep(**{name: ops.cast(x, place[name].dtype) for name, x in named.items()})


def with_start(inputs, mask):
    """`mask` (B, T) or None, and False before the place where a row of the batch begins."""
    return masks.all_of(mask, scope.is_token(ops.shape(inputs)[1]))


def _of_source(source):
    named = {"values": source.values, "mask": source.mask}
    if source.keys is None:
        return named
    width = source.keys.shape[3]
    return {**named, "keys": ops.reshape(source.keys, (-1, ops.shape(source.keys)[1], width))}


def _of_states(cell, states):
    """The states by name; the coverage, of the source's length, is the last one."""
    names = [f"state_{i}" for i in range(len(states))]
    if cell.coverage:
        names[-1] = "coverage"
    return dict(zip(names, states, strict=True))


def _entry(name, x):
    """Whatever has an axis as long as the source is an entry of the source's."""
    if name == "coverage":
        return scope.SourceState(tuple(x.shape[2:]), _dtype(x))
    if name in ("values", "mask", "keys"):
        return scope.Source(tuple(x.shape[2:]), _dtype(x))
    return scope.State(tuple(x.shape[1:]), _dtype(x))


def _dtype(x):
    return keras.backend.standardize_dtype(x.dtype)
