"""Exact attention for long inputs: queries in slices, each over all the keys that it may see."""

import math

from keras_attention.attention.kernels import sliced
from keras_attention.attention.kernels.bias_and_mask import AxisRange

LEAST_ROWS, MOST_ROWS = 128, 256


def refuses(case):
    """Why it cannot compute `case`, or None."""
    return sliced.refuses(case)


def chunked(query, key, value, *, score, normalizer, bias_and_mask, dropout=None):
    """As `dense`, in memory O(T) forward and backward (Rabe and Staats, 2021).

    Keys are not sliced: a row of weights is normalized at once, by any normalizer. Where the mask
    lets no query look ahead, a slice stops where its last query does, or soon after: slices that
    stop at the same key share what is cut for them.
    """
    length, keys = query.shape[1], key.shape[1]
    ahead = None
    if bias_and_mask.mask is not None and bias_and_mask.positions_are_indices:
        reach = bias_and_mask.mask.reach()
        ahead = None if reach.tokens else reach.right
    slices = []
    size = rows_at_once(keys)
    step = max(size, keys // 16)
    for start in range(0, length, size):
        rows = AxisRange(start, min(size, length - start))
        end = keys if ahead is None else max(1, rows.end + ahead)
        end = min(keys, math.ceil(end / step) * step)
        slices.append((rows, AxisRange(0, end)))
    output = sliced.attend_in_slices(
        query,
        key,
        value,
        score=score,
        normalizer=normalizer,
        bias_and_mask=bias_and_mask,
        slices=slices,
    )
    return output, None


def rows_at_once(keys):
    """Queries in a slice: few where scores then fit a processor's cache, or where keys are many."""
    return LEAST_ROWS if keys < 1024 else min(max(2**20 // keys, LEAST_ROWS), MOST_ROWS)
