"""Scores of queries or keys with relative positions, without a vector for every pair."""

from keras import ops

from keras_attention.core.shapes import merges_tokens, prepend_batch


def multiply_per_head(x, table, scale):
    """Multiply `x` (B, T, N or K, H) with `table` (R, N, H) head by head: float32 (B, T, R, N).

    With fewer heads in `x` than in `table`, head n uses head n // (N / K).
    """
    rows, heads, size = table.shape
    groups, length = x.shape[2], ops.shape(x)[1]
    if not merges_tokens():
        x = ops.repeat(ops.cast(x, "float32") * scale, heads // groups, axis=2)
        return ops.einsum("btnh,rnh->btrn", x, table)
    shape = prepend_batch(x, length, heads, rows)
    table = ops.reshape(ops.transpose(table, (1, 0, 2)), (groups, -1, size))  # N / K stacked
    x = ops.transpose(ops.cast(x, "float32") * scale, (2, 0, 1, 3))
    products = multiply_rows_per_head(x, ops.transpose(table, (0, 2, 1)))  # (K, B T, N / K · R)
    products = ops.reshape(ops.transpose(products, (1, 0, 2)), shape)
    return ops.transpose(products, (0, 1, 3, 2))


def multiply_rows_per_head(x, table):
    """Multiply (N, B, T, H) with (N, H, A): (N, B · T, A), or (N, B, T, A) with unmerged tokens.

    It is one matrix product for each head, over all rows. If several batches are broadcast against
    one head, TensorFlow 2.21 with oneDNN returns different numbers each time and writes out of
    bounds.
    """
    heads, size, _ = table.shape
    if not merges_tokens():
        return ops.einsum("nbth,nha->nbta", x, table)
    return ops.matmul(ops.reshape(x, (heads, -1, size)), table)


def multiply_shared(x, table, scale):
    """Multiply `x` (B, T, N, H) with `table` (R, H), shared by heads: float32 (B, T, R, N)."""
    if not merges_tokens():
        return ops.einsum("btnh,rh->btrn", ops.cast(x, "float32") * scale, table)
    _, length, heads, size = ops.shape(x)
    shape = prepend_batch(x, length, heads, table.shape[0])
    x = ops.reshape(ops.cast(x, "float32") * scale, (-1, size))
    products = ops.reshape(ops.matmul(x, ops.transpose(table)), shape)
    return ops.transpose(products, (0, 1, 3, 2))


def gather_pairs(products, index):
    """Gather `products[b, t, index[b, t, s], n]` from (B, T, R, N) to (B, N, T, S)."""
    batch, length = ops.shape(products)[:2]
    if not merges_tokens():
        index = ops.broadcast_to(index, (batch, *ops.shape(index)[1:]))
        picked = ops.take_along_axis(products, ops.expand_dims(index, axis=3), axis=2)
        return ops.transpose(picked, (0, 3, 1, 2))
    flat = ops.reshape(products, (-1, products.shape[3]))
    picked = ops.take(flat, _flat_index(index, batch, length, products.shape[2]), axis=0)
    return ops.transpose(picked, (0, 3, 1, 2))


def sum_pairs(weights, index, rows):
    """Sum the weights of each index: (B, N, T, S) to (B, T, N, R).

    It is the transpose of `gather_pairs`.
    """
    batch, heads, length, _ = ops.shape(weights)
    if not merges_tokens():
        chosen = ops.one_hot(index, rows, dtype="float32")  # (1 or B, T, S, R)
        return ops.matmul(ops.transpose(ops.cast(weights, "float32"), (0, 2, 1, 3)), chosen)
    weights = ops.transpose(ops.cast(weights, "float32"), (0, 2, 3, 1))  # (B, T, S, N)
    index = ops.reshape(_flat_index(index, batch, length, rows), (-1,))
    sums = ops.segment_sum(ops.reshape(weights, (-1, heads)), index, batch * length * rows)
    return ops.transpose(ops.reshape(sums, (batch, length, rows, heads)), (0, 1, 3, 2))


def _flat_index(index, batch, length, rows):
    """Return `index` as rows of a table (B · T · R, ...)."""
    first = ops.arange(batch * length, dtype="int32") * rows
    return index + ops.reshape(first, (batch, length, 1))


def get_scale(part, query):
    """Return the factor of a part of the score: its own `scale`, or 1/√H as in `ScaledDot`."""
    return query.shape[3] ** -0.5 if part.scale is None else part.scale


def check_key(part, key):
    """Raise a ValueError if a bias that depends on the keys has none."""
    if key is None:
        raise ValueError(
            f"{type(part).__name__} looks at the keys: give bias() the key (B, S, N, H) too."
        )


def check_heads(part, shape):
    """Refuse a shape other than (batch, length, heads, size) with known heads and size."""
    if len(shape) != 4 or None in shape[2:]:
        raise ValueError(
            f"{type(part).__name__} adds to the scores of queries of shape (batch, length, heads, "
            f"size), the last two known; received {tuple(shape)}."
        )
