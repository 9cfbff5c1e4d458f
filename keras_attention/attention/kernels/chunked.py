"""Exact attention for long inputs: queries are processed in slices, each with all its keys."""

import math

import keras

from keras_attention.attention.kernels import sliced
from keras_attention.attention.kernels.axis_pieces import AxisRange
from keras_attention.core import scope

LEAST_ROWS, MOST_ROWS = 128, 256
LONG = 2048  # for this many keys, slices save much memory, and take a tenth longer than dense
LONG_CAUSAL = 256  # for this many keys and a causal mask, slices are faster on a CPU

find_obstacle = sliced.find_obstacle


def find_advantage(lengths, visibility):
    """Return the reason (str) why chunked attention is the best choice for a call, or None.

    `lengths` is (T, S), each an int, or None if dynamic. `visibility` has the masks and positions
    of the call.
    """
    queries, keys = lengths
    least = LONG_CAUSAL if _looks_back(visibility, keys) and _runs_on_cpu() else LONG
    rows = rows_at_once(keys)
    if scope.current(scope.Export) or keys < least or queries <= rows:
        return None
    return f"{keys} keys are many, so memory holds the scores of only {rows} queries"


def _runs_on_cpu():
    """Return whether slices can skip the half of the scores that a causal mask hides.

    It is True on CPUs without XLA, and on backends other than TensorFlow.
    """
    if keras.backend.backend() != "tensorflow":
        return True
    from keras_attention.attention.kernels import sliced_tensorflow

    return sliced_tensorflow.keeps_order()


def _looks_back(visibility, keys):
    """Return whether the mask hides most later keys, about half of the scores. `keys` is S."""
    mask = visibility.mask
    if mask is None or not visibility.positions_are_indices or mask.global_tokens():
        return False
    ahead = mask.band()[1]
    return ahead is not None and ahead <= keys / 8


def chunked(query, key, value, equation, visibility):
    """Compute attention in memory O(T), forward and backward (Rabe and Staats, 2021).

    If there are few weights, TensorFlow keeps them for the backward pass on CPUs, which is faster.

    The arguments and the output are the same as in `dense`. None is returned for the weights. Only
    queries are sliced, so any normalizer sees whole rows of scores. If the mask bounds how far
    queries look ahead, the keys of a slice end shortly after its last query. These ends are
    rounded, so that several slices can share the same tensors of keys and values.
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
    """Return the number of queries in a slice whose scores with S = `keys` fit the CPU's cache."""
    return LEAST_ROWS if keys < 1024 else min(max(2**20 // keys, LEAST_ROWS), MOST_ROWS)
