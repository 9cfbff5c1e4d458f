"""Everybody sees the neighbours."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach
from keras_attention.part import Part


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Window(Mask, Part):
    """Key j is visible to query i when |i - j| < size; `size=1` is the diagonal.

    Sliding-window or local attention (Beltagy et al., 2020, section 3.1). A query sees 2 size - 1
    keys; `Causal() & Window(size)` leaves `size` of them, the query's own included. The paper's
    window of w keys is `Window(w // 2 + 1)`.

    Args:
        size: int, at least 1.

    Example:

    ```python
    import keras_attention as ka

    mask = ka.masks.Window(2)
    assert mask.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ■", "2   · ■ ■"]
    ```
    """

    relative = True

    size: int

    def __post_init__(self):
        checks.whole(self, "size")

    def allows(self, i, j):
        return ops.abs(i - j) < self.size

    def reach(self):
        return Reach(self.size - 1, self.size - 1)
