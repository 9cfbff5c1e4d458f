"""Everybody sees everybody."""

import dataclasses

import keras
from keras import ops

from keras_attention.masks.base import Mask
from keras_attention.masks.reach import NOTHING
from keras_attention.part import Part


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Full(Mask, Part):
    """Every key is visible to every query: the same as no mask, and as cheap.

    Example:

    ```python
    import keras_attention as ka

    assert ka.masks.materialize(ka.masks.Full(), range(3), range(3)) is None
    ```
    """

    relative = True

    def allows(self, i, j):
        return ops.equal(i - j, i - j)

    def outside(self):
        return NOTHING
