"""DeBERTa's disentangled attention: content to position, position to content."""

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.positions.base import WeightedBias
from keras_attention.positions.indices import count_queries_and_keys, distances
from keras_attention.positions.relative_scores import (
    check_heads,
    check_key,
    gather_pairs,
    get_scale,
    multiply_per_head,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class Disentangled(WeightedBias):
    """Adds content-to-position and position-to-content scores (DeBERTa; He et al., 2021).

    scores + (q · k_r[d] + k · q_r[d]) / √H, where d is the clipped distance i - j, and each head
    learns vectors k_r and q_r for each d (equation 4: c2p and p2c). The second term of equation 4
    has j - i. The authors' code has i - j, as this class. In the paper k_r and q_r are products of
    an embedding, shared by all layers, with a layer's projections. Here they are learned directly,
    which is the same function, and DeBERTa's products can be loaded into them.

    The paper divides the three terms of the score by √(3H), which keeps the variance of their sum.
    This class and the score `scaled_dot` divide by √H, and a temperature does the rest: the paper's
    attention is `MultiHeadAttention(..., position="disentangled",
    normalizer=Softmax(temperature=3**0.5))`.

    Args:
        max_distance: int, k in the paper: larger distances count as this one.
        num_buckets: int, buckets for the distances of one direction. None is `max_distance`, one
            for each, as in the first DeBERTa. With fewer, the first half are exact and the rest
            grow logarithmically, as in the second and third (position_buckets, 256 for a
            max_distance of 512).
        scale: float, the factor of both terms. None is 1/√H.
        initializer: of the tables (2 num_buckets, N, H). None is a normal distribution with
            deviation 0.02.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    layer = ka.attention.MultiHeadAttention(
        num_heads=4,
        key_dim=6,
        position=ka.positions.Disentangled(max_distance=512, num_buckets=256),
        normalizer=ka.normalizers.Softmax(temperature=3**0.5),
    )
    assert layer(x, x).shape == (2, 7, 24)
    ```
    """

    weight_axes = {
        "key_table": ("rows", "heads", "head_dim"),
        "query_table": ("rows", "heads", "head_dim"),
    }

    own_arguments = ("max_distance", "num_buckets", "scale")

    def __init__(self, max_distance=512, num_buckets=None, scale=None, initializer=None, **kwargs):
        super().__init__(initializer, **kwargs)
        self.max_distance, self.num_buckets, self.scale = max_distance, num_buckets, scale
        checks.check_whole_numbers(self, "max_distance")
        if num_buckets is not None:
            checks.check_whole_numbers(self, "num_buckets", least=4)
            self._check_buckets()
        checks.check_number(self, "scale", optional=True)
        reach = np.arange(-self.max_distance, self.max_distance + 1)
        self._bucket_of_step = self.buckets(reach).astype("int32")

    def build(self, shape):
        check_heads(self, shape)
        rows = 2 * (self.num_buckets or self.max_distance)
        self.key_table = self.add_table((rows, *shape[2:]), "key_table")
        self.query_table = self.add_table((rows, *shape[2:]), "query_table")

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        check_key(self, key)
        i, j = count_queries_and_keys(query_positions, key_positions, query, key)
        steps = -ops.squeeze(distances(i, j), axis=1)
        steps = ops.clip(steps, -self.max_distance, self.max_distance) + self.max_distance
        index = ops.take(ops.convert_to_tensor(self._bucket_of_step), steps, axis=0)  # (.., T, S)
        scale = get_scale(self, query)
        c2p = gather_pairs(multiply_per_head(query, self.key_table, scale), index)
        p2c = gather_pairs(
            multiply_per_head(key, self.query_table, scale), ops.transpose(index, (0, 2, 1))
        )
        return c2p + ops.transpose(p2c, (0, 1, 3, 2))

    def buckets(self, relative):
        """Return the row for each distance i - j, NumPy ints."""
        relative = np.asarray(relative)
        rows = self.num_buckets or self.max_distance
        if self.num_buckets is not None:
            half, last = rows // 2, self.max_distance - 1
            far = np.maximum(np.abs(relative), half) / half
            # a little less, so that rounding keeps edges at whole numbers
            steps = np.ceil(np.log(far) / np.log(last / half) * (half - 1) - 1e-9)
            shared = np.sign(relative) * (half + steps).astype(int)
            relative = np.where(np.abs(relative) <= half, relative, shared)
        return np.clip(relative + rows, 0, 2 * rows - 1)

    def _check_buckets(self):
        if self.max_distance - 1 <= self.num_buckets // 2:
            raise ValueError(
                f"Disentangled(max_distance={self.max_distance}): {self.num_buckets} buckets "
                f"already tell {self.num_buckets // 2} distances apart; max_distance must be at "
                f"least {self.num_buckets // 2 + 2}. Or leave num_buckets out."
            )
