"""No end before a number of tokens."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.generation.constraints.allowed import Forbidden, whole_ids
from keras_attention.generation.constraints.base import Constraint


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class MinimumLength(Constraint):
    """END ids may come only after `length` new tokens.

    Args:
        length: int, at least 0.
        end_ids: ints.

    Example:

    ```python
    import keras_attention as ka

    written = ka.generation.Written([[1, 2, -1]], count=2, begin=1, vocabulary_size=3)
    longer = ka.generation.constraints.MinimumLength(2, end_ids=[0])
    assert longer.allows(written).numpy().tolist() == [[False, True, True]]
    ```
    """

    length: int
    end_ids: tuple

    def __post_init__(self):
        checks.whole(self, "length", least=0)
        object.__setattr__(self, "end_ids", whole_ids(self, self.end_ids))

    def allows(self, written):
        long_enough = written.count - written.begin >= self.length
        return ops.logical_or(Forbidden(self.end_ids).allows(written), long_enough)
