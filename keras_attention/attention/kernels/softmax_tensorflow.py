"""Softmax attention with dot products in slices of queries, for TensorFlow on CPUs.

`sliced` can compute any equation, and recomputes each block to differentiate it. This module
computes only the most common equation, with a handwritten gradient and fewer passes over the
weights. It keeps the weights for the gradient if they are few.

- A mask that depends only on distances is stored as one small table for all slices and heads. It is
  added within the matrix product, because oneDNN can fuse the product, the scale and an addend. The
  scores must have the shape (heads, 1, rows, keys), and the addend (1, 1, rows, keys). If the heads
  are in the second axis, without AVX2, or in bfloat16 without AMX, the fused operation is 50 times
  slower than separate operations.
- Padding of keys is an additional feature of queries and keys. It is 1 in every query, and in
  hidden keys it is the constant that masks scores.
- The gradient of a softmax subtracts `sum_j w_ij dw_ij`, which is `do_i · o_i` (Dao et al., 2022,
  appendix B.2). That is an additional feature too: it is 1 in every value, and `-do_i · o_i` in the
  upstream gradient.
"""

import numpy as np
import tensorflow as tf

from keras_attention.attention.kernels.axis_pieces import AxisRange, Operand
from keras_attention.attention.kernels.sliced_tensorflow import (
    KeyGradients,
    QueryGradients,
    keeps_order,
    zero_for,
)
from keras_attention.core import onednn, scope
from keras_attention.masks.base import expand_keys, expand_queries
from keras_attention.normalizers.softmax import LEAST_OF_EXP, Softmax
from keras_attention.scores.base import fold_unscaled

MOST_KEPT = 2**21  # weights of all slices of a row (B = 1) that are kept for the backward pass
LEAST_AT_ONCE = 2**14  # for fewer scores, `dense` is as fast
MOST_PARALLEL = 2**17  # a slice may overlap with the next one if it has at most this many scores


def attend_in_slices(query, key, value, equation, visibility, slices, global_keys):
    """Compute the output (B, N, T, Hv), or return None if this module cannot compute the equation.

    `slices` is a list of pairs (rows, columns), ranges of queries and keys. `global_keys` are
    additional keys for all queries, or None. The other arguments are the same as in `dense`.
    """
    if global_keys is not None or not _takes(query, key, value, equation, visibility):
        return None
    query, key, scale = fold_unscaled(equation.score, query, key)
    if not isinstance(scale, (int, float)) or not query.dtype == key.dtype == value.dtype:
        return None
    query = tf.transpose(query, (0, 2, 1, 3))
    key, value = (tf.transpose(x, (0, 2, 1, 3)) for x in (key, value))
    table, padding = _Table(visibility.mask, slices, query, key), visibility.tensor
    scale = scale / equation.normalizer.temperature
    if table.is_empty or query.dtype != tf.float32:  # oneDNN does not fuse the scale well here
        query, scale = query * scale, 1.0
    if padding is not None:
        hidden = (1.0 - tf.cast(padding, "float32")) * (scope.mask_constant() / scale)
        hidden = tf.transpose(hidden, (0, 1, 3, 2)) + tf.zeros_like(key[..., :1], "float32")
        query = tf.concat([query, tf.ones_like(query[..., :1])], axis=3)
        key = tf.concat([key, tf.cast(hidden, key.dtype)], axis=3)
    weights = query.shape[1] * sum(rows.size * columns.size for rows, columns in slices)
    keeps_weights = len(slices) == 1 or weights <= MOST_KEPT
    output = _Core(scale, table, slices, keeps_weights)(query, key, value)
    seen = table.seen(padding)
    return output if seen is None else output * tf.cast(seen, output.dtype)


def attend_at_once(query, key, value, equation, visibility):
    """Compute the output (B, T, N, Hv) as a single slice, or return None.

    It is None where `dense` is as fast, and where this module cannot compute the equation. In
    bfloat16, one operation computes the softmax, where `dense` needs three, and the handwritten
    gradient needs fewer passes. In float32 this gains nothing. The arguments are the same as in
    `dense`.
    """
    queries, keys = query.shape[1], key.shape[1]
    if (
        query.dtype != tf.bfloat16
        or None in (queries, keys)
        or queries * keys < LEAST_AT_ONCE
        or not keeps_order()
        or not onednn.normalizes_bfloat16()
    ):
        return None
    whole = [(AxisRange(0, queries), AxisRange(0, keys))]
    output = attend_in_slices(query, key, value, equation, visibility, whole, None)
    return None if output is None else tf.transpose(output, (0, 2, 1, 3))


def _takes(query, key, value, equation, visibility):
    """Return whether this module can compute the equation."""
    if scope.current(scope.Export) or scope.mask_constant() > LEAST_OF_EXP:
        return False
    mask, normalizer = visibility.tensor, equation.normalizer
    if mask is not None and (
        tuple(mask.shape[1:]) != (1, 1, key.shape[1]) or mask.shape[0] not in (1, key.shape[0])
    ):
        return False
    return (
        equation.score.fold is not None
        and query.shape[0] == key.shape[0] == value.shape[0]
        and None not in (*query.shape[1:], *key.shape[1:], *value.shape[1:])
        and query.dtype == key.dtype == value.dtype
        and normalizer == Softmax(temperature=normalizer.temperature)
        and (visibility.mask is None or visibility.mask.relative)
        and not equation.position_biases
        and equation.bias is None
        and equation.dropout is None
        and visibility.positions_are_indices
        and query.dtype in (tf.float32, tf.bfloat16)
    )


