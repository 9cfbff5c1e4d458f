"""The cache of a recurrent decoder: its source, and its latest states."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.core import scope
from keras_attention.recurrent.attention_cell import EncodedSource


def fill_slot(slot, cell, source, states):
    """Store the source and the first states, or declare their entries while the cache is traced."""
    tensors = {**_of_source(source), **_of_states(cell, states)}
    if slot.tracing:
        slot.declare(**{name: _entry(name, x) for name, x in tensors.items()})
    else:
        slot.update(**tensors)


def read_slot(slot, cell):
    """Return the stored `EncodedSource` and states."""
    keys = ops.expand_dims(slot["keys"], axis=2) if "keys" in slot else None
    values = slot["values"]
    states = [
        ops.cast(slot[name], cell.compute_dtype) for name in _of_states(cell, cell.own_state_sizes)
    ]
    return EncodedSource(values, slot["mask"], keys), states


def update_states(slot, cell, states):
    """Store the states for the next call, in the dtypes of the cache."""
    named = _of_states(cell, states)
    slot.update(**{name: ops.cast(x, slot[name].dtype) for name, x in named.items()})


def with_start(inputs, mask):
    """Combine `mask` (B, T) or None with the padding in front of rows."""
    return masks.all_of(mask, scope.is_token(ops.shape(inputs)[1]))


def _of_source(source):
    named = {"values": source.values, "mask": source.mask}
    if source.keys is None:
        return named
    width = source.keys.shape[3]
    return {**named, "keys": ops.reshape(source.keys, (-1, ops.shape(source.keys)[1], width))}


def _of_states(cell, states):
    """Name the states. The coverage, as long as the source, is the last one."""
    names = [f"state_{i}" for i in range(len(states))]
    if cell.coverage:
        names[-1] = "coverage"
    return dict(zip(names, states, strict=True))


def _entry(name, x):
    """Return the `CacheEntry` of a tensor."""
    if name == "coverage":
        return scope.SourceState(tuple(x.shape[2:]), _dtype(x))
    if name in ("values", "mask", "keys"):
        return scope.Source(tuple(x.shape[2:]), _dtype(x))
    return scope.State(tuple(x.shape[1:]), _dtype(x))


def _dtype(x):
    return keras.backend.standardize_dtype(x.dtype)
