"""Sparsemax: the projection of the scores onto the simplex."""

import dataclasses

import keras
from keras import ops

from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Sparsemax(Normalizer, Part):
    """The point of the simplex nearest to the scores (Martins & Astudillo, 2016).

    `weights = max(0, s - τ)`, τ such that they sum to 1: low scores get exactly 0. Weights and
    gradient are exact, by sorting (algorithm 1).

    Masking: as in `Normalizer`.

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
    """Sparsemax of float32 scores over the last axis."""
    scores = subtract_highest(scores)
    fixed = ops.stop_gradient(scores)
    tau = _correct_threshold(fixed, compute_threshold(fixed))
    # With a known support, τ is linear in the scores: its derivative is the exact gradient.
    return ops.relu(scores - _correct_threshold(scores, tau))


def compute_threshold(scores):
    """Return τ of scores whose highest is 0: the largest of (sum of the k highest - 1) / k."""
    ordered, ranks = sort_descending(scores)
    return ops.max((ops.cumsum(ordered, axis=-1) - 1.0) / ranks, axis=-1, keepdims=True)


def _correct_threshold(scores, tau):
    """Return the τ that makes the weights of the scores above `tau` sum to 1.

    A running sum over thousands of keys has errors larger than their weights.
    """
    size = ops.sum(ops.cast(scores > tau, "float32"), axis=-1, keepdims=True)
    excess = ops.sum(ops.relu(scores - tau), axis=-1, keepdims=True) - 1.0
    return tau + excess / ops.maximum(size, 1.0)  # no support: see subtract_highest


def subtract_highest(scores):
    """Return the scores with each row's highest moved to 0.

    The highest may differ from 0 by the resolution of float32, 64 in rows where all is masked,
    because a compiler may round the maximum differently. Such rows then have no support.
    """
    return scores - ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))


def sort_descending(scores):
    """Sort scores (highest 0) in descending order, and return their ranks 1, 2, ... too.

    Scores of -1 or less get no weight; clipped to -1, masked scores of -1e9 do not swamp the sums
    of the others.
    """
    ordered = -ops.sort(-ops.maximum(scores, -1.0), axis=-1)
    return ordered, ops.arange(1, ops.shape(scores)[-1] + 1, dtype="float32")
