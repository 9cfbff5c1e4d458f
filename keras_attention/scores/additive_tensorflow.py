"""The sum over units of additive scores with tanh, compiled by XLA for TensorFlow.

TensorFlow's own ops write the tensor (T, S, units) to memory several times. A compiled loop over
slices of `ROWS` queries keeps each slice in the CPU's cache. Because tanh(a + b) =
1 - 2 / (1 + e^2a e^2b), exponentials are computed once per query and once per key instead of once
per pair. A compiled loop runs on one core, so the queries are divided among one loop per core.
"""

import functools
import math
import os
import sys

import tensorflow as tf

ROWS = 8  # queries in a slice
BOUND = 20.0  # for larger inputs e^2a e^2b may overflow, so tanh is computed for each pair
LEAST_TANHS = 2**22  # for fewer, the seconds that compiling takes are not worthwhile


def is_worth_compiling(query, key):
    """Return whether to compile the additive score.

    The result is True in a `tf.function`, for large static shapes, and not on Windows. `query` is
    (B, T, N, H) and `key` is (B, S, K, H).
    """
    if not tf.inside_function() or None in [*query.shape, *key.shape] or sys.platform == "win32":
        return False
    return math.prod(query.shape) * key.shape[2] >= LEAST_TANHS


def tanh_sum(query, key, vector, compute):
    """Compute `sum over u of vector[r, 0, u] tanh(query[r, u, t] + key[r, u, s])`: (R, T, S).

    All inputs are float32 and have static shapes.

    Args:
        query: (R, U, T), for R = batch size · heads, already projected to U units.
        key: (R, U, S).
        vector: (R, 1, U).
        compute: function `compute(query, key, vector)` that returns the same sum without XLA, in
            any shape, for second-order gradients, which XLA cannot compute.
    """

    @tf.custom_gradient
    def scores_of(query, key, vector):
        rows, keys, units = _put_units_last(query, key, vector)
        slices = [_forward(part, keys, units) for part in _split_queries(rows)]
        scores = tf.concat(slices, axis=1)[:, : rows.shape[1]]
        return scores, functools.partial(gradients_of, query, key, vector)

    @tf.custom_gradient
    def gradients_of(query, key, vector, upstream):
        def gradient(*second):
            inputs = (query, key, vector, upstream)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                first = _differentiate(compute, *inputs)
            return tape.gradient(first, inputs, second)

        return _run_backward(query, key, vector, upstream), gradient

    return scores_of(query, key, vector)


def _differentiate(compute, query, key, vector, upstream):
    """Return the gradients of `compute(query, key, vector)` for its three inputs, without XLA."""
    inputs = (query, key, vector)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        scores = compute(*inputs)
    return tape.gradient(scores, inputs, tf.reshape(upstream, tf.shape(scores)))


def _run_backward(query, key, vector, upstream):
    query, key, vector = _put_units_last(query, key, vector)
    parts = _split_queries(query)
    pairs = zip(parts, _split_evenly(tf.stop_gradient(upstream), len(parts)), strict=True)
    gradients = [_backward(part, key, vector, of_part) for part, of_part in pairs]
    to_query, to_key, to_vector = zip(*gradients, strict=True)
    to_query = tf.concat(to_query, axis=1)[:, : query.shape[1]]
    to_query, to_key = (tf.transpose(x, (0, 2, 1)) for x in (to_query, tf.add_n(to_key)))
    return to_query, to_key, tf.add_n(to_vector)[:, None]


def _put_units_last(query, key, vector):
    """Transpose the inputs of `tanh_sum` to (R, T, U), (R, S, U) and (R, U).

    Gradients are stopped, because `tanh_sum` defines its own.
    """
    query, key, vector = (tf.stop_gradient(x) for x in (query, key, vector))
    return tf.transpose(query, (0, 2, 1)), tf.transpose(key, (0, 2, 1)), vector[:, 0]


