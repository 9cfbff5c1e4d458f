"""Beam search with a decoder, as functions of tensors; `Beam` says what it finds."""

from keras import ops

from keras_attention.generation.config import nothing_allowed
from keras_attention.generation.loop import (
    extend_prompt,
    gather_rows,
    make_first_cache,
    no_failures,
    note_failures,
    step_decoder,
    take_column,
    write_column,
)
from keras_attention.generation.samplers.base import IMPOSSIBLE
from keras_attention.generation.token_history import TokenHistory


def search_beams(decoder, config, inputs):
    """Finds the best sequences of each row.

    Args:
        decoder, config, inputs: as in `loop.generate_tokens`, with a `Beam`. The numbers of
            `inputs["uniform"]` do not matter.

    Returns:
        dict: `ids` int32 (B, R, limit), best first; `totals` float32 (B, R), what they are ranked
        by; `scores` float32 (B, R, limit), the log-probabilities of the tokens; `failed` as there.
    """
    width = ops.shape(inputs["prompt"])[1]
    state = ops.while_loop(
        make_condition(config),
        lambda state: advance_state(decoder, config, state),
        begin_state(decoder, config, inputs),
    )
    return collect_results(config, state, width)


def begin_state(decoder, config, inputs):
    """The state after the prompt and the first new token. W beams of a row are W rows here."""
    prompt, wide = inputs["prompt"], config.sampler.width
    batch, width = ops.shape(prompt)
    limit = ops.shape(inputs["uniform"])[0]
    start = inputs.get("start")
    logits, cache = step_decoder(decoder, prompt, make_first_cache(decoder, inputs), 0)
    rows = ops.repeat(ops.arange(batch, dtype="int32"), wide)
    tokens = ops.take(extend_prompt(prompt, start, limit), rows, axis=0)
    # 0 for one beam of each row, and `IMPOSSIBLE` for the others, which still equal it.
    totals = ops.cast(ops.arange(wide) > 0, "float32") * IMPOSSIBLE
    count = ops.convert_to_tensor(width, dtype="int32")
    state = {
        "tokens": tokens,
        "scores": ops.zeros(ops.shape(tokens), dtype="float32"),
        "totals": ops.broadcast_to(ops.expand_dims(totals, axis=0), (batch, wide)),
        "failed": no_failures(batch),
        "count": count,
        "begin": count,
        "end": count + ops.cast(inputs["number"], "int32"),
        **_no_results(config.sampler, tokens, batch),
    }
    logits = ops.take(logits[:, -1], rows, axis=0)
    return extend_beams(decoder, config, state, logits, decoder.reorder(cache, rows))


def _no_results(beam, tokens, batch):
    shape = (batch, beam.num_return_sequences, ops.shape(tokens)[1])
    return {
        "ended_tokens": -ops.ones(shape, dtype="int32"),
        "ended_scores": ops.zeros(shape, dtype="float32"),
        "ended_totals": ops.full(shape[:2], IMPOSSIBLE, dtype="float32"),
    }


def make_condition(config):
    """A function of the state: whether a row can still find a better result than its worst."""

    def condition(state):
        room = state["end"] - state["begin"]
        best = rank_totals(config.sampler, ops.max(state["totals"], axis=1), room)
        # Further tokens only lower a total; the longest sequence has the largest divisor.
        better = best > ops.min(state["ended_totals"], axis=1)
        better = ops.logical_and(better, state["failed"] == 0)
        return ops.logical_and(state["count"] < state["end"], ops.any(better))

    return condition


def advance_state(decoder, config, state):
    """Return the state after one more token of every beam."""
    at = state["count"] - 1
    last = config.fill(take_column(state["tokens"], at))
    logits, cache = step_decoder(decoder, last, state["cache"], at)
    return extend_beams(decoder, config, state, logits[:, 0], cache)


def extend_beams(decoder, config, state, logits, cache):
    """Return the state after the best continuations were chosen by `logits` (B·W, V)."""
    count = state["count"]
    history = TokenHistory(state["tokens"], count, state["begin"], decoder.vocabulary_size)
    logits = config.penalize(logits, history)
    log_p = ops.log_softmax(logits, axis=-1)
    state = dict(state, failed=_failed(state, logits))
    allowed = config.allowed(history)
    if allowed is not None:
        log_p = ops.where(allowed, log_p, IMPOSSIBLE)
    if config.constraints:
        state = _keep_unfinished(config, state, nothing_allowed(allowed))
    best = _candidates(config, state["totals"], log_p)
    state = dict(state, count=count + 1)
    state = _keep_ended(config, state, best)
    parents = _select_beams(state, best)
    return dict(state, cache=decoder.reorder(cache, parents, source=False))


