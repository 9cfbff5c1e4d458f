"""The squared-distance score: a Gaussian kernel under softmax."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.scores.base import Score, check_one_key_head_each, check_one_width


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class SquaredDistance(Score, Part):
    """The score `-scale · |q - k|²`, with which softmax is a Gaussian kernel (Tsai et al., 2019).

    |q - k|² is computed as `|q|² + |k|² - 2 q · k`, in float32 under every dtype policy, so no
    tensor (B, N, T, S, H) is needed. The error is about 1e-7 · (|q|² + |k|²), so a score of 0 may
    become slightly positive.

    Args:
        scale: positive float. `1 / (2 σ²)` gives a Gaussian with standard deviation σ.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, H).

    Returns:
        (B, N, T, S), in the dtype of the inputs.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.ones((1, 5, 2, 4), "float32"), np.zeros((1, 7, 2, 4), "float32")
    assert np.all(np.asarray(ka.scores.SquaredDistance(0.5)(query, key)) == -0.5 * 4)
    ```
    """

    scale: float = 1.0

    def __post_init__(self):
        checks.check_number(self, "scale", above=0)

    def __call__(self, query, key):
        check_one_width(self, query, key)
        check_one_key_head_each(self, query, key)
        dtype = keras.backend.standardize_dtype(query.dtype)
        query, key = ops.cast(query, "float32"), ops.cast(key, "float32")
        cross = ops.einsum("btnh,bsnh->bnts", query * (2 * self.scale), key)
        of_query = _square_by_head(query) * self.scale  # (B, N, T, 1)
        of_key = ops.transpose(_square_by_head(key), (0, 1, 3, 2)) * self.scale  # (B, N, 1, S)
        return ops.cast(cross - of_query - of_key, dtype)


def _square_by_head(x):
    """Compute |x|² of each head of `x` (B, L, N, H): (B, N, L, 1)."""
    return ops.transpose(ops.sum(ops.square(x), axis=-1, keepdims=True), (0, 2, 1, 3))
