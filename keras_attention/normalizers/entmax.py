"""Between softmax and sparsemax, and beyond."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.normalizers.base import Normalizer
from keras_attention.normalizers.sparsemax import highest_first, relative_to_highest, sparsemax
from keras_attention.part import Part

HALVINGS = 40
TINY = 1e-30


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Entmax(Normalizer, Part):
    """`weights = max(0, (α - 1) s - τ)^(1 / (α - 1))`, τ such that they sum to 1.

    Peters, Niculae & Martins (2019). Towards α = 1 it is softmax; at α = 2 it is sparsemax; the
    larger α, the fewer keys get any weight. 1.5 and 2 are exact by sorting (algorithm 2); any other
    α is found by bisection to the resolution of float32, at `HALVINGS` passes over the scores. The
    gradient is exact, and finite where weights are 0.

    Args:
        alpha: float above 1.

    Masking: as in `Normalizer`.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    weights = ka.normalizers.Entmax(1.5)(np.array([[1.0, 0.5, -2.0]], "float32"))
    assert np.isclose(np.sum(weights), 1) and np.asarray(weights)[0, 2] == 0
    ```
    """

    alpha: float = 1.5

    def __post_init__(self):
        checks.number(self, "alpha", above=1)

    def normalize(self, scores, allowed):
        if self.alpha == 2:
            return sparsemax(scores)
        return _entmax(scores, self.alpha)


def _entmax(scores, alpha):
    power = 1.0 / (alpha - 1.0)

    @ops.custom_gradient
    def entmax(scores):
        scores = relative_to_highest(scores) * (alpha - 1.0)
        find = _threshold_of_one_and_a_half if alpha == 1.5 else _threshold
        above = ops.relu(scores - find(scores, power))
        weights = _power(above, power)
        weights = weights / _total(weights)
        slope = ops.sign(above) * _power(ops.maximum(above, TINY), power - 1.0)

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            mean = ops.sum(slope * upstream, axis=-1, keepdims=True) / _total(slope)
            return slope * (upstream - mean)

        return weights, gradient

    return entmax(scores)


def _total(x):
    """The sum of numbers none of which is negative, kept above 0 for rows without support."""
    return ops.maximum(ops.sum(x, axis=-1, keepdims=True), TINY)


def _power(x, exponent):
    return ops.square(x) if exponent == 2 else x if exponent == 1 else ops.power(x, exponent)


def _threshold_of_one_and_a_half(scores, power):
    """τ at α = 1.5, of scores (α - 1) s whose highest is 0.

    If the k highest get weight, τ solves `sum (s - τ)² = 1` over them; k is the largest for which
    the k-th is above that τ, and τ grows up to there.
    """
    ordered, ranks = highest_first(scores)
    mean = ops.cumsum(ordered, axis=-1) / ranks
    spread = ops.cumsum(ops.square(ordered), axis=-1) / ranks - ops.square(mean)
    tau = mean - ops.sqrt(ops.relu(1.0 / ranks - spread))
    tau = tau - 2.0 * ops.cast(tau > ordered, "float32")  # out of the race: τ is above -1
    tau = ops.max(tau, axis=-1, keepdims=True)
    # One step of Newton's mends the rounding of `spread`, a difference of near numbers. The sum of
    # `above` is 1 or more because the sum of its squares is 1.
    above = ops.relu(scores - tau)
    excess = ops.sum(ops.square(above), axis=-1, keepdims=True) - 1.0
    return tau + 0.5 * excess / ops.maximum(ops.sum(above, axis=-1, keepdims=True), 1.0)


def _threshold(scores, power):
    """τ of scores (α - 1) s whose highest is 0, by bisection.

    What is halved is the interval of the highest weight, `(-τ)^power`, between 0 and 1: its scale
    suits every α, that of τ does not. The weights sum to 1 or a little less.
    """

    def halve(i, state):
        low, step = state
        middle = low + step
        total = ops.sum(
            ops.power(ops.relu(scores + ops.power(middle, 1.0 / power)), power), -1, keepdims=True
        )
        return low + step * ops.cast(total <= 1.0, "float32"), step * 0.5

    low = ops.zeros_like(ops.max(scores, axis=-1, keepdims=True))
    low, _ = ops.fori_loop(0, HALVINGS, halve, (low, low + 0.5))
    return -ops.power(low, 1.0 / power)
