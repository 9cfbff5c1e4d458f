"""`GenerationConfig`: how tokens are chosen from logits, by penalties, constraints, a sampler."""

import dataclasses

from keras import ops

from keras_attention.core import checks
from keras_attention.generation import constraints, penalties, samplers
from keras_attention.generation.constraints import (
    Allowed,
    Forbidden,
    MinimumLength,
    NoRepeatNGrams,
    whole_ids,
)
from keras_attention.generation.penalties import Repetition
from keras_attention.generation.samplers.base import IMPOSSIBLE


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """How the next token is chosen from the logits. Equal configs share compiled code.

    Args:
        sampler: `Sampler`.
        penalties: tuple of `Penalty`, in the order in which they change the logits.
        constraints: tuple of `Constraint`, all of which a token has to satisfy.
        end_token_ids: tuple of ints, each of which ends a row; empty for rows of full length.
        padding_id: int, which is never chosen unless it ends rows, and stands after the end; None
            where every id is a token: 0 then stands after the end.
        with_scores: bool, whether the log-probabilities of the tokens are kept.
    """

    sampler: samplers.Sampler
    penalties: tuple = ()
    constraints: tuple = ()
    end_token_ids: tuple = ()
    padding_id: int | None = 0
    with_scores: bool = False

    def check_ids(self, vocabulary_size):
        """Refuses END and padding ids that a model does not have."""
        given = {"end_token_id": self.end_token_ids, "padding_id": (self.filler_id,)}
        for name, ids in given.items():
            if outside := [i for i in ids if i >= vocabulary_size]:
                raise ValueError(
                    f"{name}={outside[0]} is outside the model's vocabulary of {vocabulary_size} "
                    f"ids, 0 to {vocabulary_size - 1}."
                )

    def without_seed(self):
        """This config without its seed, on which compiled code does not depend."""
        if self.sampler.seed is None:
            return self
        return dataclasses.replace(self, sampler=dataclasses.replace(self.sampler, seed=None))

    def penalize(self, logits, history):
        """The logits (B, V), in float32, after the penalties."""
        logits = ops.cast(logits, "float32")
        for penalty in self.penalties:
            logits = penalty(logits, history)
        return logits

    def allowed(self, history):
        """Which tokens may come next, bool (B or 1, V); None where all may."""
        constraints = self.constraints
        if self.padding_id is not None and self.padding_id not in self.end_token_ids:
            constraints = (Forbidden((self.padding_id,)), *constraints)
        allowed = None
        for constraint in constraints:
            allows = constraint.allows(history)
            allowed = allows if allowed is None else ops.logical_and(allowed, allows)
        return allowed

    def is_end(self, tokens):
        """Which tokens end their row, bool in their shape."""
        ends = ops.zeros_like(tokens, dtype="bool")
        for i in self.end_token_ids:
            ends = ops.logical_or(ends, tokens == i)
        return ends

    @property
    def filler_id(self):
        """The id that the model reads, and the user gets, where there is no token."""
        return self.padding_id or 0

    def fill(self, tokens):
        """Tokens for the model and the user: `filler_id` in place of -1."""
        return ops.where(tokens < 0, self.filler_id, tokens)


def make_config(
    sampler,
    *,
    end_token_id=None,
    padding_id=0,
    min_new_tokens=0,
    repetition_penalty=None,
    no_repeat_ngram_size=None,
    allowed_ids=None,
    penalties=(),
    constraints=(),
    with_scores=False,
):
    """The `GenerationConfig` of these arguments of `generate`."""
    sampler, penalties = samplers.get(sampler), _get_penalties(penalties)
    constraints = _get_constraints(constraints)
    ends = () if end_token_id is None else whole_ids("end_token_id", end_token_id)
    if repetition_penalty is not None:
        penalties.insert(0, Repetition(repetition_penalty))
    if min_new_tokens:
        constraints.append(MinimumLength(min_new_tokens, ends))
    if no_repeat_ngram_size is not None:
        constraints.append(NoRepeatNGrams(no_repeat_ngram_size))
    if allowed_ids is not None:
        constraints.append(Allowed(allowed_ids))
    if padding_id is not None:
        padding_id = checks.check_whole_number("generate", "padding_id", padding_id, least=0)
    parts = sampler, tuple(penalties), tuple(constraints)
    return GenerationConfig(*parts, ends, padding_id, with_scores)


def choose_padding_id(decoder, padding_id):
    """`padding_id` as given, or that of the decoder's embedding for `"model"`."""
    return getattr(decoder, "padding_id", 0) if padding_id == "model" else padding_id


def _get_penalties(identifiers):
    return [penalties.get(identifier) for identifier in _as_list(identifiers)]


def _get_constraints(identifiers):
    return [constraints.get(identifier) for identifier in _as_list(identifiers)]


def _as_list(parts):
    return parts if isinstance(parts, list | tuple) else [parts]


def forbid_tokens(logits, allowed):
    """Logits (B, V) with `IMPOSSIBLE` where not `allowed` (None: all are)."""
    return logits if allowed is None else ops.where(allowed, logits, IMPOSSIBLE)


def nothing_allowed(allowed):
    """Rows that may go on with no token, bool (B,) or (1,)."""
    if allowed is None:
        return ops.zeros((1,), dtype="bool")
    return ops.logical_not(ops.any(allowed, axis=-1))
