"""How a token is chosen: the model's logits, penalties, constraints, then the sampler."""

import dataclasses

from keras import ops

from keras_attention import checks
from keras_attention.generation import constraints as constraint_parts
from keras_attention.generation import penalties as penalty_parts
from keras_attention.generation import samplers
from keras_attention.generation.samplers.base import IMPOSSIBLE


@dataclasses.dataclass(frozen=True)
class Rules:
    """What decides over the next token, beside the model. Data: equal rules share compiled code.

    Args:
        sampler: `Sampler`.
        penalties: tuple of `Penalty`, in the order in which they change the logits.
        constraints: tuple of `Constraint`, all of which a token has to satisfy.
        end_ids: tuple of ints; none of them ends a row before the last place.
        padding_id: int, which is never chosen unless it ends rows, and stands after the end; None
            where every id is a token: 0 then stands after the end.
        with_scores: bool, whether the log-probabilities of the tokens are kept.
    """

    sampler: samplers.Sampler
    penalties: tuple = ()
    constraints: tuple = ()
    end_ids: tuple = ()
    padding_id: int | None = 0
    with_scores: bool = False

    def check_ids(self, vocabulary_size):
        """Refuses END and padding ids that a model does not have."""
        for name, ids in {"end_id": self.end_ids, "padding_id": (self.blank,)}.items():
            if outside := [i for i in ids if i >= vocabulary_size]:
                raise ValueError(
                    f"{name}={outside[0]} is outside the model's vocabulary of {vocabulary_size} "
                    f"ids, 0 to {vocabulary_size - 1}."
                )

    def unseeded(self):
        """These rules without a seed, which makes no other code."""
        if self.sampler.seed is None:
            return self
        return dataclasses.replace(self, sampler=dataclasses.replace(self.sampler, seed=None))

    def penalize(self, logits, written):
        """The logits (B, V), in float32, as the penalties leave them."""
        logits = ops.cast(logits, "float32")
        for penalty in self.penalties:
            logits = penalty(logits, written)
        return logits

    def allowed(self, written):
        """Which tokens may come next, bool (B or 1, V); None where all may."""
        constraints = self.constraints
        if self.padding_id is not None and self.padding_id not in self.end_ids:
            constraints = (constraint_parts.Forbidden((self.padding_id,)), *constraints)
        allowed = None
        for constraint in constraints:
            allows = constraint.allows(written)
            allowed = allows if allowed is None else ops.logical_and(allowed, allows)
        return allowed

    def is_end(self, tokens):
        """Which tokens end their row, bool in their shape."""
        ends = ops.zeros_like(tokens, dtype="bool")
        for i in self.end_ids:
            ends = ops.logical_or(ends, tokens == i)
        return ends

    @property
    def blank(self):
        """What the model reads, and the user gets, where there is no token."""
        return self.padding_id or 0

    def shown(self, tokens):
        """Tokens as the model and the user see them: `blank` for -1."""
        return ops.where(tokens < 0, self.blank, tokens)


def rules_of(
    sampler,
    *,
    end_id=None,
    padding_id=0,
    min_new_tokens=0,
    repetition_penalty=None,
    no_repeat_ngram_size=None,
    allowed_ids=None,
    penalties=(),
    constraints=(),
    with_scores=False,
):
    """The `Rules` that these arguments of `generate` say."""
    penalties = [penalty_parts.get(penalty) for penalty in _several(penalties)]
    constraints = [constraint_parts.get(constraint) for constraint in _several(constraints)]
    ends = () if end_id is None else constraint_parts.whole_ids("end_id", end_id)
    if repetition_penalty is not None:
        penalties.insert(0, penalty_parts.Repetition(repetition_penalty))
    if min_new_tokens:
        constraints.append(constraint_parts.MinimumLength(min_new_tokens, ends))
    if no_repeat_ngram_size is not None:
        constraints.append(constraint_parts.NoRepeatNGrams(no_repeat_ngram_size))
    if allowed_ids is not None:
        constraints.append(constraint_parts.Allowed(allowed_ids))
    if padding_id is not None:
        padding_id = checks.whole_number("generate", "padding_id", padding_id, least=0)
    sampler = samplers.get(sampler)
    return Rules(sampler, tuple(penalties), tuple(constraints), ends, padding_id, with_scores)


def _several(parts):
    return parts if isinstance(parts, list | tuple) else [parts]


def forbid(logits, allowed):
    """Logits (B, V) with `IMPOSSIBLE` where not `allowed` (None: all are)."""
    return logits if allowed is None else ops.where(allowed, logits, IMPOSSIBLE)


def stuck(allowed):
    """Rows to which nothing is allowed, bool (B,) or (1,)."""
    if allowed is None:
        return ops.zeros((1,), dtype="bool")
    return ops.logical_not(ops.any(allowed, axis=-1))
