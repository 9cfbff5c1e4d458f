"""Entmax: a family of normalizers from softmax to sparsemax and beyond."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.sparsemax import sort_descending, sparsemax, subtract_highest

CORRECTIONS = 3
HALVINGS = 30, 22
TINY = 1e-30


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Entmax(Normalizer, Part):
    """Entmax, a family of normalizers from softmax to sparsemax (Peters, Niculae & Martins, 2019).

    For scores s, `weights = max(0, (α - 1) s - τ)^(1 / (α - 1))`, where τ makes the weights sum
    to 1. The larger α is, the fewer keys get weight: the limit α = 1 is softmax, and α = 2 is
    sparsemax. For α = 1.5 and 2, an exact algorithm sorts the scores
    (algorithm 2). For other values, bisection finds τ to float32 precision in 52 passes over the
    scores. The gradient is exact, and finite for weights of 0.

    Args:
        alpha: float greater than 1, α.

    Masking: the weights of hidden keys are exactly zero.

    ```python
    import numpy as np
    import keras_attention as ka

    weights = ka.normalizers.Entmax(1.5)(np.array([[1.0, 0.5, -2.0]], "float32"))
    assert np.isclose(np.sum(weights), 1) and np.asarray(weights)[0, 2] == 0
    ```
    """

    alpha: float = 1.5

    def __post_init__(self):
        checks.check_number(self, "alpha", above=1)

    def normalize(self, scores, allowed):
        if self.alpha == 2:
            return sparsemax(scores)
        return _entmax(scores, self.alpha)


def _entmax(scores, alpha):
    power = 1.0 / (alpha - 1.0)

    def scale(scores):
        return subtract_highest(scores) * (alpha - 1.0)

    @ops.custom_gradient
    def entmax(scores):
        scores = scale(scores)
        above = _above_by_sorting(scores) if alpha == 1.5 else _above_by_halving(scores, power)
        weights = _weigh(above, power)

        def gradient(*args, upstream=None):
            seen = above
            if upstream is None:
                upstream = args[0]
            else:  # PyTorch passes the scores again, and differentiates only with respect to these
                seen = _with_gradient(above, scale(args[0]), power)
            slope = _slope(seen, power)
            # First subtract the mean of the steepest keys, so that huge slopes cause no rounding
            # errors.
            steepest = ops.cast(slope >= ops.max(slope, axis=-1, keepdims=True), "float32")
            upstream = upstream - _mean(upstream, steepest)
            return slope * (upstream - _mean(upstream, slope))

        return weights / _total(weights), gradient

    return entmax(scores)


def _slope(above, power):
    """Return the derivative of `above ** power`, divided by `power`. It is 0 where `above` is 0.

    `above` is max(0, scores - τ), and `power` is 1 / (α - 1).
    """
    positive = ops.where(above > 0, ops.maximum(above, TINY), 1.0)
    return ops.sign(above) * _power(positive, power - 1.0)


def _weigh(above, power):
    """Return `above ** power`, with a finite derivative where `above` is 0."""
    return ops.sign(above) * _power(ops.where(above > 0, above, 1.0), power)


def _total(x):
    """Return the row sums of a non-negative tensor, at least `TINY`, for rows of zeros."""
    return ops.maximum(ops.sum(x, axis=-1, keepdims=True), TINY)


def _mean(x, weights):
    return ops.sum(weights * x, axis=-1, keepdims=True) / _total(weights)


def _power(x, exponent):
    return ops.square(x) if exponent == 2 else x if exponent == 1 else ops.power(x, exponent)


def _above_by_sorting(scores):
    """Compute `max(0, scores - τ)` for α = 1.5, by sorting.

    `scores` are multiplied by α - 1, and the maximum of each row is 0. If the k highest scores get
    weight, τ is the solution of `sum (scores - τ)² = 1` over them. τ grows with k as long as the
    k-th score is above it, so the largest τ is the result.
    """
    ordered, ranks = sort_descending(scores)
    height = ordered + 1.0  # more precise if many keys share the weight, as s and τ are near -1
    mean = ops.cumsum(height, axis=-1) / ranks
    spread = ops.cumsum(ops.square(height), axis=-1) / ranks - ops.square(mean)
    tau = mean - ops.sqrt(ops.relu(1.0 / ranks - spread)) - 1.0
    tau = tau - 2.0 * ops.cast(tau > ordered, "float32")  # too low to be the maximum
    tau = ops.max(tau, axis=-1, keepdims=True)
    for _ in range(CORRECTIONS):
        tau = tau + _correction(ops.relu(scores - tau))
    return ops.relu(scores - tau)


def _correction(above):
    """Compute the change of τ for which the squares of `above` sum to 1: the root of a parabola.

    This removes the rounding errors of running sums over thousands of keys. Such errors are larger
    than the weights, but the errors of this sum of small values are not.
    """
    size = ops.sum(ops.sign(above), axis=-1, keepdims=True)
    total = ops.sum(above, axis=-1, keepdims=True)
    excess = ops.sum(ops.square(above), axis=-1, keepdims=True) - 1.0
    root = ops.sqrt(ops.relu(ops.square(total) - size * excess))
    return excess / ops.maximum(total + root, 1.0)  # at the solution the total is 1 or more


def _above_by_halving(scores, power):
    """Compute `max(0, scores - τ)` by bisection, where `power` is 1 / (α - 1).

    `scores` are multiplied by α - 1, and the maximum of each row is 0. The first bisection finds
    the highest weight, `(-τ)^power`, in [0, 1]. The second finds a correction of τ that is smaller
    than the resolution of float32, and adds it to the differences scores - τ. For α > 2, such small
    differences matter, because a weight is a root of its difference.
    """
    coarse, fine = HALVINGS
    zero = ops.zeros_like(ops.max(scores, axis=-1, keepdims=True))
    highest = _halve(lambda p: scores + ops.power(p, 1.0 / power), power, zero, zero + 0.5, coarse)
    depth = ops.power(highest, 1.0 / power)
    gap = ops.power(highest + 2.0**-coarse, 1.0 / power) - depth + 2.0**-21 / power * depth
    above = scores + depth
    correction = _halve(lambda x: above + x, power, zero, gap, fine)
    return _with_gradient(ops.relu(above + correction), scores, power)


def _with_gradient(above, scores, power):
    """Return `above`, the values max(0, scores - τ), with gradients up to third order.

    The search for τ is not differentiated. Instead, two steps of Newton's method for the sum of the
    weights are added. Their value is 0, and their derivatives are those of τ.
    """
    above = ops.stop_gradient(above)
    positive = ops.sign(above)
    above = positive * (above + (scores - ops.stop_gradient(scores)))
    for _ in range(2):
        total = ops.sum(_weigh(above, power), axis=-1, keepdims=True)
        slope = power * ops.sum(_slope(above, power), axis=-1, keepdims=True)
        moved = (total - ops.stop_gradient(total)) / ops.maximum(slope, TINY)
        above = positive * (above - moved)
    return above


def _halve(above_at, power, low, step, times):
    """Find by bisection the largest x for which the weights of `above_at(x)` sum to at most 1.

    `above_at` is a function from x (..., 1) to scores - τ, of which the weights are a power. The
    search starts at `low`, and halves `step` after each of `times` steps.
    """

    def halve(i, state):
        low, step = state
        weights = ops.power(ops.relu(above_at(low + step)), power)
        fits = ops.cast(ops.sum(weights, axis=-1, keepdims=True) <= 1.0, "float32")
        return low + step * fits, 0.5 * step

    return ops.fori_loop(0, times, halve, (low, step))[0]
