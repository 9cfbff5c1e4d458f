"""The random mask: each query attends to a few keys, which are sampled once from a seed."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Random(Mask, Part):
    """A random mask: each query sees `num_keys` random keys (Zaheer et al., 2020, section 2).

    The keys of a query are distinct. The same seed gives the same keys in every process and
    release. Tokens at position `length` or later see no keys and are hidden from all queries. As in
    the paper, `Blockwise(Random(3, 64), 64)` samples blocks instead of single keys. `BigBird` adds
    a window and global tokens.

    Args:
        num_keys: int, at least 1, the number of keys that a query sees.
        length: int, at least 1, the number of queries and of keys.
        seed: int, at least 0, the seed of the random keys.
        min_distance: int, at least 0, the smallest allowed |i - j|. The sampled keys are then
            outside the query's `Window(min_distance)`.
        start: int, at least 0. Keys before this position are never sampled, for example because
            they are global tokens.

    ```python
    import keras_attention as ka

    mask = ka.masks.Random(num_keys=2, length=4)
    assert [line.count("■") for line in mask.draw(4).splitlines()[2:]] == [2, 2, 2, 2]
    assert mask.draw(4) == ka.masks.Random(2, 4, seed=0).draw(4)
    ```
    """

    num_keys: int
    length: int
    seed: int = 0
    min_distance: int = 0
    start: int = 0

    def __post_init__(self):
        checks.check_whole_numbers(self, "num_keys", "length")
        checks.check_whole_numbers(self, "seed", "min_distance", "start", least=0)
        near = max(0, 2 * self.min_distance - 1)
        if self.length < self.start + near + self.num_keys:
            raise ValueError(
                f"Random(length={self.length}): num_keys={self.num_keys} keys, {near} nearer than "
                f"min_distance and {self.start} before start need a length of at least "
                f"{self.start + near + self.num_keys}."
            )

    def allows(self, i, j):
        drawn = draw_keys(self)
        drawn = np.concatenate([drawn, np.full((1, self.num_keys), -1)])  # no key is at -1
        i = ops.minimum(i, self.length)
        columns = (ops.convert_to_tensor(column, "int32") for column in drawn.T)
        return functools.reduce(
            ops.logical_or, (ops.equal(ops.take(column, i), j) for column in columns)
        )

    def reach(self):
        ahead = draw_keys(self) - np.arange(self.length)[:, None]
        return Reach(int(-ahead.min()), int(ahead.max()))


@functools.lru_cache(maxsize=64)
def draw_keys(mask):
    """Sample the keys that each query of a `Random` mask sees: int array (length, num_keys)."""
    random = np.random.RandomState(mask.seed)  # unlike default_rng, its stream never changes
    keys = np.arange(mask.start, mask.length)
    far = (keys[np.abs(keys - i) >= mask.min_distance] for i in range(mask.length))
    return np.array([random.permutation(candidates)[: mask.num_keys] for candidates in far])
