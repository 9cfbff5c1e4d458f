"""`GenerationConfig`: how tokens are chosen from logits, by penalties, constraints, a sampler."""

import dataclasses

from keras import ops

from keras_attention.core import checks
from keras_attention.core.padding import Padding
from keras_attention.generation import constraints as constraint_parts
from keras_attention.generation import penalties as penalty_parts
from keras_attention.generation import samplers
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
        padding: `Padding`, whose id is never chosen unless it ends rows, and stands after the end.
        with_scores: bool, whether the log-probabilities of the tokens are kept.
    """

    sampler: samplers.Sampler
    penalties: tuple = ()
    constraints: tuple = ()
    end_token_ids: tuple = ()
    padding: Padding = Padding()
    with_scores: bool = False

    def check_ids(self, vocabulary_size):
        """Refuses END and padding ids that a model does not have."""
        given = {"end_token_id": self.end_token_ids, "padding_id": (self.padding.filler,)}
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
        """Return the logits (B, V), in float32, after the penalties."""
        logits = ops.cast(logits, "float32")
        for penalty in self.penalties:
            logits = penalty(logits, history)
        return logits

    def allowed(self, history):
        """Return which tokens may come next, bool (B or 1, V); None where all may."""
        constraints, padding = self.constraints, self.padding.id
        if padding is not None and padding not in self.end_token_ids:
            constraints = (Forbidden((padding,)), *constraints)
        allowed = None
        for constraint in constraints:
            allows = constraint.allows(history)
            allowed = allows if allowed is None else ops.logical_and(allowed, allows)
        return allowed

    def is_end(self, tokens):
        """Return which tokens end their row, bool in their shape."""
        ends = ops.zeros_like(tokens, dtype="bool")
        for i in self.end_token_ids:
            ends = ops.logical_or(ends, tokens == i)
        return ends

    def fill(self, tokens):
        """Tokens for the model and the user: padding in place of -1."""
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
    """Return the `GenerationConfig` of a `Padding` and these arguments of `generate`."""
    penalty_list = [penalty_parts.get(one) for one in _as_list(penalties)]
    constraint_list = [constraint_parts.get(one) for one in _as_list(constraints)]
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
    """Return the `Padding` that is never chosen: the decoder's for `"model"`, else as given."""
    if padding_id == "model":
        return decoder.padding
    return Padding(checks.check_padding_id("generate", padding_id))


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