def _split_queries(query):
    """Split queries (R, T, U) along T into one piece per core, each a multiple of ROWS long."""
    return _split_evenly(query, max(1, min(os.cpu_count() or 1, query.shape[1] // ROWS)))


def _split_evenly(x, count):
    """Pad axis 1 and split it into `count` pieces of equal length, a multiple of ROWS."""
    size = -(-x.shape[1] // (count * ROWS)) * ROWS
    return tf.split(tf.pad(x, [[0, 0], [0, count * size - x.shape[1]], [0, 0]]), count, axis=1)


def _compute_by_size(query, key, compute):
    """Return `compute(query, key, share)`, where share(q, k) is (1 - tanh(q + k)) / 2.

    If no input exceeds `BOUND`, `compute` is called with e^(2 query), e^(2 key) and a function
    `share` of such exponentials instead, which is faster.
    """
    size = tf.maximum(tf.reduce_max(tf.abs(query)), tf.reduce_max(tf.abs(key)))
    return tf.cond(
        size <= BOUND,
        lambda: compute(tf.exp(2.0 * query), tf.exp(2.0 * key), lambda q, k: 1.0 / (1.0 + q * k)),
        lambda: compute(query, key, lambda q, k: 0.5 - 0.5 * tf.tanh(q + k)),
    )


def _slices(x):
    """Reshape (T, any) to (T / ROWS, ROWS, any)."""
    return tf.reshape(x, (-1, ROWS, x.shape[1]))


@tf.function(jit_compile=True, autograph=False)
def _forward(query, key, vector):
    units, keys = key.shape[2], key.shape[1]

    def compute(query, key, share):
        def of_row(row):
            queries, key, vector = row  # (T, U), (S, U), (U,)

            def of_slice(queries):
                shares = share(queries[:, None], key[None])  # (ROWS, S, U)
                return tf.linalg.matvec(tf.reshape(shares, (-1, units)), vector)

            return tf.reshape(tf.map_fn(of_slice, _slices(queries)), (-1, keys))

        return tf.map_fn(of_row, (query, key, vector), fn_output_signature=tf.float32)

    return tf.reduce_sum(vector, axis=1)[:, None, None] - 2.0 * _compute_by_size(
        query, key, compute
    )


@tf.function(jit_compile=True, autograph=False)
def _backward(query, key, vector, upstream):
    units = key.shape[2]

    def compute(query, key, share):
        def of_row(row):
            queries, key, upstream = row  # (T, U), (S, U), (T, S)
            queries, upstream = _slices(queries), _slices(upstream)
            count = queries.shape[0]

            def step(i, to_query, to_key, to_vector):
                above = upstream[i]  # (ROWS, S)
                shares = share(queries[i][:, None], key[None])  # (ROWS, S, U)
                slopes = 4.0 * shares * (1.0 - shares)
                to_query = to_query.write(i, tf.matmul(above[:, None], slopes)[:, 0])
                to_key += tf.reduce_sum(above[:, :, None] * slopes, axis=0)
                of_shares = tf.matmul(tf.reshape(above, (1, -1)), tf.reshape(shares, (-1, units)))
                to_vector += tf.reduce_sum(above) - 2.0 * of_shares[0]
                return i + 1, to_query, to_key, to_vector

            to_query = tf.TensorArray(tf.float32, count, element_shape=queries.shape[1:])
            state = (0, to_query, tf.zeros_like(key), tf.zeros(key.shape[1:]))
            _, to_query, to_key, to_vector = tf.while_loop(
                lambda i, *_: i < count, step, state, maximum_iterations=count
            )
            return tf.reshape(to_query.stack(), (-1, key.shape[1])), to_key, to_vector

        signature = (tf.float32,) * 3
        return tf.map_fn(of_row, (query, key, upstream), fn_output_signature=signature)

    to_query, to_key, to_vector = _compute_by_size(query, key, compute)
    return to_query * vector[:, None], to_key * vector[:, None], to_vector
