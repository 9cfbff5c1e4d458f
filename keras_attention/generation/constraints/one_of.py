"""One of a list of sequences, and nothing else."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.generation.constraints.allowed import check_ids, whole_ids
from keras_attention.generation.constraints.base import Constraint
from keras_attention.generation.written import count_ids


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class OneOf(Constraint):
    """The new tokens are one of these sequences: labels, names, commands (De Cao et al., 2021).

    A row ends where its sequence does. Where one sequence is the beginning of another, end each
    with an END id, so that the shorter one can be chosen.

    Args:
        sequences: lists of ints.

    Example:

    ```python
    import keras_attention as ka

    answers = ka.generation.constraints.OneOf([[3, 1], [3, 2], [0]])
    written = ka.generation.Written([[2, 3, -1]], count=2, begin=1, vocabulary_size=4)
    assert answers.allows(written).numpy().tolist() == [[False, True, True, False]]
    ```
    """

    sequences: tuple

    def __post_init__(self):
        sequences = tuple(whole_ids(self, ids) for ids in self.sequences)
        if not all(sequences) or not sequences:
            raise ValueError(
                f"OneOf(sequences={self.sequences!r}): expected one sequence of ids or more, none "
                "of them empty."
            )
        object.__setattr__(self, "sequences", sequences)

    def allows(self, written):
        check_ids(self, [i for ids in self.sequences for i in ids], written.vocabulary_size)
        longest = max(map(len, self.sequences))
        table = [(*ids, *[-1] * (longest + 1 - len(ids))) for ids in self.sequences]
        table = ops.convert_to_tensor(np.array(table, "int32"))  # (M, longest + 1)
        number = written.count - written.begin
        begun = _begun(table[:, :longest], written, number)
        following = ops.take(table, ops.minimum(number, longest), axis=1)
        following = ops.broadcast_to(ops.expand_dims(following, axis=0), ops.shape(begun))
        return count_ids(following, begun, written.vocabulary_size) > 0


def _begun(table, written, number):
    """Which of the M sequences the `number` new tokens of each row begin: bool (B, M)."""
    length = table.shape[1]
    behind = -ops.ones((ops.shape(written.tokens)[0], length), dtype="int32")
    tokens = ops.concatenate([ops.convert_to_tensor(written.tokens), behind], axis=1)
    places = ops.arange(length, dtype="int32")
    new = ops.take(tokens, places + written.begin, axis=1)
    same = ops.expand_dims(new, axis=1) == ops.expand_dims(table, axis=0)  # (B, M, length)
    unasked = ops.reshape(places >= number, (1, 1, -1))
    fits = ops.all(ops.logical_or(same, unasked), axis=-1)
    return ops.logical_and(fits, number <= length)
