"""Helpers for positions as tensors: default positions, checks, distances, and angles."""

from keras import ops

from keras_attention.core import scope


def resolve_positions(positions, x, axis=1):
    """Return `positions`, or the positions of the new tokens `x` if a model is decoding.

    `axis` is the axis of `x` with the tokens. If `positions` is None and no model is decoding, the
    result is None, which means 0, 1, 2, ...
    """
    decoding = scope.current(scope.Decoding)
    if positions is not None or decoding is None or decoding.tracing:
        return positions
    return decoding.positions(ops.shape(x)[axis])


def count(positions, x, axis=1):
    """Return `positions` as int32 (T,) or (B, T). None becomes 0, 1, ..., T - 1.

    T is the size of `axis` of the tensor `x`. While a model is decoding, None becomes the positions
    of the new tokens instead. Raise a ValueError if `positions` has another shape, or another
    number of positions than tokens.
    """
    positions = resolve_positions(positions, x, axis)
    if positions is None:
        return ops.arange(ops.shape(x)[axis], dtype="int32")
    positions = ops.cast(ops.convert_to_tensor(positions), "int32")
    if len(positions.shape) not in (1, 2):
        raise ValueError(
            f"Positions have shape {tuple(positions.shape)}. Give (length,) or (batch, length)."
        )
    number, length = positions.shape[-1], None if x is None else x.shape[axis]
    if isinstance(number, int) and isinstance(length, int) and number != length:
        raise ValueError(
            f"{number} positions of shape {tuple(positions.shape)} for {length} tokens. "
            f"Give one for each: ({length},) or (batch, {length})."
        )
    return positions


def count_queries_and_keys(query_positions, key_positions, query, key=None):
    """Return the positions of queries and of keys as int32 tensors, where None becomes 0, 1, 2, ...

    `query` (B, T, ...) and `key` (B, S, ...) are tensors with the numbers of tokens to count. If
    neither `key` nor `key_positions` is given, keys have the positions of the queries.
    """
    query_positions = count(query_positions, query)
    if key_positions is None and key is None:
        return query_positions, query_positions
    return query_positions, count(key_positions, key)


def expand_positions(positions, *axes):
    """Reshape positions (T,) or (B, T) to (1 or B, T), and insert axes of length 1 at `axes`."""
    for axis in (*([0] if len(positions.shape) == 1 else []), *axes):
        positions = ops.expand_dims(positions, axis=axis)
    return positions


def distances(query_positions, key_positions):
    """Compute j - i for each query position i and key position j: int32 (1 or B, 1, T, S).

    `query_positions` are (T,) or (B, T), and `key_positions` (S,) or (B, S).
    """
    i = expand_positions(count(query_positions, None), 1, 3)  # (1 or B, 1, T, 1)
    # Axes are inserted in the same order as in masks, so that a graph contains this tensor only
    # once. If a graph reshapes a tensor twice, LiteRT may overwrite one result and so change both.
    j = expand_positions(count(key_positions, None), 1, 2)  # (1 or B, 1, 1, S)
    return j - i


def to_numpy_or_none(positions):
    """Return `positions` as a NumPy array, or None if they are symbolic."""
    try:
        return ops.convert_to_numpy(positions)
    except Exception:  # each backend raises its own class for symbolic tensors
        return None


def check_inside(positions, number, table, fix=""):
    """Raise a ValueError for positions outside 0 to `number` - 1, unless they are symbolic.

    In the message, `table` names the table with one row for each position, and the sentence `fix`
    says how to extend it.
    """
    values = to_numpy_or_none(positions)
    if values is None or not values.size:
        return
    first, last = values.min(), values.max()
    if first < 0 or last >= number:
        raise ValueError(
            f"Positions {first} to {last} are not all in {table}, which has 0 to {number - 1}.{fix}"
        )


def compute_angles(positions, rates):
    """Multiply positions by `rates` (angles at position 1), in float32 under every dtype policy.

    `positions` and `rates` have the same number of axes, and are broadcast.
    """
    return ops.cast(positions, "float32") * ops.convert_to_tensor(rates, "float32")


def check_max_wavelength(part):
    """Raise a ValueError if `part.max_wavelength` is not a positive number."""
    value = part.max_wavelength
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
        raise ValueError(
            f"{type(part).__name__}(max_wavelength={value!r}): max_wavelength must be a number "
            "above 0. The papers use 10000."
        )
