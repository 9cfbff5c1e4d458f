"""Constraints: parts that say which tokens may come next, by the tokens so far."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part
from keras_attention.generation.token_history import count_ids


class Constraint(Part):
    """Says which tokens may come next: `constraint.allows(history)`.

    A row to which nothing is allowed any more ends there, without an END id.
    """

    def allows(self, history):
        """`TokenHistory` -> bool (B, V), True = may come; (1, V) where all rows have the same."""
        raise NotImplementedError(f"{type(self).__name__}.allows")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Rule(Constraint):
    """A constraint that is a function, of `keras.ops`, as `Constraint.allows` is.

    Args:
        function: `TokenHistory` -> bool (B, V) or (1, V). Registered with Keras, it can be saved.

    ```python
    import keras_attention as ka
    from keras import ops


    def even(history):
        return ops.expand_dims(ops.arange(history.vocabulary_size) % 2 == 0, axis=0)


    history = ka.generation.TokenHistory([[1, -1]], count=1, begin=1, vocabulary_size=3)
    rule = ka.generation.constraints.Rule(even)
    assert rule.allows(history).numpy().tolist() == [[True, False, True]]
    ```
    """

    function: Callable

    def allows(self, history):
        return self.function(history)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Allowed(Constraint):
    """Only these ids may come. END ids are to be among them, or no row ends.

    Args:
        ids: ints.

    ```python
    import keras_attention as ka

    history = ka.generation.TokenHistory([[1, -1]], count=1, begin=1, vocabulary_size=3)
    digits = ka.generation.constraints.Allowed([0, 2])
    assert digits.allows(history).numpy().tolist() == [[True, False, True]]
    ```
    """

    ids: tuple

    def __post_init__(self):
        object.__setattr__(self, "ids", whole_ids(self, self.ids))
        if not self.ids:
            raise ValueError("Allowed(ids=()): name the ids that may come; nothing else may.")

    def allows(self, history):
        return _listed(self, history.vocabulary_size)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Forbidden(Constraint):
    """These ids never come.

    Args:
        ids: ints.

    ```python
    import keras_attention as ka

    history = ka.generation.TokenHistory([[1, -1]], count=1, begin=1, vocabulary_size=3)
    known = ka.generation.constraints.Forbidden([0])
    assert known.allows(history).numpy().tolist() == [[False, True, True]]
    ```
    """

    ids: tuple

    def __post_init__(self):
        object.__setattr__(self, "ids", whole_ids(self, self.ids))

    def allows(self, history):
        return ops.logical_not(_listed(self, history.vocabulary_size))


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class MinimumLength(Constraint):
    """END ids may come only after `length` new tokens.

    Args:
        length: int, at least 0.
        end_token_ids: ints.

    ```python
    import keras_attention as ka

    history = ka.generation.TokenHistory([[1, 2, -1]], count=2, begin=1, vocabulary_size=3)
    longer = ka.generation.constraints.MinimumLength(2, end_token_ids=[0])
    assert longer.allows(history).numpy().tolist() == [[False, True, True]]
    ```
    """

    length: int
    end_token_ids: tuple

    def __post_init__(self):
        checks.check_whole_numbers(self, "length", least=0)
        object.__setattr__(self, "end_token_ids", whole_ids(self, self.end_token_ids))

    def allows(self, history):
        long_enough = history.count - history.begin >= self.length
        return ops.logical_or(Forbidden(self.end_token_ids).allows(history), long_enough)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class AtFirst(Constraint):
    """A constraint on the first new token alone; the others are free.

    `AtFirst(Allowed([i]))` is what Hugging Face calls `forced_bos_token_id=i`, with which BART
    begins its summaries, and `AtFirst(Forbidden(ids))` its `begin_suppress_tokens=ids`.

    Args:
        constraint: `Constraint`, its config, or a function, which is a `Rule`.

    ```python
    import keras_attention as ka

    forced = ka.generation.constraints.AtFirst(ka.generation.constraints.Allowed([2]))
    history = ka.generation.TokenHistory([[1, -1, -1]], count=1, begin=1, vocabulary_size=3)
    assert forced.allows(history).numpy().tolist() == [[False, False, True]]
    history = ka.generation.TokenHistory([[1, 2, -1]], count=2, begin=1, vocabulary_size=3)
    assert forced.allows(history).numpy().tolist() == [[True, True, True]]
    ```
    """

    constraint: Constraint

    def __post_init__(self):
        object.__setattr__(self, "constraint", get(self.constraint))

    def allows(self, history):
        return ops.logical_or(self.constraint.allows(history), history.count > history.begin)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class NoRepeatNGrams(Constraint):
    """No `size` tokens in a row that a row has already, its prompt included.

    (Paulus et al., 2018, section 2.5, with trigrams.) That END follows a token twice is no
    repetition: a row has one END.

    Args:
        size: int n; 1 forbids every token that was history.

    ```python
    import numpy as np
    import keras_attention as ka

    tokens = np.array([[3, 1, 3, -1]])
    history = ka.generation.TokenHistory(tokens, count=3, begin=1, vocabulary_size=4)
    no_pair_twice = ka.generation.constraints.NoRepeatNGrams(2)
    assert np.array_equal(no_pair_twice.allows(history), [[True, False, True, True]])
    ```
    """

    size: int

    def __post_init__(self):
        checks.check_whole_numbers(self, "size")

    def allows(self, history):
        tokens, n = ops.convert_to_tensor(history.tokens), self.size
        batch, length = ops.shape(tokens)
        # Padded with -1, every index begins n tokens; those that hold a -1 do not count.
        padded = ops.concatenate([tokens, -ops.ones((batch, n), dtype="int32")], axis=1)
        same = ops.ones((batch, length), dtype="bool")
        ending = history.last(n - 1) if n > 1 else None
        for k in range(n - 1):
            wanted = ending[:, k : k + 1]
            here = ops.logical_and(padded[:, k : k + length] == wanted, wanted >= 0)
            same = ops.logical_and(same, here)
        following = padded[:, n - 1 : n - 1 + length]
        return count_ids(following, same, history.vocabulary_size) == 0


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class OneOf(Constraint):
    """The new tokens are one of these sequences: labels, names, commands (De Cao et al., 2021).

    A row ends where its sequence does. Where one sequence is the beginning of another, end each
    with an END id, so that the shorter one can be chosen.

    Args:
        sequences: lists of ints.

    ```python
    import keras_attention as ka

    answers = ka.generation.constraints.OneOf([[3, 1], [3, 2], [0]])
    history = ka.generation.TokenHistory([[2, 3, -1]], count=2, begin=1, vocabulary_size=4)
    assert answers.allows(history).numpy().tolist() == [[False, True, True, False]]
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

    def allows(self, history):
        check_ids(self, [i for ids in self.sequences for i in ids], history.vocabulary_size)
        longest = max(map(len, self.sequences))
        table = [(*ids, *[-1] * (longest + 1 - len(ids))) for ids in self.sequences]
        table = ops.convert_to_tensor(np.array(table, "int32"))  # (M, longest + 1)
        number = history.count - history.begin
        begun = _begins_with(table[:, :longest], history, number)
        following = ops.take(table, ops.minimum(number, longest), axis=1)
        following = ops.broadcast_to(ops.expand_dims(following, axis=0), ops.shape(begun))
        return count_ids(following, begun, history.vocabulary_size) > 0


def get(identifier):
    """The constraint that `identifier` means: one, its config, or a function, which is a `Rule`."""
    if isinstance(identifier, type):
        raise ValueError(f"constraints={identifier!r}: expected one of these, not the class.")
    if callable(identifier) and not isinstance(identifier, Constraint):
        return Rule(identifier)
    if not isinstance(identifier, Constraint | dict):
        raise ValueError(
            f"constraints={identifier!r}: expected a Constraint, its config, or a function of "
            "TokenHistory that gives bool (B, V)."
        )
    return part.get(identifier, names={}, family="constraint", base=Constraint)


def whole_ids(part, ids):
    """`ids` as a tuple of ints; the error names the part, or argument, that has others."""
    name = part if isinstance(part, str) else type(part).__name__
    return tuple(checks.check_whole_number(name, "id", i, least=0) for i in np.ravel(ids).tolist())


def _listed(part, vocabulary_size):
    """Return which ids are those of `part`: bool (1, V)."""
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


def _begins_with(table, history, number):
    """Which of the M sequences begin with the `number` new tokens of each row: bool (B, M)."""
    length = table.shape[1]
    behind = -ops.ones((ops.shape(history.tokens)[0], length), dtype="int32")
    tokens = ops.concatenate([ops.convert_to_tensor(history.tokens), behind], axis=1)
    indices = ops.arange(length, dtype="int32")
    new = ops.take(tokens, indices + history.begin, axis=1)
    same = ops.expand_dims(new, axis=1) == ops.expand_dims(table, axis=0)  # (B, M, length)
    later = ops.reshape(indices >= number, (1, 1, -1))
    fits = ops.all(ops.logical_or(same, later), axis=-1)
    return ops.logical_and(fits, number <= length)
