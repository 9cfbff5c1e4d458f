"""Beam search with a decoder, as functions of tensors. The class `Beam` explains the algorithm.

A beam is a sequence that the search continues. There are W beams for each of B rows. The functions
pass a state from step to step, a dict of tensors of constant shapes. In all functions, `decoder` is
a `Decoder`, `config` a `GenerationConfig`, and `inputs` the dict that `search_beams` explains.
"""

from keras import ops

from keras_attention.generation.compiled import map_leaves
from keras_attention.generation.config import nothing_allowed
from keras_attention.generation.loop import (
    extend_prompt,
    gather_rows,
    make_first_cache,
    make_history,
    note_failures,
    step_decoder,
    take_column,
    write_column,
)
from keras_attention.generation.samplers.base import IMPOSSIBLE


def search_beams(decoder, config, inputs):
    """Find the R best sequences of new tokens for each prompt by beam search.

    R is `num_return_sequences` of the `Beam`, and `limit` the maximum number of new tokens.

    Args:
        decoder: a `Decoder`.
        config: a `GenerationConfig` whose sampler is a `Beam`.
        inputs: dict of tensors with the prompt, explained in `loop.generate_tokens`. Only the shape
            of `inputs["uniform"]` is used.

    Returns:
        A dict: `ids` int32 (B, R, limit), the best sequence first. `totals` float32 (B, R), the
        values that rank the sequences. `scores` float32 (B, R, limit), the log-probabilities of the
        tokens. `failed` int32 (B,): if logits for the k-th new token of a row were not finite, it
        is k, else 0.
    """
    width = ops.shape(inputs["prompt"])[1]
    state = ops.while_loop(
        make_condition(config),
        lambda state: advance_state(decoder, config, state),
        begin_state(decoder, config, inputs),
    )
    return collect_results(config, state, width)


def begin_state(decoder, config, inputs):
    """Return the state after the model read the prompt and each beam got its first token.

    `search_beams` explains `decoder`, `config` and `inputs`. The state is a dict of tensors, such
    as the tokens and the total score of each beam.
    """
    prompt, wide = inputs["prompt"], config.sampler.width
    batch, width = ops.shape(prompt)
    limit = ops.shape(inputs["uniform"])[0]
    logits, cache = step_decoder(decoder, prompt, make_first_cache(decoder, inputs), 0)
    rows = ops.repeat(ops.arange(batch, dtype="int32"), wide)
    tokens = ops.take(extend_prompt(prompt, inputs.get("start"), limit), rows, axis=0)
    shape = (batch, config.sampler.num_return_sequences, ops.shape(tokens)[1])
    # All beams of a row are equal before the first token, so only one of them is continued.
    totals = ops.cast(ops.arange(wide) > 0, "float32") * IMPOSSIBLE
    count = ops.convert_to_tensor(width, dtype="int32")
    state = {
        "tokens": tokens,
        "scores": ops.zeros(ops.shape(tokens), dtype="float32"),
        "totals": ops.broadcast_to(ops.expand_dims(totals, axis=0), (batch, wide)),
        "failed": ops.zeros((batch,), dtype="int32"),
        "count": count,
        "begin": count,
        "end": count + ops.cast(inputs["number"], "int32"),
        "constraint_states": config.begin_states(batch * wide),
        "ended_tokens": -ops.ones(shape, dtype="int32"),
        "ended_scores": ops.zeros(shape, dtype="float32"),
        "ended_totals": ops.full(shape[:2], IMPOSSIBLE, dtype="float32"),
    }
    logits = ops.take(logits[:, -1], rows, axis=0)
    return extend_beams(decoder, config, state, logits, decoder.reorder(cache, rows))


