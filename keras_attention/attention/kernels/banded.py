"""Attention within a band along the diagonal: time and memory grow linearly with T."""

import numpy as np
from keras import ops

from keras_attention.attention.kernels import dense, sliced
from keras_attention.attention.kernels.axis_pieces import AxisIndices, AxisRange

LEAST_ROWS, MOST_ROWS = 64, 256


def find_obstacle(lengths, equation, visibility):
    """Return the reason (str) why banded attention cannot compute a call, or None if it can.

    `lengths` is (T, S), each an int, or None if dynamic. `equation` has the score, normalizer and
    position encoding of the call, and `visibility` its masks and positions.
    """
    if visibility.mask is None or None in visibility.mask.band():
        return "the mask has no band: it is unbounded on one side or on both"
    if not visibility.positions_are_indices:
        return "positions are given, so indices do not bound which keys a query sees"
    return sliced.find_obstacle(lengths, equation, visibility)


def find_advantage(lengths, visibility):
    """Return the reason (str) why banded attention is the best choice for a call, or None.

    `lengths` is (T, S), each an int, or None if dynamic. `visibility` has the masks and positions
    of the call.
    """
    reach, keys = visibility.mask.reach(), lengths[1]
    seen = reach.left + reach.right + 1 + len(reach.tokens) + rows_at_once(reach)
    if seen > keys / 2:
        return None
    return f"a slice of the queries sees {seen} of {keys} keys"


def banded(query, key, value, equation, visibility):
    """Compute attention for a mask with a bounded `band()`, such as a window, in time O(T · width).

    The arguments and the output are the same as in `dense`. None is returned for the weights. The
    queries are divided into slices. The scores of a slice are computed for the keys from the left
    bound of its first query to the right bound of its last query, and for the global tokens. The
    mask applies to these scores, so the result is exact (Beltagy et al., 2020, section 3.1). The
    queries of the global tokens themselves are computed by `dense`.
    """
    length, keys = query.shape[1], key.shape[1]
    reach = visibility.mask.reach()
    tokens = tuple(token for token in reach.tokens if token < keys)
    slices = _slices(length, keys, reach)
    global_keys = AxisIndices(tokens) if tokens else None
    output = sliced.attend_in_slices(query, key, value, equation, visibility, slices, global_keys)
    queries = tuple(token for token in reach.tokens if token < length)
    if queries:
        rows, _ = dense.dense(query, key, value, equation, visibility, AxisIndices(queries))
        source = np.arange(length)
        source[list(queries)] = length + np.arange(len(queries))
        output = ops.take(ops.concatenate([output, rows], axis=1), source, axis=1)
    return output, None


def _slices(length, keys, reach):
    """Divide the queries into slices, and return the range of queries and of keys of each slice.

    `length` is T, `keys` is S, and `reach` holds the bounds of the mask.

    A slice that sees no key gets one key, which the mask hides.
    """
    size = rows_at_once(reach)
    slices = []
    for start in range(0, length, size):
        rows = AxisRange(start, min(size, length - start))
        first = min(max(rows.start - reach.left, 0), keys - 1)
        end = min(max(rows.end + reach.right, first + 1), keys)
        slices.append((rows, AxisRange(first, end - first)))
    return slices


def rows_at_once(reach):
    """Return the number of queries in a slice: half of the width of the mask, within limits.

    `reach` is the `Reach` of the mask: how many keys a query sees to the left and to the right.
    """
    width = reach.left + reach.right + 1
    return min(max(width // 2, LEAST_ROWS), MOST_ROWS)
