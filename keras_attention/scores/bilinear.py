"""The bilinear score: a learned matrix between query and key."""

import keras
from keras import ops

from keras_attention.scores.base import KernelScore, check_head_shapes, compute_product


@keras.saving.register_keras_serializable(package="keras_attention")
class Bilinear(KernelScore):
    """The bilinear score `qᵀ W k`, with a learned matrix W per head (Luong et al., 2015).

    The paper calls it *general* (section 3.1). Query and key may have different widths. W is the
    weight `kernel` (N, query's H, key's H).

    Args:
        kernel_initializer: initializer of W. None uses a normal distribution with variance
            1 / (query's H · key's H), for which queries and keys of variance 1 have scores of
            variance 1.

    Call arguments:
        query: (B, T, N, H).
        key: (B, S, N, any width).

    Returns:
        (B, N, T, S), in the compute dtype.

    ```python
    import numpy as np
    import keras_attention as ka

    query, key = np.random.rand(2, 5, 3, 4), np.random.rand(2, 7, 3, 6)
    score = ka.scores.Bilinear()
    assert score(query, key).shape == (2, 3, 5, 7)
    assert score.kernel.shape == (3, 4, 6)
    ```
    """

    weight_axes = {"kernel": ("heads", "head_dim", "head_dim")}

    def build(self, query_shape, key_shape):
        heads, width, key_width = check_head_shapes(self, query_shape, key_shape)
        self.kernel = self.add_per_head(
            "kernel", (heads, width, key_width), variance=1 / (width * key_width)
        )

    def call(self, query, key):
        return compute_product(self, query, key)

    def fold(self, query, key):
        self.ensure_built(query, key)
        kernel = ops.cast(self.kernel, query.dtype)
        return ops.einsum("btnh,nhj->btnj", query, kernel), key, 1.0
