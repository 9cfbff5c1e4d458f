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
    """Adds content-to-position and position-to-content scores (DeBERTa, He et al., 2021).

    Pass it as `position=` of an attention layer, which passes it its query and key heads.

    The result is `scores + (q · k_r[d] + k · q_r[d]) / √H` (equation 4, terms c2p and p2c), where d
    is the distance i - j, clipped to `max_distance`. Each head learns a vector k_r and a vector q_r
    for each d. In the second term, the paper's equation uses j - i, but this class uses i - j, as
    the authors' code does. In the paper, k_r and q_r are projections of an embedding that all
    layers share. Here they are learned directly, which can represent the same function, and the
    products computed from a DeBERTa checkpoint can be loaded into them.

    The paper divides the sum of the score's three terms by √(3H). This class and the score
    `scaled_dot` divide by √H. To get the paper's attention, also pass
    `normalizer=Softmax(temperature=3**0.5)`.

    Args:
        max_distance: int, k in the paper. Larger distances count as this distance.
        num_buckets: int, the number of buckets for the distances of one direction. None means
            `max_distance`, a bucket for each distance, as in DeBERTa v1. With fewer buckets, half
            of them hold one distance each, and the sizes of the other half grow logarithmically,
            as in DeBERTa v2 and v3 (`position_buckets`, 256 for a max_distance of 512).
        scale: float, the factor of both terms. None means 1/√H.
        initializer: initializer of the tables (2 · num_buckets, N, H). None uses a normal
            distribution with standard deviation 0.02.

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
        """Return the bucket (table row) of each distance i - j in `relative`, as NumPy ints."""
        relative = np.asarray(relative)
        rows = self.num_buckets or self.max_distance
        if self.num_buckets is not None:
            half, last = rows // 2, self.max_distance - 1
            far = np.maximum(np.abs(relative), half) / half
            # minus 1e-9, so that rounding errors do not move a distance to the next bucket
            steps = np.ceil(np.log(far) / np.log(last / half) * (half - 1) - 1e-9)
            shared = np.sign(relative) * (half + steps).astype(int)
            relative = np.where(np.abs(relative) <= half, relative, shared)
        return np.clip(relative + rows, 0, 2 * rows - 1)

    def _check_buckets(self):
        if self.max_distance - 1 <= self.num_buckets // 2:
            raise ValueError(
                f"Disentangled(max_distance={self.max_distance}): {self.num_buckets // 2} "
                "distances have a bucket of their own. Set max_distance "
                f"to at least {self.num_buckets // 2 + 2}, or leave num_buckets out."
            )
