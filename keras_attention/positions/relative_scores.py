"""Products of queries or keys with vectors of relative positions, computed once per distance.

A table has R rows, one for each relative position that it distinguishes.
"""

from keras import ops

from keras_attention.core.shapes import merges_tokens, prepend_batch


def multiply_per_head(x, table, scale):
    """Multiply `x` by `table` (R, N, H) head by head, and return float32 (B, T, R, N).

    `x` is (B, T, N, H) or (B, T, K, H). The table has R learned vectors, for example one for each
    relative distance. The products are multiplied by the number `scale`. If `x` has only K heads,
    head n of the table is multiplied by head n // (N / K) of `x`.
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
    """Multiply `x` (N, B, T, H) by `table` (N, H, A) head by head.

    A table has A columns for each head. The result is (N, B · T, A), or (N, B, T, A) on backends
    where tokens are not merged with the batch. It is one matrix product per head. Do not broadcast
    several batches against one head instead: TensorFlow 2.21 with oneDNN then returns
    nondeterministic results and writes out of bounds.
    """
    heads, size, _ = table.shape
    if not merges_tokens():
        return ops.einsum("nbth,nha->nbta", x, table)
    return ops.matmul(ops.reshape(x, (heads, -1, size)), table)


def multiply_shared(x, table, scale):
    """Multiply `x` (B, T, N, H) by `table` (R, H), and return float32 (B, T, R, N).

    The table has R vectors, which all heads share. The products are multiplied by the number
    `scale`.
    """
    if not merges_tokens():
        return ops.einsum("btnh,rh->btrn", ops.cast(x, "float32") * scale, table)
    _, length, heads, size = ops.shape(x)
    shape = prepend_batch(x, length, heads, table.shape[0])
    x = ops.reshape(ops.cast(x, "float32") * scale, (-1, size))
    products = ops.reshape(ops.matmul(x, ops.transpose(table)), shape)
    return ops.transpose(products, (0, 1, 3, 2))


def gather_pairs(products, index):
    """Look up a product for each pair of query and key, and return (B, N, T, S).

    `products` (B, T, R, N) are the products of each query with the R rows of a table. `index` (1 or
    B, T, S) is the row for the relative position of each pair. The result at [b, n, t, s] is
    `products[b, t, index[b, t, s], n]`.
    """
    batch, length = ops.shape(products)[:2]
    if not merges_tokens():
        index = ops.broadcast_to(index, (batch, *ops.shape(index)[1:]))
        picked = ops.take_along_axis(products, ops.expand_dims(index, axis=3), axis=2)
        return ops.transpose(picked, (0, 3, 1, 2))
    flat = ops.reshape(products, (-1, products.shape[3]))
    picked = ops.take(flat, _flat_index(index, batch, length, products.shape[2]), axis=0)
    return ops.transpose(picked, (0, 3, 1, 2))


def sum_pairs(weights, index, rows):
    """Sum the weights (B, N, T, S) of all keys with the same table row, and return (B, T, N, R).

    `index` (1 or B, T, S) is the table row of each pair, and `rows` is R. This is the transpose of
    `gather_pairs`.
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
    """Convert `index` (1 or B, T, S) to row indices of products reshaped to (B · T · R, ...).

    `batch` is B, `length` is T, and `rows` is R.
    """
    first = ops.arange(batch * length, dtype="int32") * rows
    return index + ops.reshape(first, (batch, length, 1))


def get_scale(part, query):
    """Return the `scale` of an encoding, or 1/√H for a query (B, T, N, H) if the scale is None."""
    return query.shape[3] ** -0.5 if part.scale is None else part.scale


def check_key(part, key):
    """Raise a ValueError if `key` is None, for `part`, an encoding whose bias depends on keys."""
    if key is None:
        raise ValueError(
            f"{type(part).__name__} depends on the keys: pass the key (B, S, N, H) to bias() too."
        )


def check_heads(part, shape):
    """Raise a ValueError unless `shape` is (B, T, N, H) with static N and H.

    `part` is the encoding that the message names.
    """
    if len(shape) != 4 or None in shape[2:]:
        raise ValueError(
            f"{type(part).__name__} needs queries of shape (batch, length, heads, size) with known "
            f"heads and size, but received {tuple(shape)}."
        )
