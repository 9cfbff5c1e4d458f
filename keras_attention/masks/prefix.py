"""The prefix mask: every query attends to the first keys."""

import dataclasses

import keras

from keras_attention.core import checks
from keras_attention.core.part import Part
from keras_attention.masks.base import Mask
from keras_attention.masks.reach import Reach


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Prefix(Mask, Part):
    """A prefix mask: key j is visible to every query when j < length.

    The mask of a prefix language model (Raffel et al., 2020, section 3.2.1) is
    `Causal() | Prefix(length)`: all tokens see the whole prompt.

    Args:
        length: int, at least 0, the number of tokens in the prefix.

    ```python
    import keras_attention as ka

    mask = ka.masks.Causal() | ka.masks.Prefix(2)
    assert mask.draw(3).splitlines()[2:] == ["0   ■ ■ ·", "1   ■ ■ ·", "2   ■ ■ ■"]
    ```
    """

    length: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "length", least=0)

    def allows(self, i, j):
        return j < self.length

    def reach(self):
        return Reach(0, -1, tokens=range(self.length))
