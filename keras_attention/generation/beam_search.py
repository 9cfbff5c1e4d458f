"""Beam search with a decoder, as functions of tensors. What it finds is said in `Beam`."""

from keras import ops

from keras_attention.generation.loop import column, first_cache, pick, put, step, with_places
from keras_attention.generation.rules import stuck
from keras_attention.generation.samplers.base import IMPOSSIBLE
from keras_attention.generation.written import Written


def search(decoder, rules, inputs):
    """Finds the best sequences of each row.

    Args:
        decoder, rules, inputs: as in `loop.write`, with a `Beam`. The numbers of
            `inputs["uniform"]` do not matter.

    Returns:
        dict: `ids` int32 (B, R, limit), best first; `totals` float32 (B, R), what they are ranked
        by; `scores` float32 (B, R, limit), the log-probabilities of the tokens.
    """
    width = ops.shape(inputs["prompt"])[1]
    state = ops.while_loop(
        running(rules),
        lambda state: advance(decoder, rules, state),
        begin(decoder, rules, inputs),
    )
    return results(rules, state, width)


def begin(decoder, rules, inputs):
    """The state after the prompt and the first new token. W beams of a row are W rows here."""
    prompt, wide = inputs["prompt"], rules.sampler.width
    batch, width = ops.shape(prompt)
    limit = ops.shape(inputs["uniform"])[0]
    start = inputs.get("start")
    logits, cache = step(decoder, prompt, first_cache(decoder, inputs), 0)
    rows = ops.repeat(ops.arange(batch, dtype="int32"), wide)
    tokens = ops.take(with_places(prompt, start, limit), rows, axis=0)
    count = ops.convert_to_tensor(width, dtype="int32")
    state = {
        "tokens": tokens,
        "scores": ops.zeros(ops.shape(tokens), dtype="float32"),
        "totals": _first_totals(batch, wide),
        "count": count,
        "begin": count,
        "end": count + ops.cast(inputs["number"], "int32"),
        **_no_results(rules.sampler, tokens, batch),
    }
    logits = ops.take(logits[:, -1], rows, axis=0)
    return extend(decoder, rules, state, logits, decoder.reorder(cache, rows))


def _first_totals(batch, wide):
    """0 for one beam of each row, and nothing for the others, which are the same still."""
    only = ops.cast(ops.arange(wide) > 0, "float32") * IMPOSSIBLE
    return ops.broadcast_to(ops.expand_dims(only, axis=0), (batch, wide))


def _no_results(beam, tokens, batch):
    shape = (batch, beam.num_return_sequences, ops.shape(tokens)[1])
    return {
        "ended_tokens": -ops.ones(shape, dtype="int32"),
        "ended_scores": ops.zeros(shape, dtype="float32"),
        "ended_totals": ops.full(shape[:2], IMPOSSIBLE, dtype="float32"),
    }


def running(rules):
    """A function of the state: whether a row can still find something better than its worst."""

    def condition(state):
        room = state["end"] - state["begin"]
        best = ranked(rules.sampler, ops.max(state["totals"], axis=1), room)
        # Further tokens only take from a total; the longest sequence is divided by most.
        better = best > ops.min(state["ended_totals"], axis=1)
        return ops.logical_and(state["count"] < state["end"], ops.any(better))

    return condition


def advance(decoder, rules, state):
    """The state after one more token of every beam."""
    at = state["count"] - 1
    last = rules.shown(column(state["tokens"], at))
    logits, cache = step(decoder, last, state["cache"], at)
    return extend(decoder, rules, state, logits[:, 0], cache)


def extend(decoder, rules, state, logits, cache):
    """The state after the best continuations were chosen by `logits` (B·W, V)."""
    count = state["count"]
    written = Written(state["tokens"], count, state["begin"], decoder.vocabulary_size)
    log_p = ops.log_softmax(rules.penalize(logits, written), axis=-1)
    allowed = rules.allowed(written)
    if allowed is not None:
        log_p = ops.where(allowed, log_p, IMPOSSIBLE)
    if rules.constraints:
        state = _keep_stuck(rules, state, stuck(allowed))
    best = _candidates(rules, state["totals"], log_p)
    state = dict(state, count=count + 1)
    state = _keep_ended(rules, state, best)
    parents = _continue(state, best)
    return dict(state, cache=decoder.reorder(cache, parents, source=False))


