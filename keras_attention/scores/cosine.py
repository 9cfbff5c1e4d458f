"""The cosine score, with a learned or fixed scale."""

import math

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.scores.base import (
    WeightedScore,
    check_head_shapes,
    check_one_width,
    compute_product,
)

LEAST_SQUARE = 2.0**-24  # the smallest positive number in float16


@keras.saving.register_keras_serializable(package="keras_attention")
class Cosine(WeightedScore):
    """The cosine score `scale · cos(q, k)` (Swin Transformer V2, Liu et al., 2022, section 3.2).

    The scale (1/τ in the paper) is either fixed or learned separately for each head. A learned
    scale is stored as its logarithm, in the weight `log_scale` (N,), and is clipped at `max_scale`.

    Queries and keys are divided by their root mean square, which is computed in float32 and is at
    least `epsilon`. A zero vector therefore has score 0 and a finite gradient.

    Args:
        scale: positive float, the fixed scale, or the initial value of a learned scale.
        learned: bool, whether the scale is learned.
        max_scale: positive float, the upper bound of a learned scale.
        epsilon: float, at least 2^-12. Smaller values are an error, because phone delegates compute
            in float16, where their square is zero.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, H).

    Returns:
        (B, N, T, S), in the compute dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 4)
    score = ka.scores.Cosine(scale=10.0)
    assert np.allclose(score(query, key), score(100 * query, key), atol=1e-4)
    assert score.log_scale.shape == (3,)  # one scale per head
    ```
    """

    weight_axes = {"log_scale": ("heads",)}
    own_arguments = ("scale", "learned", "max_scale", "epsilon")

    def __init__(self, scale=10.0, learned=True, max_scale=100.0, epsilon=1e-3, **kwargs):
        super().__init__(**kwargs)
        self.scale, self.learned, self.max_scale = scale, learned, max_scale
        self.epsilon = epsilon
        self.log_scale = None
        checks.check_choice(self, "learned", (True, False))
        checks.check_number(self, "scale", above=0)
        checks.check_number(self, "max_scale", above=0)
        checks.check_number(self, "epsilon", above=0)
        if learned and scale > max_scale:
            raise ValueError(
                f"Cosine(scale={scale!r}): the learned scale starts above its bound "
                f"max_scale={max_scale!r}. Lower scale or raise max_scale."
            )
        if epsilon**2 < LEAST_SQUARE:
            raise ValueError(
                f"Cosine(epsilon={epsilon!r}): its square is zero in float16, so that a vector of "
                "zeros gives NaN. Use at least 2**-12 (0.00025)."
            )

    def build(self, query_shape, key_shape):
        heads, _, _ = check_head_shapes(self, query_shape, key_shape)
        if self.learned:
            self.log_scale = self.add_weight(
                name="log_scale",
                shape=(heads,),
                initializer=keras.initializers.Constant(math.log(self.scale)),
                autocast=False,
            )

    def call(self, query, key):
        return compute_product(self, query, key)

    def fold(self, query, key):
        self.ensure_built(query, key)
        check_one_width(self, query, key)
        # If q and k have mean square 1, their cosine is the mean of the coordinates' products.
        by_width = 1 / query.shape[-1]
        if not self.learned:
            return self._level(query), self._level(key), self.scale * by_width
        log_scale = ops.minimum(self.log_scale, math.log(self.max_scale))
        scale = ops.reshape(ops.exp(log_scale) * by_width, (1, 1, -1, 1))  # (1, 1, N, 1)
        return self._level(query, scale), self._level(key), 1.0

    def _level(self, x, scale=1.0):
        """Return `x`, normalized to mean square 1 over its last axis, times `scale`.

        A division by the norm is avoided, because LiteRT's converter replaces it with an operation
        that has a different epsilon. The maximum is taken before the square root, because √0 has an
        infinite gradient.
        """
        dtype, x = keras.backend.standardize_dtype(x.dtype), ops.cast(x, "float32")
        square = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return ops.cast(x * (ops.rsqrt(ops.maximum(square, self.epsilon**2)) * scale), dtype)