def make_condition(config):
    """Return a function of the state, which returns whether any row can find a better result.

    `config` is a `GenerationConfig` whose sampler is a `Beam`.
    """

    def condition(state):
        room = state["end"] - state["begin"]
        best = rank_totals(config.sampler, ops.max(state["totals"], axis=1), room)
        # More tokens only lower a total. The maximum length has the largest divisor.
        better = best > ops.min(state["ended_totals"], axis=1)
        better = ops.logical_and(better, state["failed"] == 0)
        return ops.logical_and(state["count"] < state["end"], ops.any(better))

    return condition


def advance_state(decoder, config, state):
    """Run the model on the last token of every beam, and return the state with the next tokens.

    `decoder` is a `Decoder`, `config` a `GenerationConfig` whose sampler is a `Beam`, and `state`
    is from `begin_state`.
    """
    at = state["count"] - 1
    last = config.fill(take_column(state["tokens"], at))
    logits, cache = step_decoder(decoder, last, state["cache"], at)
    return extend_beams(decoder, config, state, logits[:, 0], cache)


def extend_beams(decoder, config, state, logits, cache):
    """Return the state after every beam got its next token, chosen by `logits`.

    `logits` are (B · W, vocabulary_size), for W beams. `decoder` is a `Decoder`, `config` a
    `GenerationConfig` whose sampler is a `Beam`, `state` is from `begin_state`, and `cache` is the
    cache after the tokens so far.
    """
    count = state["count"]
    history = make_history(state, decoder.vocabulary_size)
    logits = config.penalize(logits, history)
    log_p = ops.log_softmax(logits, axis=-1)
    state = dict(state, failed=_failed(state, logits))
    allowed = config.allowed(history, state["constraint_states"])
    if allowed is not None:
        log_p = ops.where(allowed, log_p, IMPOSSIBLE)
    if config.constraints:
        state = _keep_unfinished(config, state, nothing_allowed(allowed))
    best = _candidates(config, state["totals"], log_p)
    state = dict(state, count=count + 1)
    ended = {name: x[:, : config.sampler.width] for name, x in best.items()}
    totals = ops.where(ended["is_end"], ended["total"], IMPOSSIBLE)
    state = _keep(config, state, *_append_tokens(state, ended), totals)
    parents = _select_beams(state, best)
    states = map_leaves(
        lambda x: ops.reshape(ops.take(x, parents, axis=0), ops.shape(x)),
        state["constraint_states"],
    )
    last = ops.reshape(take_column(state["tokens"], count), (-1,))
    state["constraint_states"] = config.advance_states(states, last)
    return dict(state, cache=decoder.reorder(cache, parents, source=False))


def _failed(state, logits):
    """Return `failed` (B,), the step at which a row or one of its beams failed, or 0.

    `state` is from `begin_state`, and `logits` are (B·W, V) for the next token, where W is the
    number of beams.
    """
    wide, number = state["totals"].shape[1], state["count"] - state["begin"] + 1
    failed = note_failures(ops.zeros_like(logits[:, 0], dtype="int32"), logits, number)
    failed = ops.max(ops.reshape(failed, (-1, wide)), axis=1)
    return ops.where(state["failed"] > 0, state["failed"], failed)


def _candidates(config, totals, log_p):
    """Return the C best candidates of each row. A candidate is a beam with a next token.

    `totals` (B, W) are the log-probabilities of the beams, `log_p` (B·W, V) those of the next
    token. C is so large that W candidates remain even if all better candidates end.

    Returns:
        A dict of tensors (B, C), the best candidate first: `total` (log-probability of the
        sequence), `row` (index of the beam, from 0 to B·W - 1), `token`, `score`
        (log-probability of the token), `is_end`.
    """
    wide, vocabulary_size = totals.shape[1], log_p.shape[-1]
    number = min(wide * (1 + len(config.end_token_ids)), wide * vocabulary_size)
    sums = ops.reshape(totals, (-1, 1)) + log_p
    total, index = ops.top_k(ops.reshape(sums, (-1, wide * vocabulary_size)), number)
    index = ops.cast(index, "int32")
    token = index % vocabulary_size
    first = ops.expand_dims(ops.arange(ops.shape(totals)[0], dtype="int32") * wide, axis=1)
    return {
        "total": total,
        "row": first + index // vocabulary_size,
        "token": token,
        "score": gather_rows(ops.reshape(log_p, (-1, wide * vocabulary_size)), index),
        "is_end": config.is_end(token),
    }