def _candidates(rules, totals, log_p):
    """The best beginnings, one token longer: as many as leave W when all that can have ended.

    Returns:
        dict of tensors (B, C), best first: `total`, `row` (their parent among the B·W), `token`,
        `score` (the token's), `is_end`.
    """
    wide, vocabulary_size = totals.shape[1], log_p.shape[-1]
    number = min(wide * (1 + len(rules.end_ids)), wide * vocabulary_size)
    sums = ops.reshape(totals, (-1, 1)) + log_p
    total, index = ops.top_k(ops.reshape(sums, (-1, wide * vocabulary_size)), number)
    index = ops.cast(index, "int32")
    token = index % vocabulary_size
    first = ops.expand_dims(ops.arange(ops.shape(totals)[0], dtype="int32") * wide, axis=1)
    return {
        "total": total,
        "row": first + index // vocabulary_size,
        "token": token,
        "score": pick(ops.reshape(log_p, (-1, wide * vocabulary_size)), index),
        "is_end": rules.is_end(token),
    }


def _keep_ended(rules, state, best):
    """The results, with those of the W best candidates that end."""
    ended = {name: x[:, : rules.sampler.width] for name, x in best.items()}
    totals = ops.where(ended["is_end"], ended["total"], IMPOSSIBLE)
    tokens, scores = _grown(state, ended)
    return _keep(rules, state, tokens, scores, totals)


def _keep_stuck(rules, state, over):
    """The results, with the beams that may go nowhere as they are."""
    every = ops.zeros_like(state["tokens"][:, 0], dtype="bool")  # one for all beams, or for each
    over = ops.reshape(ops.logical_or(every, over), (-1, state["totals"].shape[1]))
    totals = ops.where(over, state["totals"], IMPOSSIBLE)
    return _keep(rules, state, *_by_beam(state), totals)


def _by_beam(state):
    shape = (-1, state["totals"].shape[1], ops.shape(state["tokens"])[1])
    return ops.reshape(state["tokens"], shape), ops.reshape(state["scores"], shape)


def _keep(rules, state, tokens, scores, totals):
    """The state with the best of its results and of `tokens` (B, C, L), by `totals` (B, C)."""
    totals = ranked(rules.sampler, totals, state["count"] - state["begin"])
    totals = ops.concatenate([state["ended_totals"], totals], axis=1)
    tokens = ops.concatenate([state["ended_tokens"], tokens], axis=1)
    scores = ops.concatenate([state["ended_scores"], scores], axis=1)
    best, index = ops.top_k(totals, rules.sampler.num_return_sequences)
    return dict(
        state,
        ended_totals=best,
        ended_tokens=pick(tokens, index),
        ended_scores=pick(scores, index),
    )


def ranked(beam, totals, length):
    """Totals (B, C) of sequences of `length` new tokens as they are compared."""
    possible = totals > IMPOSSIBLE / 2
    return ops.where(possible, totals / beam.divisor(length), IMPOSSIBLE)


def _continue(state, best):
    """Makes the W best candidates that do not end the beams; returns their parents (B·W,)."""
    totals = ops.where(best["is_end"], IMPOSSIBLE, best["total"])
    state["totals"], index = ops.top_k(totals, state["totals"].shape[1])
    chosen = {name: pick(x, index) for name, x in best.items()}
    tokens, scores = _grown(state, chosen)
    length = ops.shape(state["tokens"])[1]
    state["tokens"] = ops.reshape(tokens, (-1, length))
    state["scores"] = ops.reshape(scores, (-1, length))
    return ops.reshape(chosen["row"], (-1,))


def _grown(state, candidates):
    """Tokens and scores (B, C, L) of candidates, which are one token longer than their parents."""
    rows = ops.reshape(candidates["row"], (-1,))
    at = state["count"] - 1  # counted already
    grown = []
    for name, new in (("tokens", "token"), ("scores", "score")):
        parents = ops.take(state[name], rows, axis=0)
        longer = put(parents, at, ops.reshape(candidates[new], (-1,)))
        shape = (-1, candidates["row"].shape[1], ops.shape(parents)[1])
        grown.append(ops.reshape(longer, shape))
    return grown


def results(rules, state, width):
    """What `search` returns: what has ended, and what was cut off at the end."""
    state = _keep(rules, state, *_by_beam(state), state["totals"])
    totals = state["ended_totals"]
    found = ops.expand_dims(totals > IMPOSSIBLE / 2, axis=2)
    return {
        "ids": ops.where(found, rules.shown(state["ended_tokens"][:, :, width:]), rules.blank),
        "scores": ops.where(found, state["ended_scores"][:, :, width:], 0.0),
        "totals": ops.where(found[:, :, 0], totals, -float("inf")),
    }
