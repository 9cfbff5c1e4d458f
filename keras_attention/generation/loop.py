"""Greedy decoding and sampling with a decoder, token by token, as functions of tensors.

A state is a dict of tensors whose shapes stay, so that the loop can be traced, compiled and
exported; no Python code depends on a value.
"""

import numpy as np
from keras import ops

from keras_attention.generation.config import forbid_tokens, nothing_allowed
from keras_attention.generation.samplers.base import IMPOSSIBLE
from keras_attention.generation.token_history import TokenHistory


def generate_tokens(decoder, config, inputs):
    """Generates until every row has ended or is full.

    Args:
        decoder: a `Decoder`.
        config: `GenerationConfig` with a `TokenSampler`.
        inputs: dict:
            prompt: int32 (B, T), rows that are shorter begin with padding.
            start: int32 (B,), where rows begin; may be left out where all do at 0.
            source: inputs of an encoder; may be left out.
            uniform: float32 (limit, B) in [0, 1), random numbers, a row for each new token.
            number: int32 scalar, how many new tokens are wanted, at most `limit`.
            cache: dict, an empty cache for T + limit tokens; may be left out where sizes are known:
                it is then made here.

    Returns:
        dict: `ids` int32 (B, limit), with `config.with_scores` `scores` float32 (B, limit), and
        `failed` int32 (B,): the number of the new token whose logits were not finite, where such
        a row ends, or 0.
    """
    state = begin_state(decoder, config, inputs)
    state = ops.while_loop(is_running, lambda state: advance_state(decoder, config, state), state)
    return collect_results(config, state, ops.shape(inputs["prompt"])[1])


def begin_state(decoder, config, inputs):
    """Return the state after the prompt and the first new token."""
    prompt, uniform = inputs["prompt"], inputs["uniform"]
    batch, width = ops.shape(prompt)
    limit = ops.shape(uniform)[0]
    start = inputs.get("start")
    logits, cache = step_decoder(decoder, prompt, make_first_cache(decoder, inputs), 0)
    count = ops.convert_to_tensor(width, dtype="int32")
    state = {
        "tokens": extend_prompt(prompt, start, limit),
        "count": count,
        "begin": count,
        "end": count + ops.cast(inputs["number"], "int32"),
        "done": ops.zeros((batch,), dtype="bool"),
        "failed": no_failures(batch),
        "uniform": uniform,
    }
    if config.with_scores:
        state["scores"] = ops.zeros(ops.shape(state["tokens"]), dtype="float32")
    return choose_token(decoder, config, state, logits[:, -1], cache)


def make_first_cache(decoder, inputs):
    """Return the cache before the first token."""
    source, start = inputs.get("source"), inputs.get("start")
    if "cache" not in inputs:
        batch, width = ops.shape(inputs["prompt"])
        length = width + ops.shape(inputs["uniform"])[0]
        return decoder.start(batch, length, source, start)
    cache = dict(inputs["cache"])
    if decoder.has_source:
        cache |= decoder.encode(source, cache)
    return cache if start is None else cache | {"start": start}


def step_decoder(decoder, tokens, cache, index):
    """`decoder.step` with a cache of the same shapes as before, as loops require."""
    logits, after = decoder.step(tokens, cache, index)
    lost = [n for n, x in after.items() if tuple(x.shape) != tuple(cache[n].shape)]  # by a slice
    return logits, after | {n: ops.reshape(after[n], ops.shape(cache[n])) for n in lost}


def is_running(state):
    """Return whether a row has not ended yet, and there is room for its next token."""
    return ops.logical_and(state["count"] < state["end"], ops.any(ops.logical_not(state["done"])))


def advance_state(decoder, config, state):
    """Return the state after one more token."""
    last = ops.expand_dims(state["last"], axis=1)
    logits, cache = step_decoder(decoder, last, state["cache"], state["count"] - 1)
    return choose_token(decoder, config, state, logits[:, 0], cache)


def choose_token(decoder, config, state, logits, cache):
    """The state with the token that is chosen by `logits` (B, V), in every row that goes on."""
    count = state["count"]
    history = TokenHistory(state["tokens"], count, state["begin"], decoder.vocabulary_size)
    logits, allowed = config.penalize(logits, history), config.allowed(history)
    uniform = ops.take(state["uniform"], count - state["begin"], axis=0)
    possible = forbid_tokens(logits, allowed)
    token = config.sampler.choose(possible, uniform)
    over = ops.logical_or(state["done"], nothing_allowed(allowed))
    number = count - state["begin"] + 1
    failed = note_failures(state["failed"], possible, number, over)
    over = ops.logical_or(over, failed > 0)
    state = dict(state, cache=cache, count=count + 1, failed=failed)
    state["tokens"] = write_column(state["tokens"], count, ops.where(over, -1, token))
    state["last"] = ops.where(over, config.padding.filler, token)
    state["done"] = ops.logical_or(over, config.is_end(token))
    if config.with_scores:
        score = ops.where(over, 0.0, log_probability(logits, token))
        state["scores"] = write_column(state["scores"], count, score)
    return state


