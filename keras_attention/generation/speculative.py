"""Speculative decoding: a small model proposes, the model itself checks several tokens at once.

(Leviathan et al., 2023, *Fast inference from Transformers via speculative decoding*.) A proposed
token is accepted with probability min(1, p / q), where q is the draft's probability of it and p the
model's; one that is refused is replaced by a draw from max(0, p - q), normalized. What is kept then
has the distribution p, whatever the draft is.

The rows of a batch go on together: where one refuses a token all wait for it, and what others had
accepted after that place is proposed anew. Where all stop depends on nothing that comes later, and
every place has random numbers of its own, so that this changes no distribution.
"""

from keras import ops

from keras_attention.generation import loop
from keras_attention.generation.compiled import compiled
from keras_attention.generation.rules import forbid, stuck
from keras_attention.generation.samplers import TokenSampler, draw
from keras_attention.generation.written import Written

DRAFT, ACCEPT, AGAIN = 0, 1, 2  # what the random numbers of a place are for


def run(request):
    """What `write` gives for a request with a draft."""
    check(request)
    decoder, draft, rules = request.decoder, request.draft, request.rules
    ahead = request.num_draft_tokens
    function = compiled(
        (decoder, draft),
        (write, rules, ahead),
        lambda inputs: write(decoder, draft, rules, ahead, inputs),
        request.specs,
    )
    return function(request.inputs)


def check(request):
    """Refuses what cannot be taken back, and drafts that do not fit the model."""
    if not isinstance(request.rules.sampler, TokenSampler):
        raise ValueError(
            f"sampler={request.rules.sampler} does not choose one token after the other, which a "
            "draft model could propose: use Greedy() or Sample()."
        )
    model, draft = request.decoder, request.draft
    if (model.vocabulary_size, model.has_source) != (draft.vocabulary_size, draft.has_source):
        raise ValueError(
            f"The draft model has {_described(draft)}, and the model {_described(model)}: the "
            "tokens of one must be those of the other."
        )
    for cache, decoder in {"cache": model, "draft_cache": draft}.items():
        rolling = {name for name, x in request.specs[cache].items() if None not in x.shape[1:]}
        if lost := sorted(decoder.state_names | rolling):
            raise ValueError(
                f"{lost[0]}, in the {cache.replace('_', ' ')}, is a state or a window that rolls "
                "on, from which refused tokens cannot be taken back: with a draft model, both "
                "models need attention that keeps every token."
            )


def _described(decoder):
    return f"{decoder.vocabulary_size} ids and {'an' if decoder.has_source else 'no'} encoder"


def write(decoder, draft, rules, ahead, inputs):
    """As `loop.write`, with a draft.

    Args:
        draft: a `Decoder`.
        ahead: int K, how many tokens it proposes.
        inputs: as there, but `uniform` float32 (limit, 3, B), of which K places are spare, and with
            `draft_cache`.

    Returns:
        dict: as there, and `rounds`, int32 scalar, how often the model itself ran to write.
    """
    state = begin(decoder, draft, rules, inputs)
    state = ops.while_loop(
        loop.running, lambda state: advance(decoder, draft, rules, ahead, state), state
    )
    width = ops.shape(inputs["prompt"])[1]
    return loop.results(rules, state, width) | {"rounds": state["rounds"]}


def begin(decoder, draft, rules, inputs):
    """The state after the prompt and the first new token, which the model chooses alone."""
    first = dict(inputs, uniform=inputs["uniform"][:, AGAIN])
    state = loop.begin(decoder, rules, first)
    own = {name: x for name, x in inputs.items() if name != "cache"}
    cache = loop.first_cache(draft, own | {"cache": inputs["draft_cache"]})
    _, cache = loop.step(draft, inputs["prompt"], cache, 0)
    state = dict(state, uniform=inputs["uniform"], draft_cache=cache)
    return dict(state, rounds=ops.zeros((), dtype="int32"))