class _Core:
    """Computes attention and its gradient slice by slice, from (B, N, T, H) tensors.

    A call maps query (B, N, T, H), key (B, K, S, H) and value (B, K, S, Hv) to (B, N, T, Hv).

    Args:
        scale: float, the factor of the dot products.
        table: `_Table`, the masks of the slices.
        slices: list of pairs (rows, columns), the ranges of queries and of keys.
        keeps_weights: bool, whether the backward pass uses the weights of the forward pass. False
            computes them again.
    """

    def __init__(self, scale, table, slices, keeps_weights):
        self.scale, self.table, self.slices = scale, table, slices
        self.keeps_weights = keeps_weights

    def __call__(self, query, key, value):
        @tf.custom_gradient
        def attention(query, key, value):
            output, kept = self._forward(query, key, value)

            def gradient(upstream):
                return self._backward(query, key, value, output, kept, upstream)

            return output, gradient

        return attention(query, key, value)

    def _forward(self, query, key, value):
        outputs, kept, before = [], [], None
        for rows, columns in self.slices:
            small = rows.size * columns.size <= MOST_PARALLEL
            with tf.control_dependencies(outputs[-2:-1] if small else outputs[-1:]):
                [left] = _rows(rows, [query], key)
                if columns != before:
                    right, values = _columns(columns, [key, value])
                bias = self.table.bias(rows, columns, left)
            before = columns
            weights = self._weights(left, right, bias)
            kept.append(weights if self.keeps_weights else None)
            output = tf.matmul(weights, values)
            outputs.append(tf.reshape(output, (-1, query.shape[1], rows.size, value.shape[3])))
        return tf.concat(outputs, axis=2), kept

    def _backward(self, query, key, value, output, kept, upstream):
        minus = _minus_inner(upstream, output)
        upstream = tf.concat([upstream, *minus], axis=3)
        value = tf.concat([value, *(tf.ones_like(value[..., :1]) for _ in minus)], axis=3)
        of_query = QueryGradients(Operand(query, row_axis=2))
        of_key, of_value = (KeyGradients(Operand(x, column_axis=2)) for x in (key, value))
        done, before = [], None
        for (rows, columns), weights in zip(self.slices, kept, strict=True):
            with tf.control_dependencies(done):
                left, above = _rows(rows, [query, upstream], key)
                if columns != before:
                    right, values = _columns(columns, [key, value])
                bias = self.table.bias(rows, columns, left)
            before = columns
            if weights is None:
                weights = self._weights(left, right, bias)
            of_scores = weights * tf.matmul(above, values, transpose_b=True)
            done = [
                _separate_heads(tf.matmul(of_scores, _center(right)), query, rows.size),
                _separate_heads(tf.matmul(of_scores, left, transpose_a=True), key, columns.size),
                _separate_heads(tf.matmul(weights, above, transpose_a=True), value, columns.size),
            ]
            for total, gradient in zip((of_query, of_key, of_value), done, strict=True):
                total.add(gradient, columns)
        of_query, of_key, of_value = (x.result() for x in (of_query, of_key, of_value))
        return of_query * self.scale, of_key * self.scale, of_value[..., : -len(minus)]

    def _weights(self, left, right, bias):
        scores = tf.matmul(left, right, transpose_b=True)
        scores = scores if self.scale == 1 else scores * self.scale
        scores = scores if bias is None else scores + bias
        if scores.dtype == tf.float32 or onednn.normalizes_bfloat16():
            return tf.nn.softmax(scores)
        return tf.cast(tf.nn.softmax(tf.cast(scores, "float32")), scores.dtype)


def _minus_inner(upstream, output):
    """Compute `-upstream · output` over the last axis, as a list of tensors to be summed.

    Each is (B, N, T, 1). For 16-bit floats there are two, the second with the rounding error.
    """
    inner = -tf.cast(upstream, "float32") * tf.cast(output, "float32")
    inner = tf.reduce_sum(inner, axis=3, keepdims=True)
    high = tf.cast(inner, upstream.dtype)
    if high.dtype == tf.float32:
        return [high]
    return [high, tf.cast(inner - tf.cast(high, "float32"), high.dtype)]


def _center(keys):
    """Subtract their mean from 16-bit keys (..., S, H), so that rounding errors stay small.

    The gradients of the scores of a query should add up to 0. Rounded, they do not, and the
    gradient of the query would get a multiple of the mean key.
    """
    if keys.dtype == tf.float32:
        return keys
    mean = tf.reduce_mean(tf.cast(keys, "float32"), axis=-2, keepdims=True)
    return tf.cast(tf.cast(keys, "float32") - mean, keys.dtype)


