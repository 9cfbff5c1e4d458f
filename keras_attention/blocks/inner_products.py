"""Vectors against every row of a table: the form of `x Eᵀ` that is fast for the number of `x`."""

from keras import ops

from keras_attention import scope


def inner_products(x, table):
    """(M, D) and (V, D) to (M, V).

    A model that decodes asks for one row at a time, and then for all of the table: as `E xᵀ` it is
    read once in order. Everything else, and files of other runtimes, have the plain product.
    """
    if scope.current(scope.Decoding) is None or scope.current(scope.Export) is not None:
        return many(x, table)
    shape = (-1, table.shape[0])
    return ops.cond(
        ops.equal(ops.shape(x)[0], 1),
        lambda: ops.reshape(one(x, table), shape),
        lambda: ops.reshape(many(x, table), shape),
    )


def one(x, table):
    """(1, D) and (V, D) to (V, 1)."""
    return ops.matmul(table, ops.transpose(x))


def many(x, table):
    """(M, D) and (V, D) to (M, V)."""
    return ops.einsum("md,vd->mv", x, table)
