"""Which matrices a picture shows: the weights of one example, head by head."""

import numpy as np
from keras import ops


def one_example(weights):
    """Weights (T, S), (N, T, S) or (1, N, T, S) as a float32 array (N, T, S)."""
    if not isinstance(weights, np.ndarray):
        weights = ops.convert_to_numpy(weights)
    weights = np.asarray(weights, "float32")
    if weights.ndim == 4 and len(weights) != 1:
        raise ValueError(
            f"weights of shape {weights.shape} are a batch of {len(weights)} examples; a picture "
            "shows one of them: pass weights[0], for example."
        )
    if weights.ndim not in (2, 3, 4) or not weights.size:
        raise ValueError(
            f"weights of shape {weights.shape} are no attention weights: expected (N, T, S), "
            "(1, N, T, S) or (T, S), N heads, T queries, S keys."
        )
    return weights.reshape(-1, *weights.shape[-2:])


def head_panels(weights, heads="all"):
    """The panels to draw as [(title, matrix (T, S))] for weights (N, T, S).

    Args:
        heads: `"all"` (each head, and their mean when there are several), `"mean"` (the mean
            alone), or a list of head numbers.
    """
    count = len(weights)
    mean = ("mean of heads", weights.mean(axis=0))
    if isinstance(heads, str):
        if heads not in ("all", "mean"):
            raise ValueError(f"heads={heads!r}: expected 'all', 'mean' or a list of head numbers.")
        if heads == "mean":
            return [mean]
        each = [(f"head {n}", weights[n]) for n in range(count)]
        return each if count == 1 else [*each, mean]
    heads = [int(n) for n in np.atleast_1d(heads)]
    if not heads or any(not 0 <= n < count for n in heads):
        raise ValueError(f"heads={heads}: these weights have heads 0 to {count - 1}.")
    return [(f"head {n}", weights[n]) for n in heads]
