"""The first attention."""

import keras
from keras import ops

from keras_attention import checks
from keras_attention.scores.base import KernelScore, check_one_key_head_each, head_shapes
from keras_attention.scores.pairs import match_units, sum_over_units


@keras.saving.register_keras_serializable(package="keras_attention")
class Additive(KernelScore):
    """`score = vᵀ tanh(W q + U k)` (Bahdanau et al., 2015, appendix A.1.2).

    The paper's W_a is `query_kernel` (N, H, units), its U_a `key_kernel` (N, H of the key, units)
    and its v_a `vector` (N, units). Memory does not grow with the units: see `sum_over_units`.
    Computed in float32 after the products with the kernels.

    Args:
        units: int; None takes the query's H.
        kernel_initializer: for all weights; None is a normal distribution that gives scores of
            variance about 1 to queries and keys of variance 1.

    Call arguments:
        query: (B, T, N, H). key: (B, S, N, any width). Returns (B, N, T, S) in the compute dtype.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 6)
    score = ka.scores.Additive(units=8)
    assert score(query, key).shape == (2, 3, 5, 7)
    assert score.query_kernel.shape == (3, 4, 8) and score.key_kernel.shape == (3, 6, 8)
    ```
    """

    def __init__(self, units=None, kernel_initializer=None, **kwargs):
        super().__init__(kernel_initializer=kernel_initializer, **kwargs)
        self.units = units
        if units is not None:
            checks.whole(self, "units")

    def build(self, query_shape, key_shape):
        heads, width, key_width = head_shapes(self, query_shape, key_shape)
        units = self.units or width
        self.query_kernel = self.add_per_head(
            "query_kernel", (heads, width, units), variance=0.5 / width
        )
        self.key_kernel = self.add_per_head(
            "key_kernel", (heads, key_width, units), variance=0.5 / key_width
        )
        self.vector = self.add_per_head("vector", (heads, units), variance=1 / units)

    def call(self, query, key):
        check_one_key_head_each(self, query, key)
        query = ops.einsum("btnh,nhu->bnut", query, self.query_kernel)
        key = ops.einsum("bsnh,nhu->bnus", key, self.key_kernel)
        scores = sum_over_units(query, key, self.vector, ops.tanh)
        return ops.cast(scores, self.compute_dtype)

    def prepare(self, key):
        return ops.einsum("bsnh,nhu->bsnu", key, ops.cast(self.key_kernel, key.dtype))

    def match(self, query, prepared):
        query = ops.einsum("btnh,nhu->btnu", query, ops.cast(self.query_kernel, query.dtype))
        return match_units(query, prepared, self.vector, ops.tanh)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
