"""`Grammar`, the base class of constraints to a regular language, and `Regex`."""

import dataclasses
import functools

import keras
from keras import ops

from keras_attention.generation.constraints import Constraint, name_constraint
from keras_attention.generation.grammars.expressions import Expressions
from keras_attention.generation.grammars.pattern import parse_pattern
from keras_attention.generation.grammars.token_automaton import NEVER, lift
from keras_attention.generation.grammars.token_texts import TokenTexts


class Grammar(Constraint):
    """Base class of constraints that allow only the texts of a regular language.

    The state is the state of an automaton, int32 (rows,). Subclasses are frozen dataclasses with
    a field `tokens`, and define `express`.
    """

    def __post_init__(self):
        object.__setattr__(self, "tokens", TokenTexts.of(self.tokens))
        if self.least_tokens == NEVER:
            raise ValueError(
                f"{name_constraint(self)} allows no text that these {len(self.tokens)} tokens can "
                "write. Use a tokenizer that has all characters of the text, or allow other texts."
            )

    def express(self, expressions):
        """Return the expression (an int of `Expressions`) that matches the allowed texts.

        `expressions` is the `Expressions` object that makes the expression.
        """
        raise NotImplementedError(f"{type(self).__name__}.express")

    @functools.cached_property
    def byte_automaton(self):
        """Return the `Automaton` that reads the bytes of a text."""
        expressions = Expressions()
        try:
            return expressions.compile(self.express(expressions))
        except ValueError as error:
            raise ValueError(f"{name_constraint(self)}: {error}") from error

    @functools.cached_property
    def automaton(self):
        """Return the `TokenAutomaton`, the tables that the generation loop reads."""
        return lift(self.byte_automaton, self.tokens)

    def matches(self, text):
        """Return whether `text`, a str, is one of the allowed texts."""
        return self.byte_automaton.matches(text)

    @property
    def least_tokens(self):
        """Return the minimum number of tokens of a match, an int."""
        return int(self.automaton.distances[self.automaton.start])

    def begin_state(self, rows):
        return ops.full((rows,), self.automaton.start, dtype="int32")

    def advance_state(self, state, tokens):
        classes = self._classify(tokens)
        flat = ops.reshape(ops.convert_to_tensor(self.automaton.table), (-1,))
        index = state * self.automaton.table.shape[1] + classes
        return ops.cast(ops.take(flat, index, axis=0), "int32")

    def _classify(self, tokens):
        """Return the class of each token in `tokens`, int32. Ids that write no text have 0."""
        classes = ops.convert_to_tensor(self.automaton.token_classes)
        has_class = tokens < len(self.tokens)
        classes = ops.take(classes, ops.where(has_class, tokens, 0), axis=0)
        return ops.where(has_class, ops.cast(classes, "int32"), 0)

    def allows(self, history):
        self._check_ids(history)
        automaton, ids = self.automaton, ops.arange(history.vocabulary_size, dtype="int32")
        following = ops.take(ops.convert_to_tensor(automaton.table), history.state, axis=0)
        following = ops.cast(following, "int32")  # (B, C)
        distances = ops.take(ops.convert_to_tensor(automaton.distances), following, axis=0)
        room = NEVER - 1 if history.end is None else history.end - history.count - 1
        allowed = ops.take(distances <= room, self._classify(ids), axis=1)  # (B, V)
        accepting = ops.take(ops.convert_to_tensor(automaton.accepting), history.state, axis=0)
        for i in history.end_token_ids:
            ends = ops.logical_and(ops.expand_dims(accepting, axis=1), ids == i)
            allowed = ops.logical_or(allowed, ends)
        return allowed

    def _check_ids(self, history):
        """Raise an error if an end id writes text, or an id with text is not in the vocabulary."""
        classes = self.automaton.token_classes
        for i in history.end_token_ids:
            if i < len(classes) and classes[i]:
                raise ValueError(
                    f"The end id {i} of {name_constraint(self)} writes {self.tokens.rest[i]!r}, "
                    "which may also occur in the text. Choose another end id, or a pattern without "
                    "this text."
                )
        if classes[history.vocabulary_size :].any():
            raise ValueError(
                f"{name_constraint(self)} has texts of {len(classes)} tokens, and the model has "
                f"{history.vocabulary_size} ids. Use the tokenizer of the model."
            )


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Regex(Grammar):
    r"""Lets `generate` write only texts that a regular expression matches (Willard & Louf, 2023).

    The expression matches the whole text. Pass it as `constraints=` to `ka.generation.generate`.

    A row can end only after a match, and never gets into a state from which no match can be
    reached. If a match fits into `max_new_tokens`, every row is a match. Otherwise `generate`
    raises an error. This holds if no other constraint forbids the tokens that a match needs.

    The pattern is compiled into tables for the tokens of a vocabulary. They are a part of the
    generation loop, and of exported files, which need an `end_token_id`.

    Args:
        pattern: str, a regular expression with literals, `.`, classes `[a-z]` and `[^"]`, escapes
            such as `\d`, groups, `|`, and the quantifiers `*`, `+`, `?` and `{m,n}`, as in Python.
            `\d`, `\w` and `\s` match ASCII only. Not supported are anchors, lookarounds, back
            references and lazy quantifiers.
        tokens: a tokenizer of `ka.data` (`Characters`, `Words`, `Subwords`, `PretrainedTokenizer`),
            a `TokenTexts`, or a list with the text of each id, None for special tokens.

    Raises:
        ValueError: the pattern has a mistake or an unsupported construct, or needs characters that
            no token has.

    ```python
    import keras_attention as ka

    characters = ka.data.Characters.build(["0123456789:-"])
    time = ka.generation.Regex(r"([01]\d|2[0-3]):[0-5]\d", characters)
    assert time.matches("23:59") and not time.matches("24:00")
    assert time.least_tokens == 5  # generate(..., max_new_tokens=5, constraints=time)
    ```
    """

    pattern: str
    tokens: object = dataclasses.field(repr=False)

    def express(self, expressions):
        return parse_pattern(self.pattern, expressions)
