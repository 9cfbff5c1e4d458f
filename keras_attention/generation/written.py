"""What has been written so far, as penalties and constraints see it."""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class Written:
    """The tokens of each row so far: those of its prompt, and those generated.

    Attributes:
        tokens: int32 (B, L), -1 where there is no token: in front of shorter prompts, after the
            end, and in the places still to be filled.
        count: int32 scalar, how many places are filled; the token chosen next goes to this one.
        begin: int32 scalar, how many of them are the prompt's.
        vocabulary_size: int, V.

    Example:

    ```python
    import keras_attention as ka

    written = ka.generation.Written([[-1, 3, 5, 3, -1]], count=4, begin=2, vocabulary_size=6)
    assert written.occurrences().numpy().tolist() == [[0, 0, 0, 2, 0, 1]]
    assert written.last(3).numpy().tolist() == [[3, 5, 3]]
    ```
    """

    tokens: object
    count: object
    begin: object
    vocabulary_size: int

    def occurrences(self):
        """How often each id was written in each row, int32 (B, V)."""
        return count_ids(self.tokens, ops.ones_like(self.tokens), self.vocabulary_size)

    def last(self, number):
        """The last `number` tokens of each row, int32 (B, number); -1 where there are fewer."""
        before = -ops.ones((ops.shape(self.tokens)[0], number), dtype="int32")
        places = ops.arange(number, dtype="int32") + self.count
        return ops.take(ops.concatenate([before, self.tokens], axis=1), places, axis=1)


def count_ids(ids, weights, vocabulary_size):
    """The sum of `weights` (B, L) by id: int32 (B, V) for `ids` (B, L), of which -1 is none."""
    ids = ops.cast(ids, "int32")
    batch = ops.shape(ids)[0]
    first = ops.expand_dims(ops.arange(batch, dtype="int32") * vocabulary_size, axis=1)
    places = ops.reshape(ops.maximum(ids, 0) + first, (-1, 1))
    weights = ops.cast(weights, "int32") * ops.cast(ids >= 0, "int32")
    sums = ops.scatter(places, ops.reshape(weights, (-1,)), (batch * vocabulary_size,))
    return ops.reshape(sums, (-1, vocabulary_size))
