"""Token by token: what greedy decoding and sampling do with a decoder, as functions of tensors.

A state is a dict of tensors whose shapes stay, so that the loop can be traced, compiled and
exported; nothing here depends on a value before it runs.
"""

from keras import ops

from keras_attention.generation.rules import forbid, stuck
from keras_attention.generation.written import Written


def write(decoder, rules, inputs):
    """Generates until every row has ended or is full.

    Args:
        decoder: a `Decoder`.
        rules: `Rules` with a `TokenSampler`.
        inputs: dict:
            prompt: int32 (B, T), rows that are shorter begin with padding.
            start: int32 (B,), where rows begin; may be left out where all do at 0.
            source: what an encoder-decoder reads; may be left out.
            uniform: float32 (limit, B) in [0, 1), chance, a row for each new token.
            number: int32 scalar, how many new tokens are wanted, at most `limit`.
            cache: dict, what the decoder keeps of tokens, empty, T + limit places; may be left out
                where sizes are known: it is then made here.

    Returns:
        dict: `ids` int32 (B, limit), and with `rules.with_scores` `scores` float32 (B, limit).
    """
    state = begin(decoder, rules, inputs)
    state = ops.while_loop(running, lambda state: advance(decoder, rules, state), state)
    return results(rules, state, ops.shape(inputs["prompt"])[1])


def begin(decoder, rules, inputs):
    """The state after the prompt and the first new token."""
    prompt, uniform = inputs["prompt"], inputs["uniform"]
    batch, width = ops.shape(prompt)
    limit = ops.shape(uniform)[0]
    start = inputs.get("start")
    logits, cache = step(decoder, prompt, first_cache(decoder, inputs), 0)
    count = ops.convert_to_tensor(width, dtype="int32")
    state = {
        "tokens": with_places(prompt, start, limit),
        "count": count,
        "begin": count,
        "end": count + ops.cast(inputs["number"], "int32"),
        "done": ops.zeros((batch,), dtype="bool"),
        "uniform": uniform,
    }
    if rules.with_scores:
        state["scores"] = ops.zeros(ops.shape(state["tokens"]), dtype="float32")
    return choose(decoder, rules, state, logits[:, -1], cache)


def first_cache(decoder, inputs):
    """The cache before the first token."""
    source, start = inputs.get("source"), inputs.get("start")
    if "cache" not in inputs:
        batch, width = ops.shape(inputs["prompt"])
        length = width + ops.shape(inputs["uniform"])[0]
        return decoder.start(batch, length, source, start)
    cache = dict(inputs["cache"])
    if decoder.has_source:
        cache |= decoder.encode(source, cache)
    return cache if start is None else cache | {"start": start}


def step(decoder, tokens, cache, index):
    """`decoder.step`, whose cache has the shapes that the one before has, as loops ask for."""
    logits, after = decoder.step(tokens, cache, index)
    return logits, {name: _shaped_like(cache[name], x) for name, x in after.items()}


def _shaped_like(before, after):
    """`after`, known to have the shape of `before`: a slice may forget its length."""
    if tuple(after.shape) == tuple(before.shape):
        return after
    return ops.reshape(after, ops.shape(before))


def running(state):
    """Whether there is a row that has not ended, and a place for its next token."""
    return ops.logical_and(state["count"] < state["end"], ops.any(ops.logical_not(state["done"])))


def advance(decoder, rules, state):
    """The state after one more token."""
    last = ops.expand_dims(state["last"], axis=1)
    logits, cache = step(decoder, last, state["cache"], state["count"] - 1)
    return choose(decoder, rules, state, logits[:, 0], cache)


def choose(decoder, rules, state, logits, cache):
    """The state with the token that `logits` (B, V) call for, in every row that goes on."""
    count = state["count"]
    written = Written(state["tokens"], count, state["begin"], decoder.vocabulary_size)
    logits, allowed = rules.penalize(logits, written), rules.allowed(written)
    uniform = ops.take(state["uniform"], count - state["begin"], axis=0)
    token = rules.sampler.choose(forbid(logits, allowed), uniform)
    over = ops.logical_or(state["done"], stuck(allowed))
    state = dict(state, cache=cache, count=count + 1)
    state["tokens"] = put(state["tokens"], count, ops.where(over, -1, token))
    state["last"] = ops.where(over, rules.blank, token)
    state["done"] = ops.logical_or(over, rules.is_end(token))
    if rules.with_scores:
        score = ops.where(over, 0.0, log_probability(logits, token))
        state["scores"] = put(state["scores"], count, score)
    return state


def results(rules, state, width):
    """What `write` returns, from its last state."""
    output = {"ids": rules.shown(state["tokens"][:, width:])}
    if rules.with_scores:
        output["scores"] = state["scores"][:, width:]
    return output


def with_places(prompt, start, limit):
    """Tokens (B, T + limit) as `Written` has them: the prompt, and -1 where there is none."""
    batch, width = ops.shape(prompt)
    if start is not None:
        place = ops.expand_dims(ops.arange(width, dtype="int32"), axis=0)
        prompt = ops.where(place < ops.expand_dims(start, axis=1), -1, prompt)
    return ops.concatenate([prompt, -ops.ones((batch, limit), dtype="int32")], axis=1)


def column(x, place):
    """Column `place`, a scalar, of x (B, L), as (B, 1)."""
    return ops.take(x, ops.reshape(place, (1,)), axis=1)


def put(x, place, values):
    """x (B, L) with `values` (B,) in column `place`, a scalar."""
    here = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32") == place, axis=0)
    return ops.where(here, ops.expand_dims(ops.cast(values, x.dtype), axis=1), x)


def log_probability(logits, token):
    """The log-probability of `token` (B,) by `logits` (B, V)."""
    log_p = ops.log_softmax(logits, axis=-1)
    return ops.reshape(pick(log_p, ops.expand_dims(token, axis=1)), (-1,))


def pick(x, index):
    """Of each row b of x (B, C) or (B, C, L) the entries `index[b]`: index (B, K) -> (B, K, ...).

    A gather from a flat tensor, which every backend and LiteRT have.
    """
    size, rest = ops.shape(x)[1], ops.shape(x)[2:]
    first = ops.expand_dims(ops.arange(ops.shape(x)[0], dtype="int32") * size, axis=1)
    rows = ops.reshape(ops.cast(index, "int32") + first, (-1,))
    picked = ops.take(ops.reshape(x, (-1, *rest)), rows, axis=0)
    return ops.reshape(picked, (-1, index.shape[1], *rest))
