"""Exact attention for long inputs: queries in slices, each over all the keys that it may see."""

import math

from keras_attention.attention.kernels import slicing
from keras_attention.attention.kernels.sliced import sliced
from keras_attention.attention.span import Span

LEAST_ROWS, MOST_ROWS = 128, 256


def refuses(case):
    """Why it cannot compute `case`, or None."""
    return slicing.refuses(case)


def chunked(query, key, value, *, score, normalizer, square, dropout=None):
    """As `dense`, in memory O(T) forward and backward (Rabe and Staats, 2021).

    Keys are not sliced: a row of weights is normalized at once, by any normalizer. Where the mask
    lets nobody look ahead, a slice stops where its last query does, or soon after: slices that
    stop at the same key share what is cut for them.
    """
    length, keys = query.shape[1], key.shape[1]
    ahead = None
    if square.mask is not None and slicing.counted(square):
        reach = square.mask.reach()
        ahead = None if reach.tokens else reach.right
    slices = []
    size = rows_at_once(keys)
    step = max(size, keys // 16)
    for start in range(0, length, size):
        rows = Span(start, min(size, length - start))
        end = keys if ahead is None else max(1, rows.end + ahead)
        end = min(keys, math.ceil(end / step) * step)
        slices.append((rows, Span(0, end)))
    output = sliced(
        query, key, value, score=score, normalizer=normalizer, square=square, slices=slices
    )
    return output, None


def rows_at_once(keys):
    """Queries in a slice: few where scores then stay in cache, or where more would not fit."""
    return LEAST_ROWS if keys < 1024 else min(max(2**20 // keys, LEAST_ROWS), MOST_ROWS)
