"""The causal mask: no query attends to a later key."""

import dataclasses

import keras

from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Causal(Mask, Part):
    """The causal mask: key j is visible to query i when j <= i (Vaswani et al., 2017).

    Queries and keys are both numbered from 0, as in Keras, unless the caller passes positions.

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
