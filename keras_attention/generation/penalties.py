"""Penalties for `generate`, which make tokens less probable, given the tokens so far."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part
from keras_attention.generation.samplers.base import IMPOSSIBLE


class Penalty(Part):
    """Base class of penalties, which change the logits given the tokens so far.

    A subclass defines `__call__`.

    Call arguments:
        logits: float32 (B, vocabulary_size).
        history: a `TokenHistory`, the tokens so far.

    Returns:
        The new logits (B, vocabulary_size). Tokens and scores are computed from these logits.
    """

    def __call__(self, logits, history):
        raise NotImplementedError(f"{type(self).__name__}.__call__")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Frequency(Penalty):
    """Lowers the logits of tokens that already occurred, in the prompt or among the new tokens.

    Args:
        each: float, subtracted for every occurrence of a token, the frequency penalty of OpenAI's
            API (2020).
        once: float, subtracted once if a token has occurred, the presence penalty of the same API.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[1, 1, -1]])
    history = ka.generation.TokenHistory(tokens, count=2, begin=1, vocabulary_size=2)
    penalty = ka.generation.penalties.Frequency(each=0.5, once=1.0)
    assert np.array_equal(penalty(np.zeros((1, 2), "float32"), history), [[0.0, -2.0]])
    ```
    """

    each: float = 0.0
    once: float = 0.0

    def __post_init__(self):
        checks.check_number(self, "each")
        checks.check_number(self, "once")

    def __call__(self, logits, history):
        times = ops.cast(history.occurrences(), "float32")
        return logits - self.each * times - self.once * ops.minimum(times, 1.0)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Repetition(Penalty):
    """Makes tokens less probable that already occurred, in the prompt or among the new tokens.

    The penalty divides positive logits by `factor`, and multiplies negative logits by `factor`.
    CTRL (Keskar et al., 2019, section 4.1) divides all logits, which makes tokens with negative
    logits more probable.

    Args:
        factor: positive float. 1 changes nothing, and values below 1 favor repetition. The paper
            uses 1.2.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[0, 1, -1]])
    history = ka.generation.TokenHistory(tokens, count=2, begin=1, vocabulary_size=3)
    penalty = ka.generation.penalties.Repetition(2.0)
    logits = np.array([[3.0, -3.0, 3.0]], "float32")
    assert np.array_equal(penalty(logits, history), [[1.5, -6.0, 3.0]])
    ```
    """

    factor: float

    def __post_init__(self):
        checks.check_number(self, "factor", above=0)

    def __call__(self, logits, history):
        logits = ops.convert_to_tensor(logits)
        less = ops.where(logits > 0, logits / self.factor, logits * self.factor)
        return ops.where(history.occurrences() > 0, less, logits)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Timestamps(Penalty):
    """Whisper's rules for times in a text: forbids tokens that would break them.

    A text consists of segments, and each begins and ends with a timestamp (Radford et al., 2022,
    section 4.5, and OpenAI's code):

    - The first token is a timestamp, at most `latest_first` steps after the beginning.
    - After the two timestamps between segments comes text. After a single one comes another
      timestamp or the end.
    - Timestamps never decrease, and a segment is not empty.
    - If all timestamps together are more probable than every other token, the next token is a
      timestamp.

    Forbidden tokens are those of `forbidden_ids`, and `IMPOSSIBLE`, -1e9, replaces their logits.

    Args:
        first_id: int, the id of the timestamp `<|0.00|>`. All greater ids are timestamps, too.
        end_token_id: int, the id that ends a text. Ids from here to `first_id` are special tokens.
        forbidden_ids: ints, ids that are never generated. They do not count in the last rule.
        latest_first: int, the greatest first timestamp, in steps of 0.02 seconds. 50 is a second.

    ```python
    import numpy as np
    import keras_attention as ka

    rules = ka.generation.penalties.Timestamps(first_id=3, end_token_id=2, latest_first=1)
    tokens = np.array([[0, 3, -1]], "int32")
    history = ka.generation.TokenHistory(tokens, count=2, begin=1, vocabulary_size=6)
    logits = rules(np.array([[5.0, 0.0, 0.0, 0.0, 0.0, 0.0]], "float32"), history)
    assert (np.array(logits)[0] > -1e9).tolist() == [True, True, True, False, False, False]
    ```
    """

    first_id: int
    end_token_id: int
    forbidden_ids: tuple = ()
    latest_first: int = 50

    def __post_init__(self):
        checks.check_whole_numbers(self, "first_id", "end_token_id", "latest_first", least=0)
        object.__setattr__(self, "forbidden_ids", tuple(map(int, self.forbidden_ids)))
        if self.end_token_id >= self.first_id:
            raise ValueError(
                f"Timestamps(first_id={self.first_id}, end_token_id={self.end_token_id}): expected "
                "timestamps after the end id, as in Whisper's vocabulary."
            )

    def __call__(self, logits, history):
        ids = ops.expand_dims(ops.arange(history.vocabulary_size, dtype="int32"), axis=0)
        is_time = ids >= self.first_id
        number = history.count - history.begin
        tokens = ops.cast(history.tokens, "int32")
        indices = ops.expand_dims(ops.arange(ops.shape(tokens)[1], dtype="int32"), axis=0)
        new = ops.where(indices >= history.begin, tokens, -1)
        highest = ops.max(new, axis=1, keepdims=True)  # the latest timestamp, or less than first_id
        before, last = ops.split(ops.cast(history.last(2), "int32"), 2, axis=1)
        ends_in_time = ops.logical_and(last >= self.first_id, number >= 1)
        two_times = ops.logical_and(
            ends_in_time, ops.logical_or(before >= self.first_id, number < 2)
        )
        one_time = ops.logical_and(ends_in_time, ops.logical_not(two_times))
        # A segment may begin where the last one ends, but it ends later than it begins.
        least = ops.where(one_time, highest, highest + 1)
        forbidden = ops.logical_or(
            ops.logical_and(two_times, is_time), ops.logical_and(one_time, ids < self.end_token_id)
        )
        forbidden = ops.logical_or(forbidden, ops.logical_and(is_time, ids < least))
        late = ids > self.first_id + self.latest_first
        wrong_first = ops.logical_or(late, ops.logical_not(is_time))
        forbidden = ops.logical_or(forbidden, ops.logical_and(wrong_first, number < 1))
        special = ops.logical_and(ids > self.end_token_id, ops.logical_not(is_time))
        listed = np.isin(np.arange(history.vocabulary_size), self.forbidden_ids)
        never = ops.logical_or(special, ops.expand_dims(ops.convert_to_tensor(listed), axis=0))
        forbidden = ops.logical_or(forbidden, never)
        possible = ops.where(forbidden, IMPOSSIBLE, ops.cast(logits, "float32"))
        times = ops.logsumexp(ops.where(is_time, possible, IMPOSSIBLE), axis=1, keepdims=True)
        text = ops.max(ops.where(is_time, IMPOSSIBLE, possible), axis=1, keepdims=True)
        only_times = ops.logical_and(times > text, ops.logical_not(is_time))
        return ops.where(only_times, IMPOSSIBLE, possible)


def get(identifier):
    """Return the `Penalty` that `identifier`, a penalty or its config, describes.

    Anything else raises a ValueError.
    """
    if not isinstance(identifier, Penalty | dict):
        raise ValueError(f"penalties={identifier!r}: expected a Penalty, or its config.")
    return part.get(identifier, names={}, family="penalty", base=Penalty)
