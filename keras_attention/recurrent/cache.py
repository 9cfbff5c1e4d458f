"""The cache of a recurrent decoder: its source, and its states after the last piece."""

import keras
from keras import ops

from keras_attention import masks
from keras_attention.core import scope
from keras_attention.recurrent.attention_cell import EncodedSource


def fill_slot(slot, cell, source, states):
    """Keeps the source and the first states; where the cache is traced, declares their entries."""
    tensors = {**_of_source(source), **_of_states(cell, states)}
    if slot.tracing:
        slot.declare(**{name: _entry(name, x) for name, x in tensors.items()})
    else:
        slot.update(**tensors)


def read_slot(slot, cell):
    """The `EncodedSource` and the states that were kept."""
    keys = ops.expand_dims(slot["keys"], axis=2) if "keys" in slot else None
    values = slot["values"]
    states = [
        ops.cast(slot[name], cell.compute_dtype) for name in _of_states(cell, cell.own_state_sizes)
    ]
    return EncodedSource(values, slot["mask"], keys), states


def update_states(slot, cell, states):
    """Keeps the states for the next call, in the dtypes of the cache."""
    named = _of_states(cell, states)
    slot.update(**{name: ops.cast(x, slot[name].dtype) for name, x in named.items()})


def with_start(inputs, mask):
    """`mask` (B, T) or None, and False for padding in front of a row of the batch."""
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
    """The `CacheEntry` of a tensor: the coverage is as long as the source."""
    if name == "coverage":
        return scope.SourceState(tuple(x.shape[2:]), _dtype(x))
    if name in ("values", "mask", "keys"):
        return scope.Source(tuple(x.shape[2:]), _dtype(x))
    return scope.State(tuple(x.shape[1:]), _dtype(x))


def _dtype(x):
    return keras.backend.standardize_dtype(x.dtype)