def _rows(rows, tensors, key):
    """Cut the slice `rows` from each (B, N, T, ...) in `tensors`: (B · K, 1, N / K · rows, ...)."""
    heads = tensors[0].shape[1] // key.shape[1]
    return _cut(rows, tensors, heads)


def _columns(columns, tensors):
    """Cut the slice `columns` from each (B, K, S, ...) in `tensors`: (B · K, 1, columns, ...)."""
    return _cut(columns, tensors, 1)


def _cut(piece, tensors, heads):
    shape = (-1, 1, heads * piece.size)
    cuts = [tf.reshape(piece.take(x, 2), (*shape, x.shape[3])) for x in tensors]
    return [tf.identity(cut) for cut in cuts]  # so that control dependencies of the slice apply


def _separate_heads(x, like, size):
    """Undo `_cut`: reshape `x` to (B, heads, size, ...), with as many heads as `like`."""
    return tf.reshape(x, (-1, like.shape[1], size, like.shape[3]))


class _Table:
    """The masks of all slices, cut from one table of distances.

    Args:
        mask: a mask that depends only on the distance i - j (it is `relative`), or None.
        slices: list of pairs (rows, columns), the ranges of queries and of keys.
        query: (B, N, T, H).
        key: (B, K, S, H).
    """

    def __init__(self, mask, slices, query, key):
        self.slices = slices
        self.length, self.keys = query.shape[2], key.shape[2]
        self.by_distance = _by_distance(mask, self.length, self.keys)
        self.is_empty, self.cut = self.by_distance is None, None
        if self.is_empty:
            return
        self.start = max(rows.start - columns.start for rows, columns in slices)
        width = max(self._first(*one) + one[1].size for one in slices)
        rows = max(rows.size for rows, _ in slices)
        zero = zero_for(query, slices)
        row = tf.range(self.start, self.start + rows) + (0 if zero is None else zero)
        distance = row[:, None] - tf.range(width)[None] + (self.keys - 1)
        self.distance = tf.clip_by_value(distance, 0, len(self.by_distance) - 1)
        biases = np.where(self.by_distance, 0.0, scope.mask_constant())
        self.biases = tf.gather(tf.constant(biases, query.dtype), self.distance)

    def _first(self, rows, columns):
        """Return the column of the table where a slice begins."""
        return self.start - (rows.start - columns.start)

    def _cut(self, table, rows, columns):
        first = self._first(rows, columns)
        return table[: rows.size, first : first + columns.size]

    def bias(self, rows, columns, queries):
        """Return the mask of a slice as a bias to add to its scores, or None without a mask.

        Args:
            rows, columns: the slice.
            queries: the slice's queries, from `_rows`.

        Returns:
            (1, 1, N / K · rows, columns), 0 for visible keys and a very negative number for others.
        """
        if self.is_empty:
            return None
        key = rows.size, self._first(rows, columns), columns.size
        if self.cut is None or self.cut[0] != key:
            bias = self._cut(self.biases, rows, columns)
            bias = tf.tile(bias, (queries.shape[2] // rows.size, 1))
            self.cut = key, tf.reshape(bias, (1, 1, *bias.shape))
        return self.cut[1]

    def seen(self, padding):
        """Return which queries see any key: 1.0 or 0.0, (B or 1, 1, T or 1, 1).

        `padding` is bool (B or 1, 1, 1, S), False for padding, or None. Return None if all queries
        see one.
        """
        if padding is None:
            return self._seen_unpadded()
        padding = tf.cast(padding[:, 0, 0], "float32")  # (B or 1, S)
        if self.is_empty:
            return tf.reduce_max(padding, axis=1)[:, None, None, None]
        allowed = tf.gather(tf.constant(self.by_distance, "float32"), self.distance)
        counts = []
        for rows, columns in self.slices:
            with tf.control_dependencies(counts[-1:]):
                cut = tf.identity(self._cut(allowed, rows, columns))
            counts.append(tf.matmul(columns.take(padding, 1), cut, transpose_b=True))
        return tf.cast(tf.concat(counts, axis=1) > 0.5, "float32")[:, None, :, None]

    def _seen_unpadded(self):
        if self.is_empty:
            return None
        allowed = np.concatenate([[0], np.cumsum(self.by_distance)])
        last = np.arange(self.length) + self.keys  # the end of each query's distances
        seen = allowed[last] > allowed[last - self.keys]
        return None if seen.all() else tf.constant(seen[None, None, :, None], "float32")


def _by_distance(mask, length, keys):
    """Evaluate a mask of T = `length` and S = `keys` for all distances: bool, at i - j + keys - 1.

    Return None if all pairs are allowed.
    """
    if mask is None:
        return None
    with tf.init_scope():  # eager, outside the graph
        i, j = expand_queries(np.arange(length + keys - 1)), expand_keys([keys - 1])
        allowed = np.asarray(mask.allows(i, j))
    allowed = np.broadcast_to(allowed, (1, 1, length + keys - 1, 1)).reshape(-1)
    return None if allowed.all() else allowed
