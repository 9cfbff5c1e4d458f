"""A small network on query and key side by side."""

import keras
from keras import ops

from keras_attention import checks
from keras_attention.scores.base import KernelScore, check_one_key_head_each, head_shapes
from keras_attention.scores.pairs import match_units, sum_over_units


@keras.saving.register_keras_serializable(package="keras_attention")
class Concat(KernelScore):
    """`score = vᵀ activation(W [q; k])` (Luong et al., 2015, section 3.1, *concat*).

    W (N, H + H of the key, U) is the paper's matrix; since W [q; k] is a sum of its upper half
    times q and its lower half times k, each is multiplied once, not once for each pair. Memory
    does not grow with U: see `sum_over_units`. Computed in float32 after the products with W.

    Args:
        units: int, U; None takes the query's H.
        activation: name of a Keras activation or a serializable function of one tensor.
        kernel_initializer: for W and v; None is a normal distribution that gives scores of variance
            about 1 to queries and keys of variance 1.

    Call arguments:
        query: (B, T, N, H). key: (B, S, N, any width). Returns (B, N, T, S) in the compute dtype.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 6)
    score = ka.scores.Concat(units=8, activation="relu")
    assert score(query, key).shape == (2, 3, 5, 7)
    assert score.kernel.shape == (3, 4 + 6, 8) and score.vector.shape == (3, 8)
    ```
    """

    def __init__(self, units=None, activation="tanh", kernel_initializer=None, **kwargs):
        super().__init__(kernel_initializer=kernel_initializer, **kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        if units is not None:
            checks.whole(self, "units")

    def build(self, query_shape, key_shape):
        heads, width, key_width = head_shapes(self, query_shape, key_shape)
        units, both = self.units or width, width + key_width
        self.kernel = self.add_per_head("kernel", (heads, both, units), variance=1 / both)
        self.vector = self.add_per_head("vector", (heads, units), variance=1 / units)

    def call(self, query, key):
        check_one_key_head_each(self, query, key)
        width = query.shape[-1]
        kernel = ops.cast(self.kernel, query.dtype)
        query = ops.einsum("btnh,nhu->bnut", query, kernel[:, :width])
        key = ops.einsum("bsnh,nhu->bnus", key, kernel[:, width:])
        scores = sum_over_units(query, key, self.vector, self.activation)
        return ops.cast(scores, self.compute_dtype)

    def prepare(self, key):
        kernel = ops.cast(self.kernel, key.dtype)
        return ops.einsum("bsnh,nhu->bsnu", key, kernel[:, -key.shape[-1] :])

    def match(self, query, prepared):
        kernel = ops.cast(self.kernel, query.dtype)
        query = ops.einsum("btnh,nhu->btnu", query, kernel[:, : query.shape[-1]])
        return match_units(query, prepared, self.vector, self.activation)

    def get_config(self):
        activation = keras.activations.serialize(self.activation)
        return {**super().get_config(), "units": self.units, "activation": activation}
