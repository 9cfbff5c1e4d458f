"""Exact attention for long inputs: queries in slices, each over all the keys that it may see."""

import math

import keras

from keras_attention.attention.kernels import sliced
from keras_attention.attention.kernels.axis_pieces import AxisRange
from keras_attention.core import scope

LEAST_ROWS, MOST_ROWS = 128, 256
LONG = 2048  # keys: from here on slices, a tenth slower than dense, save memory that matters
LONG_CAUSAL = 256  # keys, where no query looks ahead: from here on slices are faster on a CPU

refuses = sliced.refuses


def pays(lengths, visibility):
    """Return why it is the kernel to take, or None."""
    queries, keys = lengths
    least = LONG_CAUSAL if _looks_back(visibility, keys) and _runs_on_cpu() else LONG
    rows = rows_at_once(keys)
    if scope.current(scope.Export) or keys < least or queries <= rows:
        return None
    return f"{keys} keys are many; memory stays that of {rows} queries"


def _runs_on_cpu():
    """Return whether slices skip half of the work of a causal mask at once, as on CPUs."""
    if keras.backend.backend() != "tensorflow":
        return True
    from keras_attention.attention.kernels import sliced_tensorflow

    return sliced_tensorflow.keeps_order()


def _looks_back(visibility, keys):
    """Return whether the mask hides most later keys, which are about half of the scores."""
    mask = visibility.mask
    if mask is None or not visibility.positions_are_indices or mask.global_tokens():
        return False
    ahead = mask.band()[1]
    return ahead is not None and ahead <= keys / 8


def chunked(query, key, value, equation, visibility):
    """As `dense`, in memory O(T) forward and backward (Rabe and Staats, 2021).

    Keys are not sliced: a row of weights is normalized at once, by any normalizer. Where the mask
    lets no query look ahead, a slice stops where its last query does, or soon after: slices that
    stop at the same key share what is cut for them.
    """
    length, keys = query.shape[1], key.shape[1]
    ahead = None
    if visibility.mask is not None and visibility.positions_are_indices:
        reach = visibility.mask.reach()
        ahead = None if reach.tokens else reach.right
    slices = []
    size = rows_at_once(keys)
    step = max(size, keys // 16)
    for start in range(0, length, size):
        rows = AxisRange(start, min(size, length - start))
        end = keys if ahead is None else max(1, rows.end + ahead)
        end = min(keys, math.ceil(end / step) * step)
        slices.append((rows, AxisRange(0, end)))
    return sliced.attend_in_slices(query, key, value, equation, visibility, slices), None


def rows_at_once(keys):
    """Return how many queries a slice has: few where scores fit a cache, or keys are many."""
    return LEAST_ROWS if keys < 1024 else min(max(2**20 // keys, LEAST_ROWS), MOST_ROWS)
