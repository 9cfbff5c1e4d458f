"""What the additive scores share: for all pairs, a sum over units of a nonlinear function."""

import keras
from keras import ops

from keras_attention import scope

UNITS_AT_ONCE = 8


def sum_over_units(query, key, vector, activation):
    """`sum over u of vector[n, u] · activation(query[b, n, u, t] + key[b, n, u, s])`, in float32.

    The tensor of all pairs and units (B, N, T, S, U) never exists, forward or backward:
    `UNITS_AT_ONCE` units are added up at a time, and the gradient computes each slice again.

    Args:
        query: (B, N, U, T). key: (B, N, U, S). vector: (N, U), U known.

    Returns:
        (B, N, T, S), float32.
    """
    query, key, vector = (ops.cast(x, "float32") for x in (query, key, vector))
    batch, heads, units, queries = ops.shape(query)
    keys = ops.shape(key)[3]
    query = ops.reshape(query, (-1, units, queries))
    key = ops.reshape(key, (-1, units, keys))
    vector = ops.tile(ops.reshape(vector, (heads, 1, units)), (batch, 1, 1))
    rows = ops.shape(vector)[0]  # B N
    if _compiles(activation, query, key):
        from keras_attention.scores import pairs_tensorflow

        query, key = (ops.transpose(x, (0, 2, 1)) for x in (query, key))
        scores = pairs_tensorflow.tanh_sum(query, key, ops.squeeze(vector, axis=1))
        return ops.reshape(scores, (-1, heads, queries, keys))
    of_slice = _of_slice(activation, queries, keys)

    def units_from(start, size):
        return of_slice(
            ops.slice(query, (0, start, 0), (rows, size, queries)),
            ops.slice(key, (0, start, 0), (rows, size, keys)),
            ops.slice(vector, (0, 0, start), (rows, 1, size)),
        )

    return ops.reshape(_add_up(units_from, units), (-1, heads, queries, keys))


def match_units(query, key, vector, activation):
    """The same sum for one query, whose pairs are no more than the keys.

    The gradient computes the pairs again: a loop over queries would keep those of all.

    Args:
        query: (B, 1, N, U). key: (B, S, N, U). vector: (N, U). The activation is float32.

    Returns:
        (B, N, 1, S) in the dtype of the key.
    """
    batch, length, heads, units = ops.shape(key)
    vector = ops.reshape(ops.cast(vector, "float32"), (heads, units, 1))

    def of_all(query, key, vector):
        fits = activation(ops.cast(query + key, "float32"))  # (B, S, N, U)
        if heads == 1:  # a product of two matrices: a third faster on CPUs, gradient included
            return ops.matmul(ops.reshape(fits, (-1, units)), vector[0])
        return ops.matmul(ops.transpose(fits, (0, 2, 1, 3)), vector)  # (B, N, S, 1)

    trains = not (scope.current(scope.Export) or scope.current(scope.Decoding))
    scores = (keras.remat(of_all) if trains else of_all)(query, key, vector)
    return ops.cast(ops.reshape(scores, (batch, heads, 1, length)), key.dtype)


def _compiles(activation, query, key):
    if keras.backend.backend() != "tensorflow" or scope.current(scope.Export):
        return False
    from keras_attention.scores import pairs_tensorflow

    return activation in (ops.tanh, keras.activations.tanh) and pairs_tensorflow.pays(query, key)


def _of_slice(activation, queries, keys):
    """The sum for a slice of u units: (B N, u, T), (B N, u, S), (B N, 1, u) -> (B N, 1, T S)."""

    def of_slice(query, key, vector):
        size = vector.shape[2]
        query = ops.reshape(query, (-1, size, queries, 1))
        key = ops.reshape(key, (-1, size, 1, keys))
        fits = activation(query + key)  # (B N, u, T, S), the largest tensor there is
        return ops.matmul(vector, ops.reshape(fits, (-1, size, queries * keys)))

    return of_slice if scope.current(scope.Export) else keras.remat(of_slice)


def _add_up(units_from, units):
    """`units_from(start, size)` added up over all units.

    The passes of a loop wait for each other. A graph of independent slices is free to compute them
    all before it adds the first two, and TensorFlow does. LiteRT computes in order, and delegates
    take no loops: an exported graph has the slices side by side.
    """
    first = units % UNITS_AT_ONCE or UNITS_AT_ONCE
    passes = (units - first) // UNITS_AT_ONCE

    def add(i, total):
        return total + units_from(first + i * UNITS_AT_ONCE, UNITS_AT_ONCE)

    total = units_from(0, first)
    if passes and not scope.current(scope.Export):
        return _loop(passes, add, total)
    for i in range(passes):
        total = add(i, total)
    return total


def _loop(passes, add, total):
    """`ops.fori_loop(0, passes, add, total)`, with the bound that XLA needs for its gradient."""
    if keras.backend.backend() != "tensorflow":
        return ops.fori_loop(0, passes, add, total)  # JAX differentiates this, and no while_loop

    def step(i, total):
        return i + 1, add(i, total)

    return ops.while_loop(lambda i, _: i < passes, step, (0, total), maximum_iterations=passes)[1]
