"""Positions of tokens as tensors: counted, checked, and subtracted."""

from keras import ops

from keras_attention.core import scope


def resolve_positions(positions, x, axis=1):
    """Return `positions`, or in decoding those of the new tokens `x`. None means 0, 1, ..."""
    decoding = scope.current(scope.Decoding)
    if positions is not None or decoding is None or decoding.tracing:
        return positions
    return decoding.positions(ops.shape(x)[axis])


def count(positions, x, axis=1):
    """Return `positions`, or 0, 1, 2, ... along an axis of `x`: int32 (T,) or (B, T)."""
    positions = resolve_positions(positions, x, axis)
    if positions is None:
        return ops.arange(ops.shape(x)[axis], dtype="int32")
    positions = ops.cast(ops.convert_to_tensor(positions), "int32")
    if len(positions.shape) not in (1, 2):
        raise ValueError(
            f"Positions must be of shape (length,) or (batch, length); received {positions.shape}."
        )
    number, length = positions.shape[-1], None if x is None else x.shape[axis]
    if isinstance(number, int) and isinstance(length, int) and number != length:
        raise ValueError(
            f"Positions of shape {tuple(positions.shape)} are {number} for {length} tokens. "
            f"Give one for each: ({length},) or (batch, {length})."
        )
    return positions


def count_queries_and_keys(query_positions, key_positions, query, key=None):
    """Do `count` for queries and keys. Without key and key positions, keys are the queries."""
    query_positions = count(query_positions, query)
    if key_positions is None and key is None:
        return query_positions, query_positions
    return query_positions, count(key_positions, key)


def expand_positions(positions, *axes):
    """Return (T,) or (B, T) as (1 or B, T), with axes of length 1 inserted at `axes`, in order."""
    for axis in (*([0] if len(positions.shape) == 1 else []), *axes):
        positions = ops.expand_dims(positions, axis=axis)
    return positions


def distances(query_positions, key_positions):
    """Compute j - i for each query position i and key position j: int32 (1 or B, 1, T, S)."""
    i = expand_positions(count(query_positions, None), 1, 3)  # (1 or B, 1, T, 1)
    # The same order of axes as in masks, so that a graph holds this tensor once: of two reshapes of
    # one tensor, LiteRT may overwrite one in place, and so change both.
    j = expand_positions(count(key_positions, None), 1, 2)  # (1 or B, 1, 1, S)
    return j - i


def to_numpy_or_none(positions):
    """Return `positions` as NumPy, or None if they are symbolic and only the runtime can check."""
    try:
        return ops.convert_to_numpy(positions)
    except Exception:  # each backend raises its own class for symbolic tensors
        return None


def check_inside(positions, number, owner, mend=""):
    """Refuse positions other than 0 to `number` - 1, unless they are symbolic."""
    values = to_numpy_or_none(positions)
    if values is None or not values.size:
        return
    first, last = values.min(), values.max()
    if first < 0 or last >= number:
        raise ValueError(
            f"Positions {first} to {last} go past {owner}, which has 0 to {number - 1}.{mend}"
        )


def compute_angles(positions, rates):
    """Multiply positions by `rates`, of as many axes, in float32 under every policy."""
    return ops.cast(positions, "float32") * ops.convert_to_tensor(rates, "float32")


def check_max_wavelength(part):
    """Refuse a `max_wavelength` that is not a number above 0."""
    value = part.max_wavelength
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
        raise ValueError(
            f"{type(part).__name__}(max_wavelength={value!r}): max_wavelength must be a number "
            "above 0; the papers use 10000."
        )