def _keep_unfinished(config, state, over):
    """Return the state with the beams that cannot be continued (`over`) as results."""
    every = ops.zeros_like(state["tokens"][:, 0], dtype="bool")  # one for all beams, or for each
    over = ops.reshape(ops.logical_or(every, over), (-1, state["totals"].shape[1]))
    totals = ops.where(over, state["totals"], IMPOSSIBLE)
    return _keep(config, state, *_by_beam(state), totals)


def _by_beam(state):
    shape = (-1, state["totals"].shape[1], ops.shape(state["tokens"])[1])
    return ops.reshape(state["tokens"], shape), ops.reshape(state["scores"], shape)


def _keep(config, state, tokens, scores, totals):
    """Return the state in which C finished sequences may replace the R results of each row.

    `tokens` and `scores` are (B, C, L), and `totals` (B, C).
    """
    totals = rank_totals(config.sampler, totals, state["count"] - state["begin"])
    totals = ops.concatenate([state["ended_totals"], totals], axis=1)
    tokens = ops.concatenate([state["ended_tokens"], tokens], axis=1)
    scores = ops.concatenate([state["ended_scores"], scores], axis=1)
    best, index = ops.top_k(totals, config.sampler.num_return_sequences)
    return dict(
        state,
        ended_totals=best,
        ended_tokens=gather_rows(tokens, index),
        ended_scores=gather_rows(scores, index),
    )


def rank_totals(beam, totals, length):
    """Return `totals` divided by the length penalty of sequences of `length` new tokens.

    `beam` is a `Beam`, the sampler. `totals` are the log-probabilities of C sequences in each row,
    (B, C).
    """
    possible = totals > IMPOSSIBLE / 2
    return ops.where(possible, totals / beam.divisor(length), IMPOSSIBLE)


def _select_beams(state, best):
    """Make the W best unfinished candidates the new beams, and return their old beams (B·W,)."""
    totals = ops.where(best["is_end"], IMPOSSIBLE, best["total"])
    state["totals"], index = ops.top_k(totals, state["totals"].shape[1])
    chosen = {name: gather_rows(x, index) for name, x in best.items()}
    tokens, scores = _append_tokens(state, chosen)
    length = ops.shape(state["tokens"])[1]
    state["tokens"] = ops.reshape(tokens, (-1, length))
    state["scores"] = ops.reshape(scores, (-1, length))
    return ops.reshape(chosen["row"], (-1,))


def _append_tokens(state, candidates):
    """Return the tokens and scores (B, C, L) of candidates: the beam's, then the new token's."""
    rows = ops.reshape(candidates["row"], (-1,))
    at = state["count"] - 1  # `count` includes the new token
    grown = []
    for name, new in (("tokens", "token"), ("scores", "score")):
        parents = ops.take(state[name], rows, axis=0)
        longer = write_column(parents, at, ops.reshape(candidates[new], (-1,)))
        shape = (-1, candidates["row"].shape[1], ops.shape(parents)[1])
        grown.append(ops.reshape(longer, shape))
    return grown


def collect_results(config, state, width):
    """Return the outputs of `search_beams` from the last state, with unfinished beams as results.

    `config` is a `GenerationConfig`, and `width` the length of the prompt.
    """
    state = _keep(config, state, *_by_beam(state), state["totals"])
    totals = state["ended_totals"]
    exists = ops.expand_dims(totals > IMPOSSIBLE / 2, axis=2)
    return {
        "ids": config.fill(ops.where(exists, state["ended_tokens"][:, :, width:], -1)),
        "scores": ops.where(exists, state["ended_scores"][:, :, width:], 0.0),
        "totals": ops.where(exists[:, :, 0], totals, -float("inf")),
        "failed": state["failed"],
    }
