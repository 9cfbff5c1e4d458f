"""T5's relative bias: a learned bias for each bucket of distances."""

import bisect

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.positions.base import WeightedBias
from keras_attention.positions.indices import count_queries_and_keys, expand_positions
from keras_attention.positions.relative_scores import check_heads


@keras.saving.register_keras_serializable(package="keras_attention")
class RelativeBias(WeightedBias):
    """Adds a learned bias per head and distance to the scores (Raffel et al., 2020, T5).

    Pass it as `position=` of an attention layer. The layer calls it with its query heads
    (B, T, N, H), and adds the result, (1 or B, N, T, S), to its scores.

    `bias[n, i, j] = table[bucket(j - i), n]` for head n, query i and key j. A bucket is a range of
    distances. If a direction has m buckets, the first m/2 hold one distance each, 0 to m/2 - 1. The
    ranges of the other buckets grow logarithmically up to `max_distance`, and the last bucket also
    holds all larger distances.

    Bucket limits are computed in exact integer arithmetic, so that all backends and exported models
    agree.

    Args:
        num_buckets: int, the total number of buckets, at least 2. It must be even and at least 4 if
            `bidirectional`.
        max_distance: int. Larger distances share the last bucket. It must be larger than the number
            of distances that have their own bucket.
        bidirectional: bool. If True, the first half of the buckets is for earlier keys and the
            second half for later keys, as in T5's encoder. If False, all buckets are for earlier
            keys, and later keys count as distance 0, as in T5's decoder.
        initializer: initializer of the table (num_buckets, N). None uses a normal distribution with
            standard deviation 0.02.

    ```python
    import numpy as np
    import keras_attention as ka

    position = ka.positions.RelativeBias()
    bias = position(np.zeros((1, 5, 2, 8), "float32"))
    assert bias.shape == (1, 2, 5, 5)
    assert np.array_equal(bias[0, :, 1, 2], bias[0, :, 3, 4])  # both keys are one step ahead
    assert list(position.buckets([-1, 0, 1, 2, 999])) == [1, 0, 17, 18, 31]
    ```
    """

    weight_axes = {"table": ("rows", "heads")}

    own_arguments = ("num_buckets", "max_distance", "bidirectional")

    def __init__(
        self, num_buckets=32, max_distance=128, bidirectional=True, initializer=None, **kwargs
    ):
        super().__init__(initializer, **kwargs)
        self.num_buckets, self.max_distance = num_buckets, max_distance
        self.bidirectional = bidirectional
        checks.check_choice(self, "bidirectional", (True, False))
        checks.check_whole_numbers(self, "num_buckets", least=4 if bidirectional else 2)
        checks.check_whole_numbers(self, "max_distance")
        self._check_buckets()
        reach = np.arange(-self.max_distance, self.max_distance + 1)
        self._bucket_of_step = self.buckets(reach).astype("int32")

    def build(self, shape):
        check_heads(self, shape)
        self.table = self.add_table((self.num_buckets, shape[2]))

    def bias(self, query_positions, key_positions, query, key=None):
        self.check_built()
        i, j = count_queries_and_keys(query_positions, key_positions, query, key)
        steps = expand_positions(j, 1) - expand_positions(i, 2)  # (1 or B, T, S)
        steps = ops.clip(steps, -self.max_distance, self.max_distance) + self.max_distance
        by_step = ops.take(self.table, self._bucket_of_step, axis=0)  # (2 max_distance + 1, N)
        return ops.transpose(ops.take(by_step, steps, axis=0), (0, 3, 1, 2))

    def buckets(self, relative):
        """Return the bucket (table row) of each distance j - i in `relative`, as NumPy ints."""
        relative = np.asarray(relative)
        if not self.bidirectional:
            return self._bucket_of_distance(np.maximum(-relative, 0))
        ahead = (relative > 0) * (self.num_buckets // 2)
        return ahead + self._bucket_of_distance(np.abs(relative))

    def _bucket_of_distance(self, distance):
        # The first e buckets hold one distance each, and the other n are shared, up to distance m.
        # Distance d is in shared bucket k or a later one if log(d/e) / log(m/e) >= k/n. In exact
        # integers, that is d^n >= m^k e^(n-k).
        e, m = self._exact, self.max_distance
        n = self._per_direction - e
        bounds = [m**k * e ** (n - k) for k in range(n)]
        edges = [bisect.bisect_left(range(m), bound, key=lambda d: d**n) for bound in bounds]
        shared = e + np.searchsorted(edges, distance, side="right") - 1
        return np.where(distance < e, distance, shared)

    @property
    def _per_direction(self):
        return self.num_buckets // 2 if self.bidirectional else self.num_buckets

    @property
    def _exact(self):
        return self._per_direction // 2

    def _check_buckets(self):
        if self.bidirectional and self.num_buckets % 2:
            raise ValueError(
                f"RelativeBias(num_buckets={self.num_buckets}): two directions need an even number "
                "of buckets. Make it even, or set bidirectional=False."
            )
        if self.max_distance <= self._exact:
            raise ValueError(
                f"RelativeBias(max_distance={self.max_distance}): {self._exact} distances have a "
                "bucket of their own. Make max_distance larger."
            )
