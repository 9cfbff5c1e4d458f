"""Constraints for `generate`: which tokens may come next, given the tokens so far."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, part
from keras_attention.core.part import Part
from keras_attention.generation.token_history import count_ids


class Constraint(Part):
    """Base class of constraints, which forbid some tokens during generation.

    A subclass defines `allows`. If all tokens are forbidden in a row, the row ends there, without
    an end id. A constraint can keep a state, to avoid reading all tokens again at every step. It
    then defines `begin_state` and `advance_state`, and reads `history.state`.

    Attributes:
        least_tokens: int, the minimum number of new tokens that a row needs, without an end id.
    """

    least_tokens = 0

    def allows(self, history):
        """Return which ids may come next in each row.

        Args:
            history: a `TokenHistory`, the tokens so far.

        Returns:
            bool (B, vocabulary_size), or (1, vocabulary_size) for all rows.
        """
        raise NotImplementedError(f"{type(self).__name__}.allows")

    def begin_state(self, rows):
        """Return the state before the first new token, or None if the constraint has no state.

        A state is a tensor, or a dict of tensors. The first axis of each is `rows`.
        """
        return None

    def advance_state(self, state, tokens):
        """Return the state after one more token in each row, `tokens` (B,).

        The new state has the shapes and dtypes of `state`. In a row that has ended, the state has
        no effect.
        """
        raise NotImplementedError(f"{type(self).__name__}.advance_state")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Rule(Constraint):
    """Allows the tokens that your own function allows.

    Args:
        function: function from a `TokenHistory`, the tokens so far, to bool (B, vocabulary_size) or
            (1, vocabulary_size), True for allowed ids, written with `keras.ops`. To save the
            constraint, register the function with Keras.

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
    """Allows only the given token ids.

    Args:
        ids: ints, the allowed ids. Include the end ids, otherwise no row can end.

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
            raise ValueError(
                "Allowed(ids=()): expected at least one id. List the ids that may come next."
            )

    def allows(self, history):
        return _listed(self, history.vocabulary_size)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Forbidden(Constraint):
    """Forbids the given token ids.

    Args:
        ids: ints, the forbidden ids.

    ```python
    import keras_attention as ka

    history = ka.generation.TokenHistory([[1, -1]], count=1, begin=1, vocabulary_size=3)
    rule = ka.generation.constraints.Forbidden([0])
    assert rule.allows(history).numpy().tolist() == [[False, True, True]]
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
    """Forbids the end of a row until the row has `length` new tokens.

    Args:
        length: int, at least 0, the minimum number of new tokens before an end id.
        end_token_ids: ints, the ids that end a row.

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
    """Applies a constraint only to the first new token.

    `AtFirst(Allowed([i]))` is Hugging Face's `forced_bos_token_id=i`, which BART uses for
    summaries. `AtFirst(Forbidden(ids))` is Hugging Face's `begin_suppress_tokens=ids`.

    Args:
        constraint: a `Constraint`, its config, or a function for `Rule`.

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

    def begin_state(self, rows):
        return self.constraint.begin_state(rows)

    def advance_state(self, state, tokens):
        return self.constraint.advance_state(state, tokens)


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class NoRepeatNGrams(Constraint):
    """Forbids tokens that would complete an n-gram that the row or its prompt already contains.

    Paulus et al. (2018, section 2.5) use trigrams.

    Args:
        size: int n, the number of tokens in an n-gram. 1 forbids every token that already occurred.

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
        # Padded with -1, so that an n-gram begins at every index. N-grams with -1 do not count.
        padded = ops.concatenate([tokens, -ops.ones((batch, n), dtype="int32")], axis=1)
        same = ops.ones((batch, length), dtype="bool")
        ending = history.last(n - 1) if n > 1 else None
        for k in range(n - 1):
            expected = ending[:, k : k + 1]
            matches = ops.logical_and(padded[:, k : k + length] == expected, expected >= 0)
            same = ops.logical_and(same, matches)
        following = padded[:, n - 1 : n - 1 + length]
        return count_ids(following, same, history.vocabulary_size) == 0


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class OneOf(Constraint):
    """Makes the new tokens of each row one of the given sequences (De Cao et al., 2021).

    Use it to choose among labels, names or commands. A row ends after its sequence. If a sequence
    is the beginning of another, put an end id at the end of both, so that the shorter sequence can
    be chosen.

    Args:
        sequences: lists of ints, the allowed sequences of new tokens.

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
                f"OneOf(sequences={self.sequences!r}): expected at least one sequence of ids, and "
                "no empty sequence. Remove empty sequences."
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
    """Return the `Constraint` that `identifier` describes.

    `identifier` is a constraint, its config, or a function for `Rule`. The function maps a
    `TokenHistory` to bool (B, vocabulary_size), True for each id that may come next. Anything else
    raises a ValueError.
    """
    if isinstance(identifier, type):
        raise ValueError(f"constraints={identifier!r} is a class. Pass an instance of it.")
    if callable(identifier) and not isinstance(identifier, Constraint):
        return Rule(identifier)
    if not isinstance(identifier, Constraint | dict):
        raise ValueError(
            f"constraints={identifier!r}: expected a Constraint, its config, or a function from "
            "TokenHistory to bool (B, V)."
        )
    return part.get(identifier, names={}, family="constraint", base=Constraint)


def name_constraint(constraint):
    """Return the name of a constraint for errors: its `repr`, without the end of a long pattern."""
    name = str(constraint)
    return name if len(name) <= 120 else f"{name[:117]}..."


def whole_ids(part, ids):
    """Return `ids` as a tuple of ints. Other values raise an error that names `part`."""
    name = part if isinstance(part, str) else type(part).__name__
    return tuple(checks.check_whole_number(name, "id", i, least=0) for i in np.ravel(ids).tolist())


def _listed(part, vocabulary_size):
    """Return which ids are in `part.ids`, bool (1, V). V is `vocabulary_size`."""
    check_ids(part, part.ids, vocabulary_size)
    listed = np.isin(np.arange(vocabulary_size), part.ids)
    return ops.expand_dims(ops.convert_to_tensor(listed), axis=0)


def check_ids(part, ids, vocabulary_size):
    """Raise an error that names the constraint `part` if an id is outside the vocabulary.

    `ids` are ints, and `vocabulary_size` is the number of ids in the vocabulary.
    """
    if outside := sorted({i for i in ids if i >= vocabulary_size}):
        raise ValueError(
            f"{type(part).__name__}: ids {outside} are outside the vocabulary of "
            f"{vocabulary_size} ids. The last id is {vocabulary_size - 1}. Remove them."
        )


def _begins_with(table, history, number):
    """Return which of M sequences begin with the new tokens of each row, bool (B, M).

    `table` (M, length) has the sequences, and `number` is the number of new tokens.
    """
    length = table.shape[1]
    behind = -ops.ones((ops.shape(history.tokens)[0], length), dtype="int32")
    tokens = ops.concatenate([ops.convert_to_tensor(history.tokens), behind], axis=1)
    indices = ops.arange(length, dtype="int32")
    new = ops.take(tokens, indices + history.begin, axis=1)
    same = ops.expand_dims(new, axis=1) == ops.expand_dims(table, axis=0)  # (B, M, length)
    later = ops.reshape(indices >= number, (1, 1, -1))
    fits = ops.all(ops.logical_or(same, later), axis=-1)
    return ops.logical_and(fits, number <= length)
