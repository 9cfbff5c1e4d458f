"""Dense attention: `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`."""

import keras
import numpy as np
from keras import ops

from keras_attention.attention.kernels.axis_pieces import WholeAxis
from keras_attention.core.shapes import prepend_batch
from keras_attention.scores.base import fold_unscaled, score_pairs


def dense(query, key, value, equation, visibility, rows=None, cached=False):
    """Compute `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`.

    Args:
        query: (B, T, N, H), the query heads.
        key: (B, S, K, H). K divides N: query head h uses key head h // (N / K).
        value: (B, S, K, Hv), the value heads.
        equation: the `Equation` to compute: score, bias, normalizer and dropout.
        visibility: the `Visibility` of the call: its masks and positions.
        rows: `AxisIndices`, the queries to compute. None computes all.
        cached: bool, whether key and value have the layout of a cache, (B, K, S, H) and
            (B, K, S, Hv).

    Returns:
        The output (B, T, N, Hv) and the weights before dropout (B, N, T, S).
    """
    rows = WholeAxis(ops.shape(query)[1]) if rows is None else rows
    columns = WholeAxis(ops.shape(key)[2 if cached else 1])
    query = rows.take(query, 1)
    # Not ops.transpose, which LiteRT converts incorrectly after a cache update in a loop.
    by_length = ops.einsum("bksh->bskh", key) if cached else key  # (B, S, K, H)
    i, j = visibility.positions(rows, columns)
    bias = equation.block_bias(i, j, query, by_length, rows.take(equation.bias, 2))
    mask = visibility.allows(i, j, rows.take(visibility.tensor, 2))
    if cached:
        scores = _score_cached(equation.score, query, key, by_length)
    else:
        scores = compute_scores(equation.score, query, key)  # (B, N, T, S)
    if bias is not None:
        scores = ops.cast(scores, bias.dtype) + bias  # not ops.add: see tests/test_traps.py
    weights = ops.cast(equation.normalizer(scores, mask), value.dtype)
    dropped = weights if equation.dropout is None else equation.dropout(weights)
    by_head = value if cached else ops.transpose(value, (0, 2, 1, 3))
    output = ops.transpose(matmul_by_group(dropped, by_head), (0, 2, 1, 3))  # (B, T, N, Hv)
    return add_position_values(output, equation.block_values(i, j, dropped)), weights


def dense_output(query, key, value, equation, visibility):
    """Compute the output of `dense` for a call that does not need the weights.

    The arguments are the same as in `dense`. None is returned for the weights.
    """
    output = None
    if keras.backend.backend() == "tensorflow":
        from keras_attention.attention.kernels import softmax_tensorflow

        output = softmax_tensorflow.attend_at_once(query, key, value, equation, visibility)
    if output is None:
        output, _ = dense(query, key, value, equation, visibility)
    return output, None


def compute_scores(score, query, key):
    """Compute the scores (B, N, T, S) of queries (B, T, N, H) and keys (B, S, K, H).

    `score` is a `Score`, the function that compares a query with a key.
    """
    if score.fold is None:
        return score_pairs(score, query, repeat_heads(key, query.shape[2]))
    return matmul_by_group(*fold(score, query, key))


def _score_cached(score, query, key, by_length):
    """Compute the scores (B, N, T, S) for a key (B, K, S, H) in the layout of a cache.

    `by_length` is the same key as (B, S, K, H).
    """
    if score.fold is None:
        return score_pairs(score, query, repeat_heads(by_length, query.shape[2]))
    query, folded, scale = score.fold(query, by_length)
    query = scale_query(query, scale)
    # If the score does not transform keys, they need not be transposed back.
    key = key if folded is by_length else ops.transpose(folded, (0, 2, 1, 3))
    query = ops.transpose(query, (0, 2, 1, 3))
    return matmul_by_group(query, ops.transpose(key, (0, 1, 3, 2)))


def fold(score, query, key):
    """Return two tensors whose product is the score: (B, N, T, H) and (B, K, H, S).

    `query` is (B, T, N, H) and `key` (B, S, K, H). `score` must define `fold`, which means that it
    is a dot product of transformed queries and keys.
    """
    query, key, scale = fold_unscaled(score, query, key)
    query = scale_query(query, scale)  # cheaper than scaling the scores
    return ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1))


def scale_query(query, scale):
    """Compute `query · scale` in a form that TensorFlow does not fuse with the next operations.

    For one head and one query, nothing is transposed, and TensorFlow 2.21 fuses query · constant ·
    keys + mask into a single oneDNN operation, which has two bugs. It looks up its inputs by node
    name, so it always reads the first output of a `split`. And its output has as many rows as the
    product, even if the mask has more. A vector of constants is not fused, and costs nothing. For
    heads of size 1, that would be a single constant, so a negation separates the products instead.
    """
    if isinstance(scale, (int, float)) and scale == 1:
        return query
    if isinstance(scale, (int, float)) and (query.shape[-1] or 1) > 1:
        each = np.full(query.shape[-1:], scale)  # not ops.full, which is folded to one constant
        return ops.multiply(query, ops.cast(each, query.dtype))
    return ops.negative(ops.multiply(query, ops.cast(-scale, query.dtype)))


def matmul_by_group(left, right):
    """Multiply `left` (B, N, T, A) by `right` (B, K, A, C) and return (B, N, T, C).

    A and C are any sizes. Each group of N / K heads of `left` shares one head of `right`. The heads
    of a group are stacked along T by a reshape, so `right` is not repeated, and no fifth axis is
    needed.
    """
    heads, groups = left.shape[1], right.shape[1]
    if heads == groups:
        return ops.matmul(left, right)
    length = ops.shape(left)[2]
    rows = heads // groups * length
    stacked = ops.reshape(left, prepend_batch(left, groups, rows, ops.shape(left)[3]))
    product = ops.matmul(stacked, right)
    return ops.reshape(product, prepend_batch(left, heads, length, ops.shape(right)[3]))


def add_position_values(output, values):
    """Add `values`, the term of a position encoding, to `output`. None adds nothing.

    Both are (B, T, N, Hv). Raise a ValueError if their last axes differ.
    """
    if values is None:
        return output
    size, added = output.shape[-1], values.shape[-1]
    if None not in (size, added) and added not in (1, size):
        raise ValueError(
            f"The position adds vectors of size {added} to values whose heads have size {size}. "
            f"Give it value_dim={size}, or leave values unchanged: Shaw(use_values=False)."
        )
    return output + ops.cast(values, output.dtype)


def repeat_heads(key, heads):
    """Repeat the heads of a key (B, S, K, H) to (B, S, N, H), for N = `heads`."""
    groups = key.shape[2]
    return key if groups == heads else ops.repeat(key, heads // groups, axis=2)
