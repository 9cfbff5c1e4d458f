"""Attention within a band along the diagonal, in time and memory that grow with T alone."""

import numpy as np
from keras import ops

from keras_attention.attention.kernels import dense, sliced
from keras_attention.attention.kernels.bias_and_mask import AxisIndices, AxisRange, WholeAxis

LEAST_ROWS, MOST_ROWS = 64, 256


def refuses(case):
    """Why it cannot compute `case`, or None."""
    if case.mask is None or None in case.mask.band():
        return "the mask has no band: it bounds neither or only one side"
    if case.positions:
        return "positions are given, so that indices do not bound which keys a query attends to"
    return sliced.refuses(case)


def banded(query, key, value, *, score, normalizer, bias_and_mask, dropout=None):
    """As `dense`, where the mask has a `band()`: O(T · width), plus global tokens.

    A slice of queries sees the keys from the first one's left bound to the last one's right bound,
    and the mask rules within (Beltagy et al., 2020, section 3.1, computed exactly). Global tokens
    are keys for every slice; as queries they are computed apart.
    """
    length, keys = query.shape[1], key.shape[1]
    reach = bias_and_mask.mask.reach()
    tokens = tuple(token for token in reach.tokens if token < keys)
    slices = _slices(length, keys, reach)
    global_keys = AxisIndices(tokens) if tokens else None
    terms = dict(score=score, normalizer=normalizer, bias_and_mask=bias_and_mask)
    output = sliced.attend_in_slices(
        query, key, value, **terms, slices=slices, global_keys=global_keys
    )
    queries = tuple(token for token in reach.tokens if token < length)
    if queries:
        output = _replace(
            output, queries, _attend_globally(AxisIndices(queries), query, key, value, **terms)
        )
    return output, None


def _slices(length, keys, reach):
    """(rows, columns) for all queries; a slice without keys gets one, which the mask hides."""
    size = rows_at_once(reach)
    slices = []
    for start in range(0, length, size):
        rows = AxisRange(start, min(size, length - start))
        first = min(max(rows.start - reach.left, 0), keys - 1)
        end = min(max(rows.end + reach.right, first + 1), keys)
        slices.append((rows, AxisRange(first, end - first)))
    return slices


def rows_at_once(reach):
    """Queries in a slice: about half of the band's width, so that half of the work counts."""
    width = reach.left + reach.right + 1
    return min(max(width // 2, LEAST_ROWS), MOST_ROWS)


def _attend_globally(indices, query, key, value, *, score, normalizer, bias_and_mask):
    """The output (B, tokens, N, Hv) of the global tokens as queries, over all keys."""
    query = indices.take(query, 1) if query.shape[1] != 1 else query
    bias = None if bias_and_mask.bias is None else indices.take(bias_and_mask.bias, 2)
    all_keys = WholeAxis(ops.shape(key)[1])
    bias, mask = bias_and_mask.block(indices, all_keys, query, key, bias)
    weights = dense.weigh(dense.scores_of(score, query, key), bias, mask, normalizer, value.dtype)
    output = dense.matmul_by_group(weights, ops.transpose(value, (0, 2, 1, 3)))
    output = ops.transpose(output, (0, 2, 1, 3))
    return dense.plus(output, bias_and_mask.values(indices, all_keys, weights))


def _replace(output, tokens, rows):
    """`output` (B, T, N, Hv) with the rows `tokens` replaced."""
    length = output.shape[1]
    source = np.arange(length)
    source[list(tokens)] = length + np.arange(len(tokens))
    return ops.take(ops.concatenate([output, rows], axis=1), source, axis=1)
