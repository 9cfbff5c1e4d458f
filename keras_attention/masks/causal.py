"""The causal mask: no query attends to a later key."""

import dataclasses

import keras

from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Causal(Mask, Part):
    """Key j is visible to query i when j <= i (Vaswani et al., 2017, section 3.2.3).

    Positions of queries and keys count from 0 unless the caller gives others, so with fewer queries
    than keys the triangle starts at the top left, as in Keras.

    ```python
    import keras_attention as ka

    assert ka.masks.Causal().draw(3).splitlines()[2:] == ["0   ■ · ·", "1   ■ ■ ·", "2   ■ ■ ■"]
    ```
    """

    relative = True
    is_band = True

    def allows(self, i, j):
        return j <= i

    def reach(self):
        return Reach(right=0)

    def outside(self):
        return Reach(left=-1)
