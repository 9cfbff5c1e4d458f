"""The strided mask: each query attends to every n-th key, counted from its own position."""

import dataclasses

import keras
from keras import ops

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Strided(Mask, Part):
    """A strided mask: key j is visible to query i when stride divides i - j (Child et al., 2019).

    The pattern of the Sparse Transformer is `Causal() & (Window(stride) | Strided(stride))`. In
    the paper, one head uses the window and another head uses this mask.

    Args:
        stride: int, at least 1, the distance between neighboring visible keys.

    ```python
    import keras_attention as ka

    mask = ka.masks.Causal() & (ka.masks.Window(2) | ka.masks.Strided(3))
    assert mask.draw(5).splitlines()[6] == "4   · ■ · ■ ■"
    ```
    """

    relative = True

    stride: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "stride")

    def allows(self, i, j):
        return ops.equal((i - j) % self.stride, 0)
