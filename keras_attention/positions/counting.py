"""Position numbers as tensors: what the parts of this family share."""

from keras import ops

from keras_attention import scope


def where(positions, x, axis=1):
    """`positions`, or, while a model decodes, those of the new tokens `x`; None means to count."""
    decoding = scope.current(scope.Decoding)
    if positions is not None or decoding is None or decoding.planning:
        return positions
    return decoding.positions(ops.shape(x)[axis])


def count(positions, x, axis=1):
    """`positions`, or 0, 1, 2, ... along an axis of `x`: int32 (T,) or (B, T)."""
    positions = where(positions, x, axis)
    if positions is None:
        return ops.arange(ops.shape(x)[axis], dtype="int32")
    positions = ops.cast(ops.convert_to_tensor(positions), "int32")
    if len(positions.shape) not in (1, 2):
        raise ValueError(
            f"Positions must be of shape (length,) or (batch, length); received {positions.shape}."
        )
    return positions


def count_both(query_positions, key_positions, query, key=None):
    """`count` for queries and for keys; where nothing tells of keys, they are the queries."""
    query_positions = count(query_positions, query)
    if key_positions is None and key is None:
        return query_positions, query_positions
    return query_positions, count(key_positions, key)


def spread(positions, *axes):
    """(T,) or (B, T) -> (1 or B, T) with an axis of length 1 put in at each of `axes`, in order."""
    for axis in (*([0] if len(positions.shape) == 1 else []), *axes):
        positions = ops.expand_dims(positions, axis=axis)
    return positions


def distances(query_positions, key_positions):
    """j - i for each query position i and key position j: int32 (1 or B, 1, T, S)."""
    i = spread(count(query_positions, None), 1, 3)  # (1 or B, 1, T, 1)
    # In the order in which masks do it, so that a graph has it once: of two tensors that are the
    # same data in other shapes, LiteRT may compute in the place of one, and so change both.
    j = spread(count(key_positions, None), 1, 2)  # (1 or B, 1, 1, S)
    return j - i


def known(positions):
    """`positions` as NumPy, or None while they are symbolic: then only the runtime can check."""
    try:
        return ops.convert_to_numpy(positions)
    except Exception:  # each backend says "symbolic" with a class of its own
        return None


def angles(positions, rates):
    """Positions times `rates`, in float32 whatever the policy; the axes must agree."""
    return ops.cast(positions, "float32") * ops.convert_to_tensor(rates, "float32")


def check_wavelength(part):
    """Refuses a `max_wavelength` that is not a number above 0."""
    value = part.max_wavelength
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e30:
        raise ValueError(
            f"{type(part).__name__}(max_wavelength={value!r}): max_wavelength must be a number "
            "above 0; the papers use 10000."
        )
