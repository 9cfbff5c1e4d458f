"""Dynamic time warping over attention weights, to find when each token is spoken."""

import numpy as np

from keras_attention.core.checks import check_whole_number

EPSILON = 1e-10  # added to standard deviations, so that equal weights do not divide by zero


def find_warping_path(costs):
    """Find the cheapest path through a matrix of costs, by dynamic time warping.

    A path begins in the first row and column, and ends in the last ones. A step goes to the next
    row, to the next column, or to both. With path p, the function minimizes the sum of `costs[p]`
    (Sakoe and Chiba, 1978). The cost of the cheapest path to (i, j) is

        D[i, j] = costs[i, j] + min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1])

    Args:
        costs: float (T, S), finite, without NaN.

    Returns:
        Two int arrays (P,), the rows and the columns of the path. Among equal paths, the function
        prefers a step to the next row and column.

    Raises:
        ValueError: `costs` is not a matrix, is empty, or has NaN or infinity.

    ```python
    import numpy as np
    import keras_attention as ka

    costs = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    rows, columns = ka.generation.find_warping_path(costs)
    assert rows.tolist() == [0, 0, 1] and columns.tolist() == [0, 1, 2]
    ```
    """
    costs = _check_matrix("costs", costs, ndim=2)
    # Along a row, D[i, j] = costs[i, j] + min(before[j], D[i, j - 1]). With the sum of the costs to
    # the left, this is a cumulative minimum, which NumPy computes for the whole row.
    sums = np.cumsum(costs, axis=1)
    totals = np.empty_like(costs)
    totals[0] = sums[0]
    for i in range(1, len(costs)):
        before = totals[i - 1].copy()
        before[1:] = np.minimum(before[1:], totals[i - 1, :-1])
        totals[i] = sums[i] + np.minimum.accumulate(before - sums[i] + costs[i])
    return _trace_back(totals)


def _trace_back(totals):
    """Return the rows and columns of the cheapest path, given `totals`, the costs D (T, S)."""
    i, j = totals.shape[0] - 1, totals.shape[1] - 1
    path = [(i, j)]
    while i or j:
        steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        steps = [step for step in steps if min(step) >= 0]
        i, j = min(steps, key=lambda step: totals[step])
        path.append((i, j))
    rows, columns = np.array(path[::-1]).T
    return rows, columns


def align_attention(weights, filter_width=7):
    """Return the first frame of each token, from cross-attention weights.

    Each head is standardized over the tokens, so that a frame does not matter if all tokens attend
    to it. A median filter over the frames removes single peaks. Dynamic time warping through the
    mean of the heads then assigns increasing frames to the tokens (Radford et al., 2022, and
    OpenAI's code for times of words).

    Args:
        weights: float (N, T, S), the attention weights of the chosen heads, from T tokens to S
            frames. The row of a token contains the weights of the step that chose it.
        filter_width: odd int, number of frames of the median filter. 1 does not filter.

    Returns:
        int (T,), the first frame of each token, in increasing order. A token ends where the next
        begins.

    Raises:
        ValueError: `weights` does not have three axes, is empty, or has NaN or infinity.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = np.repeat(np.eye(3), 4, axis=1)[None]  # one head, and 4 frames for each token
    assert ka.generation.align_attention(weights, filter_width=3).tolist() == [0, 4, 8]
    ```
    """
    weights = _check_matrix("weights", weights, ndim=3)
    check_whole_number("align_attention", "filter_width", filter_width)
    if filter_width % 2 == 0:
        raise ValueError(
            f"align_attention(filter_width={filter_width}): expected an odd number, so that the "
            f"filter has a middle. Use {filter_width + 1}."
        )
    mean, deviation = weights.mean(axis=1, keepdims=True), weights.std(axis=1, keepdims=True)
    scores = (weights - mean) / (deviation + EPSILON)
    scores = _filter_median(scores, filter_width).mean(axis=0)
    rows, columns = find_warping_path(-scores)
    begins = np.append(True, np.diff(rows) > 0)
    return columns[begins]


def rate_heads(weights):
    """Rate how well heads align tokens with frames, without times to compare with.

    A head that aligns attends sharply, and to different frames for different tokens. The columns of
    its weights then have large norms, and the rating is the sum of the L2 norms of the columns (Yeh
    et al., 2025, "Whisper Has an Internal Word Aligner", arXiv:2509.09987).

    Args:
        weights: float (N, T, S), the attention weights of N heads, from T tokens to S frames.

    Returns:
        float (N,). Greater is better. If the weights of each token sum to 1, ratings lie between
        sqrt(T), when all tokens attend to the same frames, and T.

    Raises:
        ValueError: `weights` does not have three axes, is empty, or has NaN or infinity.

    ```python
    import numpy as np
    import keras_attention as ka

    even, sharp = np.full((3, 12), 1 / 12), np.repeat(np.eye(3), 4, axis=1) / 4
    ratings = ka.generation.rate_heads(np.stack([even, sharp]))
    np.testing.assert_allclose(ratings, [3**0.5, 3])
    ```
    """
    weights = _check_matrix("weights", weights, ndim=3)
    return np.linalg.norm(weights, axis=1).sum(axis=1)


def _filter_median(x, width):
    """Replace each value by the median of `width` values along the last axis, mirrored at ends."""
    half = min(width // 2, x.shape[-1] - 1)
    if half == 0:
        return x
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=-1)
    return np.median(windows, axis=-1)


def _check_matrix(name, x, ndim):
    """Return `x` as float64, or raise a ValueError that names the argument, a str."""
    x = np.asarray(x, "float64")
    if x.ndim != ndim or not x.size or not np.isfinite(x).all():
        raise ValueError(
            f"{name} has the shape {x.shape}{'' if np.isfinite(x).all() else ' and NaN'}: expected "
            f"{ndim} axes with at least one finite number. Pass the weights of one recording."
        )
    return x