def advance(decoder, draft, rules, ahead, state):
    """The state after the tokens that all rows have accepted, and one more."""
    count = state["count"]
    tokens, shares, draft_cache = _propose(draft, rules, ahead, state)
    places = ops.arange(ahead + 1, dtype="int32") + (count - 1)
    checked = rules.shown(ops.take(tokens, places, axis=1))
    logits, cache = loop.step(decoder, checked, state["cache"], count - 1)
    state = dict(state, cache=cache, draft_cache=draft_cache, rounds=state["rounds"] + 1)
    going = ops.ones((), dtype="bool")
    for k in range(ahead):
        proposal = ops.reshape(loop.column(tokens, count + k), (-1,)), shares[k]
        state, going = _settle(rules, state, going, logits[:, k], proposal)
    return _settle(rules, state, going, logits[:, ahead], None)[0]


def _propose(draft, rules, ahead, state):
    """Tokens (B, L) with K more, the K probabilities (B, V) they were drawn from, the new cache."""
    tokens, count, cache = state["tokens"], state["count"], state["draft_cache"]
    # The draft has not read the last token, nor the one before where all of its own were accepted.
    places = ops.arange(2, dtype="int32") + (count - 2)
    new, index, shares = rules.shown(ops.take(tokens, places, axis=1)), count - 2, []
    for k in range(ahead):
        logits, cache = loop.step(draft, new, cache, index)
        written = _written(state, tokens, count + k, logits)
        share, _, _ = _distribution(rules, logits[:, -1], written)
        token = draw(share, _uniform(state, count + k)[DRAFT])
        tokens = loop.put(tokens, count + k, token)
        new, index = ops.expand_dims(token, axis=1), count + k
        shares.append(share)
    return tokens, shares, cache


def _settle(rules, state, going, logits, proposal):
    """The state with the next token, and whether all rows go on; as it was if not `going`.

    Args:
        logits: the model's, (B, V).
        proposal: tokens (B,) and the probabilities (B, V) they were drawn from; None where there is
            none, and the model chooses.
    """
    place, done = state["count"], state["done"]
    written = _written(state, state["tokens"], place, logits)
    share, logits, allowed = _distribution(rules, logits, written)
    uniform = _uniform(state, place)
    if proposal is None:
        token, accepted = draw(share, uniform[AGAIN]), ops.zeros_like(done)
    else:
        token, accepted = _accept(share, *proposal, uniform)
    over = ops.logical_or(done, stuck(allowed))
    after = {"tokens": loop.put(state["tokens"], place, ops.where(over, -1, token))}
    after["done"] = ops.logical_or(over, rules.is_end(token))
    if rules.with_scores:
        score = ops.where(over, 0.0, loop.log_probability(logits, token))
        after["scores"] = loop.put(state["scores"], place, score)
    state = state | {name: ops.where(going, x, state[name]) for name, x in after.items()}
    state["count"] = place + ops.cast(going, "int32")
    satisfied = ops.all(ops.logical_or(accepted, state["done"]))
    return state, ops.logical_and(going, satisfied)


def _accept(share, token, proposed, uniform):
    """The proposed tokens, or others where they are refused; and where they are not, bool (B,)."""
    column = ops.expand_dims(token, axis=1)
    p, q = (ops.reshape(loop.pick(x, column), (-1,)) for x in (share, proposed))
    accepted = uniform[ACCEPT] * q < p
    again = draw(ops.maximum(share - proposed, 0.0), uniform[AGAIN])
    return ops.where(accepted, token, again), accepted


def _distribution(rules, logits, written):
    """What the next token is drawn from, (B, V); the logits behind it; what is allowed."""
    logits, allowed = rules.penalize(logits, written), rules.allowed(written)
    return rules.sampler.probabilities(forbid(logits, allowed)), logits, allowed


def _written(state, tokens, count, logits):
    return Written(tokens, count, state["begin"], logits.shape[-1])


def _uniform(state, place):
    """The random numbers of a place, (3, B)."""
    return ops.take(state["uniform"], place - state["begin"], axis=0)
