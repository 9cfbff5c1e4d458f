"""Attention within a band along the diagonal, in time and memory that grow with T alone."""

import numpy as np
from keras import ops

from keras_attention.attention.kernels import dense, sliced
from keras_attention.attention.kernels.axis_pieces import AxisIndices, AxisRange, WholeAxis

LEAST_ROWS, MOST_ROWS = 64, 256


def refuses(lengths, equation, visibility):
    """Return why it cannot compute an attention, or None."""
    if visibility.mask is None or None in visibility.mask.band():
        return "the mask has no band: it bounds neither or only one side"
    if not visibility.positions_are_indices:
        return "positions are given, so that indices do not bound which keys a query attends to"
    return sliced.refuses(lengths, equation, visibility)


def pays(lengths, visibility):
    """Return why it is the kernel to take, or None."""
    reach, keys = visibility.mask.reach(), lengths[1]
    seen = reach.left + reach.right + 1 + len(reach.tokens) + rows_at_once(reach)
    if seen > keys / 2:
        return None
    return f"a slice of the queries sees {seen} of {keys} keys"


def banded(query, key, value, equation, visibility):
    """As `dense`, where the mask has a `band()`: O(T · width), plus global tokens.

    A slice of queries sees the keys from the first one's left bound to the last one's right bound,
    and the mask rules within (Beltagy et al., 2020, section 3.1, computed exactly). Global tokens
    are keys for every slice; as queries they are computed apart.
    """
    length, keys = query.shape[1], key.shape[1]
    reach = visibility.mask.reach()
    tokens = tuple(token for token in reach.tokens if token < keys)
    slices = _slices(length, keys, reach)
    global_keys = AxisIndices(tokens) if tokens else None
    output = sliced.attend_in_slices(query, key, value, equation, visibility, slices, global_keys)
    queries = tuple(token for token in reach.tokens if token < length)
    if queries:
        rows = _attend_globally(AxisIndices(queries), query, key, value, equation, visibility)
        source = np.arange(length)
        source[list(queries)] = length + np.arange(len(queries))
        output = ops.take(ops.concatenate([output, rows], axis=1), source, axis=1)
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
    """Return how many queries a slice has: half of the band's width, so that half of it counts."""
    width = reach.left + reach.right + 1
    return min(max(width // 2, LEAST_ROWS), MOST_ROWS)


def _attend_globally(indices, query, key, value, equation, visibility):
    """Return the output (B, tokens, N, Hv) of the global tokens as queries, over all keys."""
    query = indices.take(query, 1) if query.shape[1] != 1 else query
    i, j = visibility.positions(indices, WholeAxis(ops.shape(key)[1]))
    bias = equation.block_bias(i, j, query, key, indices.take(equation.bias, 2))
    mask = visibility.allows(i, j, indices.take(visibility.tensor, 2))
    scores = dense.scores_of(equation.score, query, key)
    weights = dense.weigh(scores, bias, mask, equation.normalizer, value.dtype)
    output = dense.matmul_by_group(weights, ops.transpose(value, (0, 2, 1, 3)))
    output = ops.transpose(output, (0, 2, 1, 3))
    return dense.plus(output, equation.block_values(i, j, weights))
