"""Speculative decoding: a small draft model proposes tokens, and the model checks several at once.

The method is from Leviathan et al. (2023). Let q be the probability of a proposed token in the
draft model, and p its probability in the model. The token is accepted with probability
min(1, p / q). A rejected token is replaced by a sample from max(0, p - q), normalized. Tokens
generated this way have the distribution p, whatever the draft model is.

All rows of a batch advance by the same number of tokens. If one row rejects a token, the other rows
drop their tokens after this position, and the draft model proposes new ones. This does not change
the distribution: whether rows stop at a position does not depend on later tokens, and every token
has its own random numbers. In all functions, `config` is a `GenerationConfig`, and `state` a dict
of tensors of constant shapes that is passed from step to step.
"""

import keras
from keras import ops

from keras_attention.generation import loop
from keras_attention.generation.compiled import get_compiled
from keras_attention.generation.config import forbid_tokens, nothing_allowed
from keras_attention.generation.samplers import TokenSampler, draw

DRAFT, ACCEPT, AGAIN = 0, 1, 2  # the three random numbers of a token


def generate_with_draft(inputs):
    """Check the draft model, run `generate_tokens` compiled, and return its result.

    `inputs` is a `GenerationInputs`, the checked arguments of `generate`, with the draft model.
    """
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
    """Raise an error if the draft model does not fit the model.

    Both need the same vocabulary, and caches that can remove rejected tokens, which the state of a
    recurrent layer cannot. `inputs` is the `GenerationInputs`, with both models.
    """
    if not isinstance(inputs.config.sampler, TokenSampler):
        raise ValueError(
            f"sampler={inputs.config.sampler} does not choose one token at a time. A draft model "
            "needs Greedy() or Sample(). Use such a sampler, or no draft model."
        )
    model, draft = inputs.decoder, inputs.draft
    if (model.vocabulary_size, model.has_source) != (draft.vocabulary_size, draft.has_source):
        raise ValueError(
            f"The draft model has {_describe(draft)}, and the model {_describe(model)}. Both must "
            "have the same vocabulary and the same kind of input. Use another draft model."
        )
    for cache, decoder in {"cache": model, "draft_cache": draft}.items():
        rolling = {name for name, x in inputs.specs[cache].items() if None not in x.shape[1:]}
        if lost := sorted(decoder.state_names | rolling):
            raise ValueError(
                f"{lost[0]} in the {cache.replace('_', ' ')} is a state or a window, so rejected "
                "tokens cannot be removed from it. With a draft model both models need attention "
                "that keeps every token. Leave the draft out, or use such models."
            )


def _describe(decoder):
    return f"{decoder.vocabulary_size} ids and {'an' if decoder.has_source else 'no'} encoder"


def generate_tokens(decoder, draft, config, ahead, inputs):
    """Generate tokens as `loop.generate_tokens` does, but with proposals of a draft model.

    Args:
        decoder: the `Decoder` of the model.
        config: a `GenerationConfig` with a `TokenSampler`.
        draft: the `Decoder` of the draft model.
        ahead: int K, number of tokens that the draft model proposes at a time.
        inputs: dict of tensors with the prompt, explained in `loop.generate_tokens`, and
            `draft_cache`, the cache of the draft model. `uniform` is float32 (limit, 3, B), and
            `limit` includes K extra tokens.

    Returns:
        The dict of `loop.generate_tokens`, and `rounds`, an int32 scalar, how often the model ran
        after the first token.
    """
    state = begin_state(decoder, draft, config, inputs)
    state = ops.while_loop(
        loop.is_running, lambda state: advance_state(decoder, draft, config, ahead, state), state
    )
    width = ops.shape(inputs["prompt"])[1]
    return loop.collect_results(config, state, width) | {"rounds": state["rounds"]}


def begin_state(decoder, draft, config, inputs):
    """Run both models on the prompt, and return the state with the first new token.

    `generate_tokens` explains the arguments. The state is a dict of tensors, such as the tokens so
    far and both caches.
    """
    first = dict(inputs, uniform=inputs["uniform"][:, AGAIN])
    state = loop.begin_state(decoder, config, first)
    own = {name: x for name, x in inputs.items() if name != "cache"}
    cache = loop.make_first_cache(draft, own | {"cache": inputs["draft_cache"]})
    _, cache = loop.step_decoder(draft, inputs["prompt"], cache, 0)
    state = dict(state, uniform=inputs["uniform"], draft_cache=cache)
    return dict(state, rounds=ops.zeros((), dtype="int32"))


