"""No sequence of n tokens twice."""

import dataclasses

import keras
from keras import ops

from keras_attention import checks
from keras_attention.generation.constraints.base import Constraint
from keras_attention.generation.written import count_ids


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class NoRepeatNGrams(Constraint):
    """No `size` tokens in a row that a row has already, its prompt included.

    (Paulus et al., 2018, section 2.5, with trigrams.) That END follows a token twice is no
    repetition: a row has one END.

    Args:
        size: int n; 1 forbids every token that was written.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[3, 1, 3, -1]])
    written = ka.generation.Written(tokens, count=3, begin=1, vocabulary_size=4)
    no_pair_twice = ka.generation.constraints.NoRepeatNGrams(2)
    assert np.array_equal(no_pair_twice.allows(written), [[True, False, True, True]])
    ```
    """

    size: int

    def __post_init__(self):
        checks.whole(self, "size")

    def allows(self, written):
        tokens, n = ops.convert_to_tensor(written.tokens), self.size
        batch, length = ops.shape(tokens)
        # With -1 behind, every place begins n tokens; those with -1 among them are none.
        padded = ops.concatenate([tokens, -ops.ones((batch, n), dtype="int32")], axis=1)
        same = ops.ones((batch, length), dtype="bool")
        ending = written.last(n - 1) if n > 1 else None
        for k in range(n - 1):
            wanted = ending[:, k : k + 1]
            here = ops.logical_and(padded[:, k : k + length] == wanted, wanted >= 0)
            same = ops.logical_and(same, here)
        following = padded[:, n - 1 : n - 1 + length]
        return count_ids(following, same, written.vocabulary_size) == 0
