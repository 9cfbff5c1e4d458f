"""`TokenHistory`: the tokens of each row so far, for penalties and constraints."""

import dataclasses

from keras import ops


@dataclasses.dataclass(frozen=True)
class TokenHistory:
    """The tokens of each row so far, which penalties and constraints read.

    Attributes:
        tokens: int32 (B, length), the prompt and the new tokens. -1 means no token: before a
            shorter prompt, after the end, and where tokens are not chosen yet.
        count: int32 scalar, the index in `tokens` of the token to choose next.
        begin: int32 scalar, the index of the first token after the prompt.
        vocabulary_size: int V, number of token ids.
        end: int32 scalar, the index after the last token that `max_new_tokens` allows. None if
            unknown.
        end_token_ids: tuple of ints, the ids that end a row.
        state: a value that the constraint stored at the last token, or None.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[-1, 3, 5, 3, -1]])
    history = ka.generation.TokenHistory(tokens, count=4, begin=2, vocabulary_size=6)
    assert np.array_equal(history.occurrences(), [[0, 0, 0, 2, 0, 1]])
    assert np.array_equal(history.last(3), [[3, 5, 3]])
    ```
    """

    tokens: object
    count: object
    begin: object
    vocabulary_size: int
    end: object = None
    end_token_ids: tuple = ()
    state: object = None

    def occurrences(self):
        """Count each id in each row, with its prompt: int32 (B, vocabulary_size)."""
        return count_ids(self.tokens, ops.ones_like(self.tokens), self.vocabulary_size)

    def last(self, number):
        """Return the last `number` tokens of each row, int32 (B, number). -1 fills short rows."""
        before = -ops.ones((ops.shape(self.tokens)[0], number), dtype="int32")
        indices = ops.arange(number, dtype="int32") + self.count
        return ops.take(ops.concatenate([before, self.tokens], axis=1), indices, axis=1)


def count_ids(ids, weights, vocabulary_size):
    """Return the sum of `weights` for each id in `ids`, int32 (B, vocabulary_size).

    `ids` and `weights` are (B, length). Ids of -1 are ignored.
    """
    ids = ops.cast(ids, "int32")
    batch = ops.shape(ids)[0]
    first = ops.expand_dims(ops.arange(batch, dtype="int32") * vocabulary_size, axis=1)
    indices = ops.reshape(ops.maximum(ids, 0) + first, (-1, 1))
    weights = ops.cast(weights, "int32") * ops.cast(ids >= 0, "int32")
    sums = ops.scatter(indices, ops.reshape(weights, (-1,)), (batch * vocabulary_size,))
    return ops.reshape(sums, (-1, vocabulary_size))
