"""Everybody sees the neighbours, with gaps."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach
from keras_attention.part import Part


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Dilated(Mask, Part):
    """Key j is visible to query i when dilation divides i - j and |i - j| < size * dilation.

    A dilated sliding window (Beltagy et al., 2020, section 3.1): as many keys as `Window(size)`,
    `dilation` apart, so that it reaches `dilation` times as far. `dilation=1` is the window itself.

    Args:
        size: int, at least 1: how many keys on each side, the query's own counted on both.
        dilation: int, at least 1: how far apart they are.

    Example:

    ```python
    import keras_attention as ka

    mask = ka.masks.Dilated(size=2, dilation=2)
    assert mask.draw(5).splitlines()[2] == "0   ■ · ■ · ·"
    assert mask.draw(5).splitlines()[4] == "2   ■ · ■ · ■"
    ```
    """

    relative = True

    size: int
    dilation: int

    def __post_init__(self):
        checks.whole(self, "size", "dilation")

    def allows(self, i, j):
        aligned = ops.equal((i - j) % self.dilation, 0)
        return ops.logical_and(aligned, ops.abs(i - j) < self.size * self.dilation)

    def reach(self):
        farthest = (self.size - 1) * self.dilation
        return Reach(farthest, farthest)
