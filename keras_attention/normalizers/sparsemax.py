"""Sparsemax: the projection of the scores onto the probability simplex."""

import dataclasses

import keras
from keras import ops

from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sparsemax(Normalizer, Part):
    """Sparsemax of scores s: `weights = max(0, s - τ)`, with sum 1 (Martins & Astudillo, 2016).

    τ is the number for which the weights of a query sum to 1. The weights are the point of the
    probability simplex that is nearest to the scores. Low scores get a weight of exactly 0. Weights
    and gradient are exact, and computed by sorting (algorithm 1).

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = ka.normalizers.Sparsemax()(np.array([[1.0, 0.5, -1.0]], "float32"))
    assert np.allclose(weights, [[0.75, 0.25, 0.0]])
    ```
    """

    def normalize(self, scores, allowed):
        return sparsemax(scores)


def sparsemax(scores):
    """Compute the sparsemax of float32 scores over the last axis."""
    scores = subtract_highest(scores)
    fixed = ops.stop_gradient(scores)
    tau = _correct_threshold(fixed, compute_threshold(fixed))
    # For a fixed set of keys with weight, τ is linear in the scores, so this gradient is exact.
    return ops.relu(scores - _correct_threshold(scores, tau))


def compute_threshold(scores):
    """Compute τ of `scores` with maximum 0: the largest (sum of the k highest scores - 1) / k."""
    ordered, ranks = sort_descending(scores)
    return ops.max((ops.cumsum(ordered, axis=-1) - 1.0) / ranks, axis=-1, keepdims=True)


def _correct_threshold(scores, tau):
    """Return `tau`, corrected so that the weights of all scores above it sum to exactly 1.

    This removes the rounding errors of running sums over thousands of keys.
    """
    size = ops.sum(ops.cast(scores > tau, "float32"), axis=-1, keepdims=True)
    excess = ops.sum(ops.relu(scores - tau), axis=-1, keepdims=True) - 1.0
    return tau + excess / ops.maximum(size, 1.0)  # size may be 0: see subtract_highest


def subtract_highest(scores):
    """Return scores minus the maximum of each row.

    A compiler may round differently, so that the new maximum is not exactly 0. In a row with only
    masked keys, the difference can then be as large as 64. No key of such a row may get weight.
    """
    return scores - ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))


def sort_descending(scores):
    """Return scores with maximum 0 in descending order, and their ranks 1, 2, ...

    Scores of -1 or less get no weight, and are clipped to -1, so that masked scores of -1e9 do not
    make sums imprecise.
    """
    ordered = -ops.sort(-ops.maximum(scores, -1.0), axis=-1)
    return ordered, ops.arange(1, ops.shape(scores)[-1] + 1, dtype="float32")
