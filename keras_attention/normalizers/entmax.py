"""Entmax: a family from softmax over sparsemax to sparser weights."""

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
    """`weights = max(0, (α - 1) s - τ)^(1 / (α - 1))`, τ such that they sum to 1.

    Peters, Niculae & Martins (2019). Towards α = 1 it is softmax; at α = 2 it is sparsemax; the
    larger α, the fewer keys get weight. For 1.5 and 2 it is exact, by sorting (algorithm 2); for
    other α, bisection finds τ beyond the resolution of float32, in 52 passes over the scores. The
    gradient is exact, and finite where weights are 0.

    Args:
        alpha: float above 1.

    Masking: as in `Normalizer`.

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
            else:  # PyTorch gives the scores again, and differentiates by these only
                seen = _with_gradient(above, scale(args[0]), power)
            slope = _slope(seen, power)
            # Relative to the steepest key: a huge slope then multiplies an exact number.
            steepest = ops.cast(slope >= ops.max(slope, axis=-1, keepdims=True), "float32")
            upstream = upstream - _mean(upstream, steepest)
            return slope * (upstream - _mean(upstream, slope))

        return weights / _total(weights), gradient

    return entmax(scores)


def _slope(above, power):
    """Return the derivative of `above ** power`, divided by the power. It is 0 for weights of 0."""
    positive = ops.where(above > 0, ops.maximum(above, TINY), 1.0)
    return ops.sign(above) * _power(positive, power - 1.0)


def _weigh(above, power):
    """Return `above ** power`, with a finite derivative where `above` is 0."""
    return ops.sign(above) * _power(ops.where(above > 0, above, 1.0), power)


def _total(x):
    """Return the sum of non-negative numbers, kept above 0 for rows without support."""
    return ops.maximum(ops.sum(x, axis=-1, keepdims=True), TINY)


def _mean(x, weights):
    return ops.sum(weights * x, axis=-1, keepdims=True) / _total(weights)


def _power(x, exponent):
    return ops.square(x) if exponent == 2 else x if exponent == 1 else ops.power(x, exponent)


def _above_by_sorting(scores):
    """Return `max(0, s - τ)` at α = 1.5, for scores (α - 1) s whose highest is 0.

    If the k highest get weight, τ solves `sum (s - τ)² = 1` over them; k is the largest for which
    the k-th is above that τ, and τ grows up to there.
    """
    ordered, ranks = sort_descending(scores)
    height = ordered + 1.0  # scores and τ near -1, where many keys share the weight
    mean = ops.cumsum(height, axis=-1) / ranks
    spread = ops.cumsum(ops.square(height), axis=-1) / ranks - ops.square(mean)
    tau = mean - ops.sqrt(ops.relu(1.0 / ranks - spread)) - 1.0
    tau = tau - 2.0 * ops.cast(tau > ordered, "float32")  # excluded from the maximum: τ is above -1
    tau = ops.max(tau, axis=-1, keepdims=True)
    for _ in range(CORRECTIONS):
        tau = tau + _correction(ops.relu(scores - tau))
    return ops.relu(scores - tau)


def _correction(above):
    """Return the change of τ after which the squares sum to 1: the lower root of a parabola.

    A running sum over thousands of keys, or the difference of two, has errors larger than the
    weights; this sum of small numbers can err only in which keys are above τ.
    """
    size = ops.sum(ops.sign(above), axis=-1, keepdims=True)
    total = ops.sum(above, axis=-1, keepdims=True)
    excess = ops.sum(ops.square(above), axis=-1, keepdims=True) - 1.0
    root = ops.sqrt(ops.relu(ops.square(total) - size * excess))
    return excess / ops.maximum(total + root, 1.0)  # at the solution the total is 1 or more


def _above_by_halving(scores, power):
    """Return `max(0, s - τ)` for scores (α - 1) s whose highest is 0.

    First it halves the interval [0, 1] of the highest weight, `(-τ)^power`, whose scale suits every
    α; then the rest of τ below the resolution of float32. Above α = 2, a small weight is a root of
    its distance to τ: these distances are small, exact differences to which that rest is added.
    """
    coarse, fine = HALVINGS
    zero = ops.zeros_like(ops.max(scores, axis=-1, keepdims=True))
    highest = _halve(lambda p: scores + ops.power(p, 1.0 / power), power, zero, zero + 0.5, coarse)
    depth = ops.power(highest, 1.0 / power)
    gap = ops.power(highest + 2.0**-coarse, 1.0 / power) - depth + 2.0**-21 / power * depth
    above = scores + depth
    rest = _halve(lambda rest: above + rest, power, zero, gap, fine)
    return _with_gradient(ops.relu(above + rest), scores, power)


def _with_gradient(above, scores, power):
    """Return `above`, max(0, s - τ), with gradients to the scores of up to third order.

    They do not lead through the search for τ. Two of Newton's steps keep the sum of the weights as
    it is when scores move: they add 0, and have the derivatives of τ.
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
    """Find the largest x, from `low` in halved steps, where `above_at(x)` sums to 1."""

    def halve(i, state):
        low, step = state
        weights = ops.power(ops.relu(above_at(low + step)), power)
        fits = ops.cast(ops.sum(weights, axis=-1, keepdims=True) <= 1.0, "float32")
        return low + step * fits, 0.5 * step

    return ops.fori_loop(0, times, halve, (low, step))[0]
