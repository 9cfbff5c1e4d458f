"""`head_statistics`: what distinguishes the heads of a model, in three numbers."""

import typing

import numpy as np
from keras import ops


class HeadStatistics(typing.NamedTuple):
    """Statistics of one attention head, which `head_statistics` computes.

    `layer` is the path of the layer, and `head` the index of the head. `entropy`, `distance` and
    `agreement` are explained in `head_statistics`.
    """

    layer: str
    head: int
    entropy: float
    distance: float
    agreement: float


def head_statistics(maps, mask=None):
    """Measure how sharply and how far each head attends, and how similar the heads are.

    The numbers are means over all queries of all examples (Clark et al., 2019,
    https://arxiv.org/abs/1906.04341). Queries that attend to nothing are left out.

    Args:
        maps: dict {layer path: weights (B, N, T, S)}, as recorded by `record_attention`.
        mask: bool (B, T), True = a token, or None. Other queries are left out.

    Returns:
        A list of `HeadStatistics`, one for each head:

        - `layer`: str, and `head`: int, counted from 0.
        - `entropy`: of the weights, in nats. 0 means one key, and ln S all keys equally.
        - `distance`: the mean of |i - j| between query i and the keys j, in positions.
        - `agreement`: 1 minus the mean Jensen-Shannon divergence between this head and each other
          head of the layer, in bits. 1 means equal weights, 0 no key in common. NaN for one head.

    Raises:
        ValueError: weights are not of shape (B, N, T, S).

    ```python
    import numpy as np
    import keras_attention as ka

    own, previous = np.eye(4), np.eye(4, k=-1)  # query 0 of the second head attends to nothing
    first, second = ka.visualization.head_statistics({"look": np.stack([own, previous])[None]})
    assert first.distance == 0 and second.distance == 1 and first.entropy == second.entropy == 0
    assert first.agreement == 0
    ```
    """
    statistics = []
    for path, weights in maps.items():
        weights = ops.convert_to_numpy(weights).astype("float64")
        if weights.ndim != 4:
            raise ValueError(
                f"head_statistics got weights {weights.shape} for {path!r}: expected (B, N, T, S),"
                " as recorded by record_attention."
            )
        weights = np.moveaxis(weights, 1, 0)  # (N, B, T, S)
        counted = np.sum(weights, axis=-1) > 0  # (N, B, T)
        if mask is not None:
            counted &= _check_mask(mask, weights.shape[1:3])
        queries, keys = np.arange(weights.shape[2])[:, None], np.arange(weights.shape[3])
        entropies = _entropy(weights)
        distances = np.sum(weights * abs(queries - keys), axis=-1)
        for head in range(len(weights)):
            others = [
                1
                - _mean(_divergence(weights[head], weights[other]), counted[head] & counted[other])
                for other in range(len(weights))
                if other != head
            ]
            means = [_mean(each[head], counted[head]) for each in (entropies, distances)]
            agreement = float(np.mean(others)) if others else float("nan")
            statistics.append(HeadStatistics(path, head, *means, agreement))
    return statistics


def _check_mask(mask, shape):
    mask = ops.convert_to_numpy(mask).astype(bool)
    if mask.shape != shape:
        raise ValueError(
            f"head_statistics(mask=) has shape {mask.shape}: expected (B, T) = {shape}, one value"
            " for each query."
        )
    return mask


def _entropy(weights):
    """Return the entropy of weights (..., S), in nats. Negative weights count as 0."""
    weights = np.maximum(weights, 0)
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)


def _divergence(first, second):
    """Return the Jensen-Shannon divergence of weights (..., S), in bits."""
    within = (_entropy(first) + _entropy(second)) / 2
    return (_entropy((first + second) / 2) - within) / np.log(2)


def _mean(values, counted):
    return float(np.mean(values[counted])) if np.any(counted) else float("nan")