def _failed(state, logits):
    """`note_failures` of the beams of each row: int32 (B,)."""
    wide, number = state["totals"].shape[1], state["count"] - state["begin"] + 1
    of_beams = note_failures(ops.zeros_like(logits[:, 0], dtype="int32"), logits, number)
    of_row = ops.max(ops.reshape(of_beams, (-1, wide)), axis=1)
    return ops.where(state["failed"] > 0, state["failed"], of_row)


def _candidates(config, totals, log_p):
    """The best beginnings, one token longer: as many as leave W when all that can have ended.

    Returns:
        dict of tensors (B, C), best first: `total`, `row` (their parent among the B·W), `token`,
        `score` (the token's), `is_end`.
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


def _keep_ended(config, state, best):
    """Return the results, with those of the W best candidates that end."""
    ended = {name: x[:, : config.sampler.width] for name, x in best.items()}
    totals = ops.where(ended["is_end"], ended["total"], IMPOSSIBLE)
    tokens, scores = _append_tokens(state, ended)
    return _keep(config, state, tokens, scores, totals)


def _keep_unfinished(config, state, over):
    """Return the results, with the beams that no token may continue."""
    every = ops.zeros_like(state["tokens"][:, 0], dtype="bool")  # one for all beams, or for each
    over = ops.reshape(ops.logical_or(every, over), (-1, state["totals"].shape[1]))
    totals = ops.where(over, state["totals"], IMPOSSIBLE)
    return _keep(config, state, *_by_beam(state), totals)


def _by_beam(state):
    shape = (-1, state["totals"].shape[1], ops.shape(state["tokens"])[1])
    return ops.reshape(state["tokens"], shape), ops.reshape(state["scores"], shape)


def _keep(config, state, tokens, scores, totals):
    """The state with the best of its results and of `tokens` (B, C, L), by `totals` (B, C)."""
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
    """Totals (B, C) of sequences of `length` new tokens as they are compared."""
    possible = totals > IMPOSSIBLE / 2
    return ops.where(possible, totals / beam.divisor(length), IMPOSSIBLE)


def _select_beams(state, best):
    """Makes the W best candidates that do not end the beams; returns their parents (B·W,)."""
    totals = ops.where(best["is_end"], IMPOSSIBLE, best["total"])
    state["totals"], index = ops.top_k(totals, state["totals"].shape[1])
    chosen = {name: gather_rows(x, index) for name, x in best.items()}
    tokens, scores = _append_tokens(state, chosen)
    length = ops.shape(state["tokens"])[1]
    state["tokens"] = ops.reshape(tokens, (-1, length))
    state["scores"] = ops.reshape(scores, (-1, length))
    return ops.reshape(chosen["row"], (-1,))


def _append_tokens(state, candidates):
    """Tokens and scores (B, C, L) of candidates, which are one token longer than their parents."""
    rows = ops.reshape(candidates["row"], (-1,))
    at = state["count"] - 1  # counted already
    grown = []
    for name, new in (("tokens", "token"), ("scores", "score")):
        parents = ops.take(state[name], rows, axis=0)
        longer = write_column(parents, at, ops.reshape(candidates[new], (-1,)))
        shape = (-1, candidates["row"].shape[1], ops.shape(parents)[1])
        grown.append(ops.reshape(longer, shape))
    return grown


def collect_results(config, state, width):
    """The outputs of `search_beams`: sequences that ended, and those cut off at the limit."""
    state = _keep(config, state, *_by_beam(state), state["totals"])
    totals = state["ended_totals"]
    found = ops.expand_dims(totals > IMPOSSIBLE / 2, axis=2)
    return {
        "ids": config.fill(ops.where(found, state["ended_tokens"][:, :, width:], -1)),
        "scores": ops.where(found, state["ended_scores"][:, :, width:], 0.0),
        "totals": ops.where(found[:, :, 0], totals, -float("inf")),
        "failed": state["failed"],
    }
