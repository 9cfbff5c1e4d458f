"""The equation over keys and values as a cache keeps them, heads first: nothing is turned."""

from keras import ops

from keras_attention.attention.kernels.dense import (
    matmul_by_group,
    plus,
    repeat_heads,
    weigh,
)
from keras_attention.attention.span import Whole


def stored(query, key, value, *, score, normalizer, square, dropout=None):
    """As `dense`, with key (B, K, S, H) and value (B, K, S, Hv)."""
    rows, columns = Whole(ops.shape(query)[1]), Whole(ops.shape(key)[2])
    # (B, S, K, H); graphs leave it out if unused. LiteRT's converter makes a wrong graph of a
    # `transpose` right after the cache's update in a loop, and a right one of this.
    turned = ops.einsum("bksh->bskh", key)
    bias, mask = square.block(rows, columns, query, turned, square.bias)
    scores = _scores(score, query, key, turned)
    weights = weigh(scores, bias, mask, normalizer, value.dtype)
    mixed = weights if dropout is None else dropout(weights)
    output = ops.transpose(matmul_by_group(mixed, value), (0, 2, 1, 3))  # (B, T, N, Hv)
    return plus(output, square.values(rows, columns, mixed)), weights


def _scores(score, query, key, turned):
    """(B, N, T, S)."""
    if score.fold is None:
        return score(query, repeat_heads(turned, query.shape[2]))
    query, folded, scale = score.fold(query, turned)
    if not (isinstance(scale, (int, float)) and scale == 1):
        query = ops.multiply(query, ops.cast(scale, query.dtype))
    # A score that leaves keys as they are leaves them where they are.
    key = key if folded is turned else ops.transpose(folded, (0, 2, 1, 3))
    query = ops.transpose(query, (0, 2, 1, 3))
    return matmul_by_group(query, ops.transpose(key, (0, 1, 3, 2)))
