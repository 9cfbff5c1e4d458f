"""The equation itself, over all (T, S) pairs: every part, and the weights."""

import numpy as np
from keras import ops

from keras_attention.attention.kernels.axis_pieces import WholeAxis
from keras_attention.core.shapes import prepend_batch
from keras_attention.scores.base import check_axes, score_pairs


def dense(query, key, value, equation, visibility):
    """Compute `weights = normalize(score(q, k) + bias, mask)` and `output = weights · v`.

    Args:
        query: (B, T, N, H). key: (B, S, K, H). value: (B, S, K, Hv). K divides N: query head h
            attends with key head h // (N / K).
        equation: `Equation`, what is computed. visibility: `Visibility`, who sees whom.

    Returns:
        The output (B, T, N, Hv) and the weights before dropout (B, N, T, S).
    """
    rows, columns = WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[1])
    i, j = visibility.positions(rows, columns)
    bias = equation.block_bias(i, j, query, key, equation.bias)
    mask = visibility.allows(i, j, visibility.tensor)
    scores = scores_of(equation.score, query, key)  # (B, N, T, S)
    weights = weigh(scores, bias, mask, equation.normalizer, value.dtype)
    dropped = weights if equation.dropout is None else equation.dropout(weights)
    output = matmul_by_group(dropped, ops.transpose(value, (0, 2, 1, 3)))  # (B, N, T, Hv)
    output = ops.transpose(output, (0, 2, 1, 3))
    return plus(output, equation.block_values(i, j, dropped)), weights


def weigh(scores, bias, mask, normalizer, dtype):
    """Map scores (B, N, T, S) to weights of `dtype`."""
    if bias is not None:
        scores = ops.cast(scores, bias.dtype) + bias  # not ops.add: see tests/test_traps.py
    return ops.cast(normalizer(scores, mask), dtype)


def scores_of(score, query, key):
    """Map (B, T, N, H) and (B, S, K, H) to scores (B, N, T, S)."""
    if score.fold is None:
        return score_pairs(score, query, repeat_heads(key, query.shape[2]))
    query, key = folded(score, query, key)
    return matmul_by_group(query, key)


def folded(score, query, key):
    """Return the two factors of a score that folds: (B, N, T, H) and (B, K, H, S)."""
    (*queries, _), (*keys, _) = query.shape, key.shape
    query, key, scale = score.fold(query, key)
    check_axes(score, "query", query, (*queries, None))
    check_axes(score, "key", key, (*keys, query.shape[-1]))
    query = scaled(query, scale)  # (B, T, N, H): the smaller side
    return ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1))


def scaled(query, scale):
    """Return `query · scale`, in a form that TensorFlow does not fuse with what follows.

    Where nothing has to be transposed, with one head and one query, a query times a constant, times
    the keys, plus a mask is one operation of oneDNN in TensorFlow's graphs. These (2.21) take its
    inputs by the names of the nodes that make them, so that of a `split` it always gets the first
    part: the second map of differential attention had the queries of the first. And it gives no
    more rows than the product has, where a mask has more. One constant for each coordinate, which
    costs nothing, is not fused; where that is one for all, as with heads of size 1, a sign between
    the products is in the way.
    """
    if isinstance(scale, (int, float)) and scale == 1:
        return query
    if isinstance(scale, (int, float)) and (query.shape[-1] or 1) > 1:
        each = np.full(query.shape[-1:], scale)  # NumPy: a fill would be folded to one number
        return ops.multiply(query, ops.cast(each, query.dtype))
    return ops.negative(ops.multiply(query, ops.cast(-scale, query.dtype)))


def matmul_by_group(left, right):
    """Map (B, N, T, A) @ (B, K, A, C) -> (B, N, T, C): N / K heads of `left` share one of `right`.

    The heads of a group are stacked along T, which is a reshape: nothing is repeated, rank stays 4.
    """
    heads, groups = left.shape[1], right.shape[1]
    if heads == groups:
        return ops.matmul(left, right)
    length = ops.shape(left)[2]
    rows = heads // groups * length
    stacked = ops.reshape(left, prepend_batch(left, groups, rows, ops.shape(left)[3]))
    product = ops.matmul(stacked, right)
    return ops.reshape(product, prepend_batch(left, heads, length, ops.shape(right)[3]))


def plus(output, more):
    """Return the output (B, T, N, Hv) with what a position adds to it, or None."""
    if more is None:
        return output
    size, added = output.shape[-1], more.shape[-1]
    if None not in (size, added) and added not in (1, size):
        raise ValueError(
            f"The position adds vectors of size {added} to values whose heads have size {size}. "
            f"Give it value_dim={size}, or leave values alone: Shaw(use_values=False)."
        )
    return output + ops.cast(more, output.dtype)


def repeat_heads(key, heads):
    groups = key.shape[2]
    return key if groups == heads else ops.repeat(key, heads // groups, axis=2)


def dense_cached(query, key, value, equation, visibility):
    """As `dense`, over a cache: key (B, K, S, H) and value (B, K, S, Hv), not transposed."""
    rows, columns = WholeAxis(ops.shape(query)[1]), WholeAxis(ops.shape(key)[2])
    # (B, S, K, H); graphs leave it out if unused. LiteRT's converter makes a wrong graph of a
    # `transpose` right after the cache's update in a loop, and a right one of this.
    by_length = ops.einsum("bksh->bskh", key)
    i, j = visibility.positions(rows, columns)
    bias = equation.block_bias(i, j, query, by_length, equation.bias)
    mask = visibility.allows(i, j, visibility.tensor)
    scores = _cached_scores(equation.score, query, key, by_length)
    weights = weigh(scores, bias, mask, equation.normalizer, value.dtype)
    dropped = weights if equation.dropout is None else equation.dropout(weights)
    output = ops.transpose(matmul_by_group(dropped, value), (0, 2, 1, 3))  # (B, T, N, Hv)
    return plus(output, equation.block_values(i, j, dropped)), weights


def _cached_scores(score, query, key, by_length):
    """Return (B, N, T, S)."""
    if score.fold is None:
        return score_pairs(score, query, repeat_heads(by_length, query.shape[2]))
    query, folded, scale = score.fold(query, by_length)
    query = scaled(query, scale)
    # Where the score does not change keys, they need no second transposition.
    key = key if folded is by_length else ops.transpose(folded, (0, 2, 1, 3))
    query = ops.transpose(query, (0, 2, 1, 3))
    return matmul_by_group(query, ops.transpose(key, (0, 1, 3, 2)))
