"""Speculative decoding: a small model proposes, the model itself checks several tokens at once.

(Leviathan et al., 2023, *Fast inference from Transformers via speculative decoding*.) A proposed
token is accepted with probability min(1, p / q), where q is the draft's probability of it and p the
model's; one that is refused is replaced by a draw from max(0, p - q), normalized. The tokens that
are kept have the distribution p, whatever the draft is.

The rows of a batch go on together: where one refuses a token all wait for it, and tokens that
others had accepted after it are proposed anew. Where all stop does not depend on later tokens, and
every token has random numbers of its own, so that this changes no distribution.
"""

from keras import ops

from keras_attention.generation import loop
from keras_attention.generation.compiled import get_compiled
from keras_attention.generation.config import forbid_tokens, nothing_allowed
from keras_attention.generation.samplers import TokenSampler, draw
from keras_attention.generation.token_history import TokenHistory

DRAFT, ACCEPT, AGAIN = 0, 1, 2  # uses of the three random numbers of a token


def generate_with_draft(inputs):
    """Runs `generate_tokens` for inputs with a draft."""
    check_draft(inputs)
    decoder, draft, config = inputs.decoder, inputs.draft, inputs.config
    ahead = inputs.num_draft_tokens
    function = get_compiled(
        (decoder, draft),
        (generate_tokens, config, ahead),
        lambda tensors: generate_tokens(decoder, draft, config, ahead, tensors),
        inputs.specs,
    )
    return function(inputs.tensors)


def check_draft(inputs):
    """Refuses caches whose tokens cannot be taken back, and drafts that do not fit the model."""
    if not isinstance(inputs.config.sampler, TokenSampler):
        raise ValueError(
            f"sampler={inputs.config.sampler} does not choose one token after the other, which a "
            "draft model could propose: use Greedy() or Sample()."
        )
    model, draft = inputs.decoder, inputs.draft
    if (model.vocabulary_size, model.has_source) != (draft.vocabulary_size, draft.has_source):
        raise ValueError(
            f"The draft model has {_describe(draft)}, and the model {_describe(model)}: the "
            "tokens of one must be those of the other."
        )
    for cache, decoder in {"cache": model, "draft_cache": draft}.items():
        rolling = {name for name, x in inputs.specs[cache].items() if None not in x.shape[1:]}
        if lost := sorted(decoder.state_names | rolling):
            raise ValueError(
                f"{lost[0]}, in the {cache.replace('_', ' ')}, is a state or a window that rolls "
                "on, from which refused tokens cannot be taken back: with a draft model, both "
                "models need attention that keeps every token."
            )


def _describe(decoder):
    return f"{decoder.vocabulary_size} ids and {'an' if decoder.has_source else 'no'} encoder"


def generate_tokens(decoder, draft, config, ahead, inputs):
    """Like `loop.generate_tokens`, with a draft.

    Args:
        draft: a `Decoder`.
        ahead: int K, how many tokens it proposes.
        inputs: as there, with `draft_cache`, and with `uniform` float32 (limit, 3, B), in which
            K rows are spare.

    Returns:
        dict: as there, and `rounds`, int32 scalar, how often the model itself ran to write.
    """
    state = begin_state(decoder, draft, config, inputs)
    state = ops.while_loop(
        loop.is_running, lambda state: advance_state(decoder, draft, config, ahead, state), state
    )
    width = ops.shape(inputs["prompt"])[1]
    return loop.collect_results(config, state, width) | {"rounds": state["rounds"]}


def begin_state(decoder, draft, config, inputs):
    """Return the state after the prompt and the first new token, chosen without a draft."""
    first = dict(inputs, uniform=inputs["uniform"][:, AGAIN])
    state = loop.begin_state(decoder, config, first)
    own = {name: x for name, x in inputs.items() if name != "cache"}
    cache = loop.make_first_cache(draft, own | {"cache": inputs["draft_cache"]})
    _, cache = loop.step_decoder(draft, inputs["prompt"], cache, 0)
    state = dict(state, uniform=inputs["uniform"], draft_cache=cache)
    return dict(state, rounds=ops.zeros((), dtype="int32"))