def collect_results(config, state, width):
    """Return the outputs of `generate_tokens`, from its last state."""
    output = {"ids": config.fill(state["tokens"][:, width:]), "failed": state["failed"]}
    if config.with_scores:
        output["scores"] = state["scores"][:, width:]
    return output


def no_failures(batch):
    """`failed` before the first step: int32 (B,), 0 for rows without a failure."""
    return ops.zeros((batch,), dtype="int32")


def note_failures(failed, logits, number, over=None):
    """`failed` with the rows whose `logits` (B, V) are NaN, infinite, or forbid every token.

    Args:
        failed: int32 (B,), the new token at which a row failed first, or 0.
        number: int32 scalar, the new token that is chosen now, from 1.
        over: bool (B,) or (1,), rows that have ended, whose logits do not matter; or None.
    """
    # A sum is NaN if one of its terms is. One logit may be minus infinity, which forbids a token.
    highest = ops.max(logits, axis=-1)
    usable = ops.logical_and(ops.sum(logits, axis=-1) < float("inf"), highest > IMPOSSIBLE)
    fine = usable if over is None else ops.logical_or(usable, over)
    return ops.where(ops.logical_or(fine, failed > 0), failed, number)


def raise_failures(decoders, failed):
    """Raises a ValueError that names the row that failed first, the token, and a likely cause.

    Args:
        decoders: the model's and the draft's. failed: int32 (B,), see `note_failures`.
    """
    failed = ops.convert_to_numpy(failed)
    if not failed.any():
        return
    row = int(np.argmin(np.where(failed > 0, failed, np.iinfo("int32").max)))
    models = [decoder.model for decoder in decoders if decoder.model]
    raise ValueError(
        f"The logits for new token {failed[row]} of row {row} are NaN or infinite, and no token "
        f"can be chosen by them. {_reason(models)}"
    )


def _reason(models):
    """Return a hint: the first weight that is not finite, if there is one."""
    for model in models:
        for weight in model.weights:
            if not np.isfinite(ops.convert_to_numpy(ops.sum(ops.cast(weight, "float32")))):
                return (
                    f"The weight {weight.path} of {model.name} holds NaN or infinite numbers: the "
                    "training that made it has diverged, or its file is damaged."
                )
    return (
        "The weights are numbers: what is computed with them grows too large. Try the model in "
        "float32, and look for a layer, penalty or constraint that divides by zero."
    )


def extend_prompt(prompt, start, limit):
    """Tokens (B, T + limit) as in `TokenHistory`: the prompt, and -1 where there is no token."""
    batch, width = ops.shape(prompt)
    if start is not None:
        index = ops.expand_dims(ops.arange(width, dtype="int32"), axis=0)
        prompt = ops.where(index < ops.expand_dims(start, axis=1), -1, prompt)
    return ops.concatenate([prompt, -ops.ones((batch, limit), dtype="int32")], axis=1)


def take_column(x, index):
    """Column `index`, a scalar, of x (B, L), as (B, 1)."""
    return ops.take(x, ops.reshape(index, (1,)), axis=1)


def write_column(x, index, values):
    """x (B, L) with `values` (B,) in column `index`, a scalar."""
    here = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32") == index, axis=0)
    return ops.where(here, ops.expand_dims(ops.cast(values, x.dtype), axis=1), x)


def log_probability(logits, token):
    """Return the log-probability of `token` (B,) by `logits` (B, V)."""
    log_p = ops.log_softmax(logits, axis=-1)
    return ops.reshape(gather_rows(log_p, ops.expand_dims(token, axis=1)), (-1,))


def gather_rows(x, index):
    """Of each row b of x (B, C) or (B, C, L) the entries `index[b]`: index (B, K) -> (B, K, ...).

    A gather from a flat tensor, which every backend and LiteRT have.
    """
    size, rest = ops.shape(x)[1], ops.shape(x)[2:]
    first = ops.expand_dims(ops.arange(ops.shape(x)[0], dtype="int32") * size, axis=1)
    rows = ops.reshape(ops.cast(index, "int32") + first, (-1,))
    picked = ops.take(ops.reshape(x, (-1, *rest)), rows, axis=0)
    return ops.reshape(picked, (-1, index.shape[1], *rest))
