"""`GenerationConfig`: the settings for choosing tokens from logits."""

import dataclasses

from keras import ops

from keras_attention.core import checks
from keras_attention.core.special_ids import Padding
from keras_attention.generation import constraints as constraint_parts
from keras_attention.generation import penalties as penalty_parts
from keras_attention.generation import samplers
from keras_attention.generation.constraints import (
    Allowed,
    Forbidden,
    MinimumLength,
    NoRepeatNGrams,
    name_constraint,
    whole_ids,
)
from keras_attention.generation.penalties import Repetition
from keras_attention.generation.samplers.base import IMPOSSIBLE


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """The settings of `generate` for choosing the next token from logits.

    Args:
        sampler: a `Sampler`.
        penalties: tuple of `Penalty`, applied to the logits in this order.
        constraints: tuple of `Constraint`. A token must satisfy all of them.
        end_token_ids: tuple of ints, the ids that end a row. If empty, rows have full length.
        padding: the `Padding` that follows the end of a row. The model never chooses its id, unless
            the id is also in `end_token_ids`.
        with_scores: bool, whether to return the log-probabilities of the tokens.
    """

    sampler: samplers.Sampler
    penalties: tuple = ()
    constraints: tuple = ()
    end_token_ids: tuple = ()
    padding: Padding = Padding()
    with_scores: bool = False

    def check_ids(self, vocabulary_size):
        """Raise an error if an end id or the padding id is not below `vocabulary_size`."""
        arguments = {"end_token_id": self.end_token_ids, "padding_id": (self.padding.filler,)}
        for name, ids in arguments.items():
            if outside := [i for i in ids if i >= vocabulary_size]:
                raise ValueError(
                    f"{name}={outside[0]} is outside the model's vocabulary of {vocabulary_size} "
                    f"ids. Choose an id from 0 to {vocabulary_size - 1}."
                )

    def check_room(self, number):
        """Raise an error if a constraint needs more than `number` new tokens."""
        for constraint in self.constraints:
            if constraint.least_tokens > number:
                raise ValueError(
                    f"{name_constraint(constraint)} needs at least "
                    f"{constraint.least_tokens} new tokens. It was given room for {number}. "
                    "Increase max_new_tokens or max_length."
                )

    def without_seed(self):
        """Return this config without the sampler's seed, so that all seeds share compiled code."""
        if self.sampler.seed is None:
            return self
        return dataclasses.replace(self, sampler=dataclasses.replace(self.sampler, seed=None))

    def penalize(self, logits, history):
        """Apply all penalties to logits (B, vocabulary_size), and return new logits in float32.

        `history` is a `TokenHistory`, the tokens of each row so far.
        """
        logits = ops.cast(logits, "float32")
        for penalty in self.penalties:
            logits = penalty(logits, history)
        return logits

    def begin_states(self, rows):
        """Return the states of all constraints that have one, before the first new token.

        The result is a dict from the index of the constraint, a str, to its state for `rows` rows.
        """
        states = {str(k): part.begin_state(rows) for k, part in enumerate(self.constraints)}
        return {k: state for k, state in states.items() if state is not None}

    def advance_states(self, states, tokens):
        """Return the states of all constraints after one more token in each row, `tokens` (B,).

        `states` is the dict that `begin_states` or the previous call returned.
        """
        return {k: self.constraints[int(k)].advance_state(x, tokens) for k, x in states.items()}

    def allowed(self, history, states):
        """Return which ids may come next, a bool tensor, or None if every id is allowed.

        The shape is (B, vocabulary_size), or (1, vocabulary_size) for all rows. `history` is a
        `TokenHistory`, the tokens of each row so far, and `states` are the states of the
        constraints after these tokens.
        """
        history = dataclasses.replace(history, end_token_ids=self.end_token_ids)
        allowed, padding = None, self.padding.id
        if padding is not None and padding not in self.end_token_ids:
            allowed = Forbidden((padding,)).allows(history)
        for k, constraint in enumerate(self.constraints):
            allows = constraint.allows(dataclasses.replace(history, state=states.get(str(k))))
            allowed = allows if allowed is None else ops.logical_and(allowed, allows)
        return allowed

    def is_end(self, tokens):
        """Return whether each token ends its row, bool in the shape of `tokens`."""
        ends = ops.zeros_like(tokens, dtype="bool")
        for i in self.end_token_ids:
            ends = ops.logical_or(ends, tokens == i)
        return ends

    def fill(self, tokens):
        """Return `tokens`, an int tensor, with -1 replaced by the padding id."""
        return ops.where(tokens < 0, self.padding.filler, tokens)


def make_config(
    sampler,
    padding,
    *,
    end_token_id=None,
    min_new_tokens=0,
    repetition_penalty=None,
    no_repeat_ngram_size=None,
    allowed_ids=None,
    penalties=(),
    constraints=(),
    with_scores=False,
):
    """Make a `GenerationConfig` from arguments of `generate`.

    `padding` is a `Padding`, the padding id of the model. `sampler` may be a name. `with_scores` is
    a bool, whether to return the log-probability of each new token.
    """
    penalties = penalties if isinstance(penalties, list | tuple) else [penalties]
    constraints = constraints if isinstance(constraints, list | tuple) else [constraints]
    penalty_list = [penalty_parts.get(one) for one in penalties]
    constraint_list = [constraint_parts.get(one) for one in constraints]
    ends = () if end_token_id is None else whole_ids("end_token_id", end_token_id)
    if repetition_penalty is not None:
        penalty_list.insert(0, Repetition(repetition_penalty))
    if min_new_tokens:
        constraint_list.append(MinimumLength(min_new_tokens, ends))
    if no_repeat_ngram_size is not None:
        constraint_list.append(NoRepeatNGrams(no_repeat_ngram_size))
    if allowed_ids is not None:
        constraint_list.append(Allowed(allowed_ids))
    parts = tuple(penalty_list), tuple(constraint_list)
    return GenerationConfig(samplers.get(sampler), *parts, ends, padding, with_scores)


def choose_padding(decoder, padding_id):
    """Return the `Padding` for the argument `padding_id` of `generate`.

    `padding_id` is an int, None for no padding, or `"model"` for the padding of the model.
    `decoder` is the `Decoder` of the model.
    """
    if padding_id == "model":
        return decoder.padding
    return Padding(checks.check_padding_id("generate", padding_id))


def forbid_tokens(logits, allowed):
    """Return logits (B, vocabulary_size) with the logit of forbidden ids set to `IMPOSSIBLE`, -1e9.

    `allowed` is bool (B, vocabulary_size) or (1, vocabulary_size), or None if every id is allowed.
    """
    return logits if allowed is None else ops.where(allowed, logits, IMPOSSIBLE)


def nothing_allowed(allowed):
    """Return which rows of `allowed` have no allowed id, bool (B,), or (1,) for all rows.

    `allowed` is bool (B, vocabulary_size), or (1, vocabulary_size) for all rows.
    """
    if allowed is None:
        return ops.zeros((1,), dtype="bool")
    return ops.logical_not(ops.any(allowed, axis=-1))