def advance_state(decoder, draft, config, ahead, state):
    """Return the state after the tokens that all rows have accepted, and one more."""
    count = state["count"]
    tokens, shares, draft_cache, failed = _propose(draft, config, ahead, state)
    indices = ops.arange(ahead + 1, dtype="int32") + (count - 1)
    checked = config.fill(ops.take(tokens, indices, axis=1))
    logits, cache = loop.step_decoder(decoder, checked, state["cache"], count - 1)
    state = dict(state, cache=cache, draft_cache=draft_cache, rounds=state["rounds"] + 1)
    state["failed"] = failed
    state["done"] = ops.logical_or(state["done"], failed > 0)
    going = ops.ones((), dtype="bool")
    for k in range(ahead):
        proposal = ops.reshape(loop.take_column(tokens, count + k), (-1,)), shares[k]
        state, going = _settle(config, state, going, logits[:, k], proposal)
    return _settle(config, state, going, logits[:, ahead], None)[0]


def _propose(draft, config, ahead, state):
    """Tokens (B, L) with K more, the K probabilities (B, V) they were drawn from, the new cache,
    and which rows have failed."""
    tokens, count, cache = state["tokens"], state["count"], state["draft_cache"]
    failed = state["failed"]
    # The draft has not read the last token, nor the one before where all of its own were accepted.
    indices = ops.arange(2, dtype="int32") + (count - 2)
    new, index, shares = config.fill(ops.take(tokens, indices, axis=1)), count - 2, []
    for k in range(ahead):
        logits, cache = loop.step_decoder(draft, new, cache, index)
        history = _history(state, tokens, count + k, logits)
        share, penalized, _ = _distribution(config, logits[:, -1], history)
        number = count + k - state["begin"] + 1
        failed = loop.note_failures(failed, penalized, number, state["done"])
        token = draw(share, _uniform(state, count + k)[DRAFT])
        tokens = loop.write_column(tokens, count + k, token)
        new, index = ops.expand_dims(token, axis=1), count + k
        shares.append(share)
    return tokens, shares, cache, failed


def _settle(config, state, going, logits, proposal):
    """Return the state with the next token, and whether all rows go on; as it was if not `going`.

    Args:
        logits: the model's, (B, V).
        proposal: tokens (B,) and the probabilities (B, V) they were drawn from; None where there is
            none, and the model chooses.
    """
    index, done = state["count"], state["done"]
    history = _history(state, state["tokens"], index, logits)
    share, logits, allowed = _distribution(config, logits, history)
    uniform = _uniform(state, index)
    if proposal is None:
        token, accepted = draw(share, uniform[AGAIN]), ops.zeros_like(done)
    else:
        token, accepted = _accept(share, *proposal, uniform)
    over = ops.logical_or(done, nothing_allowed(allowed))
    failed = loop.note_failures(state["failed"], logits, index - state["begin"] + 1, over)
    over = ops.logical_or(over, failed > 0)
    after = {"tokens": loop.write_column(state["tokens"], index, ops.where(over, -1, token))}
    after["failed"] = failed
    after["done"] = ops.logical_or(over, config.is_end(token))
    if config.with_scores:
        score = ops.where(over, 0.0, loop.log_probability(logits, token))
        after["scores"] = loop.write_column(state["scores"], index, score)
    state = state | {name: ops.where(going, x, state[name]) for name, x in after.items()}
    state["count"] = index + ops.cast(going, "int32")
    satisfied = ops.all(ops.logical_or(accepted, state["done"]))
    return state, ops.logical_and(going, satisfied)


def _accept(share, token, proposed, uniform):
    """The proposed tokens, or others where they are refused; and where they are not, bool (B,)."""
    column = ops.expand_dims(token, axis=1)
    p, q = (ops.reshape(loop.gather_rows(x, column), (-1,)) for x in (share, proposed))
    accepted = uniform[ACCEPT] * q < p
    again = draw(ops.maximum(share - proposed, 0.0), uniform[AGAIN])
    return ops.where(accepted, token, again), accepted


def _distribution(config, logits, history):
    """Probabilities (B, V) of the next token; the logits behind them; which tokens are allowed."""
    logits, allowed = config.penalize(logits, history), config.allowed(history)
    return config.sampler.probabilities(forbid_tokens(logits, allowed)), logits, allowed


def _history(state, tokens, count, logits):
    return TokenHistory(tokens, count, state["begin"], logits.shape[-1])


def _uniform(state, index):
    """Return the random numbers of the token at an index, (3, B)."""
    return ops.take(state["uniform"], index - state["begin"], axis=0)
