"""Ids that alone may come, and ids that never may."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention import checks
from keras_attention.generation.constraints.base import Constraint


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Allowed(Constraint):
    """Only these ids may come. END ids are to be among them, or no row ends.

    Args:
        ids: ints.

    Example:

    ```python
    import keras_attention as ka

    written = ka.generation.Written([[1, -1]], count=1, begin=1, vocabulary_size=3)
    digits = ka.generation.constraints.Allowed([0, 2])
    assert digits.allows(written).numpy().tolist() == [[True, False, True]]
    ```
    """

    ids: tuple

    def __post_init__(self):
        object.__setattr__(self, "ids", whole_ids(self, self.ids))
        if not self.ids:
            raise ValueError("Allowed(ids=()): name the ids that may come; nothing else may.")

    def allows(self, written):
        return _listed(self, written.vocabulary_size)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Forbidden(Constraint):
    """These ids never come.

    Args:
        ids: ints.

    Example:

    ```python
    import keras_attention as ka

    written = ka.generation.Written([[1, -1]], count=1, begin=1, vocabulary_size=3)
    known = ka.generation.constraints.Forbidden([0])
    assert known.allows(written).numpy().tolist() == [[False, True, True]]
    ```
    """

    ids: tuple

    def __post_init__(self):
        object.__setattr__(self, "ids", whole_ids(self, self.ids))

    def allows(self, written):
        return ops.logical_not(_listed(self, written.vocabulary_size))


def whole_ids(part, ids):
    """`ids` as a tuple of ints; the error names the part, or argument, that has others."""
    name = part if isinstance(part, str) else type(part).__name__
    return tuple(checks.whole_number(name, "id", i, least=0) for i in np.ravel(ids).tolist())


def _listed(part, vocabulary_size):
    """Which ids are those of `part`: bool (1, V)."""
    check_ids(part, part.ids, vocabulary_size)
    listed = np.isin(np.arange(vocabulary_size), part.ids)
    return ops.expand_dims(ops.convert_to_tensor(listed), axis=0)


def check_ids(part, ids, vocabulary_size):
    """Refuses ids that are not in the vocabulary."""
    if outside := sorted({i for i in ids if i >= vocabulary_size}):
        raise ValueError(
            f"{type(part).__name__}: ids {outside} are outside the vocabulary of "
            f"{vocabulary_size}, whose last id is {vocabulary_size - 1}."
        )
