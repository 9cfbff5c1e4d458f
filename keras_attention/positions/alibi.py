"""ALiBi: a penalty proportional to the distance, with fixed or learned slopes."""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.positions.base import Position, WeightedBias
from keras_attention.positions.indices import count_queries_and_keys, distances
from keras_attention.positions.relative_scores import check_heads


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class ALiBi(Position, Part):
    """Subtracts the distance times a slope per head from the scores (Press et al., 2022).

    Pass it as `position=` of an attention layer. The layer calls it with its query heads
    (B, T, N, H), and adds the result, (1 or B, N, T, S), to its scores.

    `bias = -m |i - j|` for query i and key j, with a slope m for each head. If the number of heads
    N is a power of two, the slopes are 2^(-8/N), 2^(-16/N), ..., 2^(-8). Otherwise, as in the
    paper's code, the first slopes are the slopes for the next lower power of two. The remaining
    heads get every other slope for the next higher power of two.

    Args:
        causal: bool. False is the symmetric form, True the paper's form for causal attention,
            `-m max(i - j, 0)`. Both forms differ only for later keys, which a causal mask hides.

    ```python
    import numpy as np
    import keras_attention as ka

    query = np.zeros((1, 3, 8, 16), "float32")  # eight heads
    bias = ka.positions.ALiBi().bias(np.arange(3), np.arange(3), query)
    assert np.array_equal(bias[0, 0], [[0, -0.5, -1], [-0.5, 0, -0.5], [-1, -0.5, 0]])
    ```
    """

    causal: bool = False

    roles = frozenset({"bias"})

    def __post_init__(self):
        checks.check_choice(self, "causal", (True, False))

    def bias(self, query_positions, key_positions, query, key=None):
        far = compute_distance_penalty(query_positions, key_positions, query, key, self.causal)
        slope = np.reshape(compute_slopes(query.shape[2]), (1, -1, 1, 1))
        return far * ops.convert_to_tensor(slope, "float32")


def compute_distance_penalty(query_positions, key_positions, query, key, causal):
    """Compute -|i - j|, or -max(i - j, 0) if `causal`: float32 (1 or B, 1, T, S).

    i are the `query_positions` and j the `key_positions`, int (T,) or (B, T), and (S,) or (B, S).
    None means 0, 1, 2, ... for the length of `query` (B, T, N, H) or `key` (B, S, K, H).
    """
    ahead = distances(*count_queries_and_keys(query_positions, key_positions, query, key))
    return ops.cast(ops.minimum(ahead, 0) if causal else -ops.abs(ahead), "float32")


def compute_slopes(num_heads):
    """Compute the slope of each head in `ALiBi`: NumPy float64 (num_heads,)."""
    power = 2 ** int(math.log2(num_heads))  # the largest power of two up to num_heads
    own = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8.0 * np.arange(1, 2 * power + 1, 2) / (2 * power))
    return np.concatenate([own, between[: num_heads - power]])


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedALiBi(WeightedBias):
    """`ALiBi` with learned slopes (Press et al., 2022, section 3).

    Pass it as `position=` of an attention layer. The layer calls it with its query heads
    (B, T, N, H), and adds the result, (1 or B, N, T, S), to its scores.

    The weight `log_slopes` (N,) holds the logarithm of the slope of each of the N heads, so slopes
    are always positive.

    Args:
        causal: bool. False subtracts the distance of earlier and later keys alike. True subtracts
            nothing for later keys, but does not hide them: a mask does that.
        initializer: initializer of `log_slopes`. None starts with the slopes of `ALiBi`.

    ```python
    import numpy as np
    import keras_attention as ka

    query = np.zeros((1, 3, 8, 16), "float32")
    fixed, learned = ka.positions.ALiBi(), ka.positions.LearnedALiBi()
    assert np.allclose(learned(query), fixed.bias(None, None, query))
    assert learned.log_slopes.shape == (8,)
    ```
    """

    weight_axes = {"log_slopes": ("heads",)}
    own_arguments = ("causal",)

    def __init__(self, causal=False, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.causal, self._as_alibi = causal, initializer is None
        checks.check_choice(self, "causal", (True, False))

    def build(self, shape):
        check_heads(self, shape)
        heads = shape[2]
        initializer = None
        if self._as_alibi:
            initializer = keras.initializers.Constant(np.log(compute_slopes(heads)))
        self.log_slopes = self.add_table((heads,), "log_slopes", initializer)

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        far = compute_distance_penalty(query_positions, key_positions, query, key, self.causal)
        return far * ops.reshape(ops.exp(self.log_slopes), (1, -1, 1, 1))

    def get_config(self):
        config = super().get_config()
        return {**config, "initializer": None} if self._as_alibi else config