def advance_state(decoder, draft, config, ahead, state):
    """Return the state after the draft model proposed K tokens, and the model checked them.

    The new state has the tokens that every row accepted, and one more token. `ahead` is K, an int,
    and `state` is from `begin_state`. `generate_tokens` explains the other arguments.
    """
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
    """Run the draft model for K = `ahead` tokens.

    `config` is a `GenerationConfig`, and `state` is from `begin_state`.

    Returns:
        The tokens (B, L) with the proposals added, a list of the K distributions (B, V) from which
        they were sampled, the new draft cache, and `failed` int32 (B,), the number of the new token
        at which each row failed, or 0.
    """
    tokens, count, cache = state["tokens"], state["count"], state["draft_cache"]
    failed, states = state["failed"], state["constraint_states"]
    # The draft has not read the last token, nor the one before if all proposals were accepted.
    indices = ops.arange(2, dtype="int32") + (count - 2)
    new, index, shares = config.fill(ops.take(tokens, indices, axis=1)), count - 2, []
    for k in range(ahead):
        logits, cache = loop.step_decoder(draft, new, cache, index)
        history = _history(state, tokens, count + k, logits)
        share, penalized, _ = _distribution(config, logits[:, -1], history, states)
        number = count + k - state["begin"] + 1
        failed = loop.note_failures(failed, penalized, number, state["done"])
        token = draw(share, _uniform(state, count + k)[DRAFT])
        tokens = loop.write_column(tokens, count + k, token)
        states = config.advance_states(states, token)
        new, index = ops.expand_dims(token, axis=1), count + k
        shares.append(share)
    return tokens, shares, cache, failed


def _settle(config, state, going, logits, proposal):
    """Accept or replace the proposed next token of every row.

    Args:
        config: a `GenerationConfig`.
        state: dict of tensors.
        going: bool scalar. If False, the state does not change.
        logits: (B, V), the logits of the model.
        proposal: the proposed tokens (B,), and the distribution (B, V) from which they were
            sampled. None if the model chooses without a proposal.

    Returns:
        The new state, and the new `going`: whether every row accepted its proposal.
    """
    index, done = state["count"], state["done"]
    history = _history(state, state["tokens"], index, logits)
    states = state["constraint_states"]
    share, logits, allowed = _distribution(config, logits, history, states)
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
    after["constraint_states"] = config.advance_states(states, token)
    if config.with_scores:
        score = ops.where(over, 0.0, loop.log_probability(logits, token))
        after["scores"] = loop.write_column(state["scores"], index, score)
    before = {name: state[name] for name in after}
    after = keras.tree.map_structure(lambda new, old: ops.where(going, new, old), after, before)
    state = state | after
    state["count"] = index + ops.cast(going, "int32")
    satisfied = ops.all(ops.logical_or(accepted, state["done"]))
    return state, ops.logical_and(going, satisfied)


def _accept(share, token, proposed, uniform):
    """Return the proposed tokens (B,), replaced if rejected, and which were accepted (B,).

    `share` and `proposed` (B, V) are the distributions of the model and of the draft model, `token`
    (B,) the proposed tokens, and `uniform` random numbers in [0, 1).
    """
    column = ops.expand_dims(token, axis=1)
    p, q = (ops.reshape(loop.gather_rows(x, column), (-1,)) for x in (share, proposed))
    accepted = uniform[ACCEPT] * q < p
    again = draw(ops.maximum(share - proposed, 0.0), uniform[AGAIN])
    return ops.where(accepted, token, again), accepted


def _distribution(config, logits, history, states):
    """Return the probabilities of the next token, its logits after penalties, and allowed ids.

    All are (B, V). The allowed ids are None if no id is forbidden. `config` is a
    `GenerationConfig`, `history` a `TokenHistory`, the tokens so far, and `states` are the states
    of the constraints.
    """
    logits, allowed = config.penalize(logits, history), config.allowed(history, states)
    return config.sampler.probabilities(forbid_tokens(logits, allowed)), logits, allowed


def _history(state, tokens, count, logits):
    return loop.make_history(dict(state, tokens=tokens, count=count), logits.shape[-1])


def _uniform(state, index):
    """Return the random numbers (3, B) for the token at `index`."""
    return ops.take(state["uniform"], index - state["begin"], axis=0)
