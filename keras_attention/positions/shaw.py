"""Shaw's relative positions: learned vectors for each distance, for keys and for values."""

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.positions.base import WeightedBias
from keras_attention.positions.indices import count, count_queries_and_keys, distances
from keras_attention.positions.relative_scores import (
    check_heads,
    gather_pairs,
    get_scale,
    multiply_shared,
    sum_pairs,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class Shaw(WeightedBias):
    """Adds a learned vector for the distance to each key and to each value (Shaw et al., 2018).

    Pass it as `position=` of an attention layer, which passes it its query and key heads.

    For query i and key j, attention computes `scores + q · a^K[clip(j - i)] / √H` (equation 5) and
    `output + Σ weights · a^V[clip(j - i)]` (equation 3), where clip limits a distance to
    ±max_distance. All heads share the learned vectors a^K and a^V, as in the paper. Each query is
    multiplied once by all 2 · max_distance + 1 vectors, instead of by a vector for each key.

    Args:
        max_distance: int, k in the paper. Larger distances share one vector.
        use_values: bool, whether to add vectors to the values too. The paper finds that they do not
            improve on vectors for keys only.
        value_dim: int, the size of a value head. None means the size of a query head.
        scale: float, the factor of q · a^K. None means 1/√H, as in the score `scaled_dot`.
        initializer: initializer of the tables (2 · max_distance + 1, H or value_dim). None uses a
            normal distribution with standard deviation 0.02.

    ```python
    import numpy as np
    import keras_attention as ka

    x = np.random.rand(2, 7, 24).astype("float32")
    position = ka.positions.Shaw(max_distance=3)
    layer = ka.attention.MultiHeadAttention(num_heads=4, key_dim=6, position=position)
    assert layer(x, x).shape == (2, 7, 24)
    assert position.key_table.shape == position.value_table.shape == (7, 6)
    ```
    """

    weight_axes = {"key_table": ("rows", "head_dim"), "value_table": ("rows", "head_dim")}

    own_arguments = ("max_distance", "use_values", "value_dim", "scale")

    def __init__(
        self,
        max_distance=16,
        use_values=True,
        value_dim=None,
        scale=None,
        initializer=None,
        **kwargs,
    ):
        super().__init__(initializer, **kwargs)
        self.max_distance, self.use_values = max_distance, use_values
        self.value_dim, self.scale = value_dim, scale
        checks.check_whole_numbers(self, "max_distance")
        checks.check_choice(self, "use_values", (True, False))
        checks.check_whole_numbers(self, "value_dim", optional=True)
        checks.check_number(self, "scale", optional=True)

    def build(self, shape):
        check_heads(self, shape)
        self.key_table = self.add_table((self._rows, shape[3]), "key_table")
        if self.use_values:
            width = self.value_dim or shape[3]
            self.value_table = self.add_table((self._rows, width), "value_table")

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        index = self._index(*count_queries_and_keys(query_positions, key_positions, query, key))
        return gather_pairs(multiply_shared(query, self.key_table, get_scale(self, query)), index)

    def values(self, query_positions, key_positions, weights):
        if not self.use_values:
            return None
        self.check_built()
        i = count(query_positions, weights, axis=2)
        index = self._index(i, count(key_positions, weights, axis=3))
        return ops.matmul(sum_pairs(weights, index, self._rows), self.value_table)

    @property
    def _rows(self):
        return 2 * self.max_distance + 1

    def _index(self, i, j):
        """Return the table row for each query i and key j: int (1 or B, T, S)."""
        steps = ops.squeeze(distances(i, j), axis=1)
        return ops.clip(steps, -self.max_distance, self.max_distance) + self.max_distance
