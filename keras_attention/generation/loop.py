"""The generation loop for greedy decoding and sampling, as functions of tensors.

The functions pass a state from step to step, a dict of tensors of constant shapes. In all
functions, `decoder` is a `Decoder`, `config` a `GenerationConfig`, and `inputs` the dict that
`generate_tokens` explains. No Python code depends on a tensor's value. So the loop can be traced,
compiled and exported.
"""

import numpy as np
from keras import ops

from keras_attention.generation.config import forbid_tokens, nothing_allowed
from keras_attention.generation.samplers.base import IMPOSSIBLE
from keras_attention.generation.token_history import TokenHistory


def generate_tokens(decoder, config, inputs):
    """Generate tokens until every row has ended or has `number` new tokens.

    Args:
        decoder: a `Decoder`.
        config: a `GenerationConfig` with a `TokenSampler`.
        inputs: a dict of tensors:
            prompt: int32 (B, T). Shorter rows begin with padding.
            start: int32 (B,), the number of these padding tokens. Optional, 0 by default.
            source: the inputs of the encoder. Only for an encoder-decoder.
            uniform: float32 (limit, B), random numbers in [0, 1), one row for each new token.
            number: int32 scalar, the maximum number of new tokens, at most `limit`.
            cache: dict, an empty cache for T + limit tokens. Optional if these sizes are static.

    Returns:
        A dict: `ids` int32 (B, limit), the new tokens. With `config.with_scores` also `scores`
        float32 (B, limit), their log-probabilities. `failed` int32 (B,): if the logits for the k-th
        new token of a row were not finite, it is k, and the row ends there, else 0.
    """
    state = begin_state(decoder, config, inputs)
    state = ops.while_loop(is_running, lambda state: advance_state(decoder, config, state), state)
    return collect_results(config, state, ops.shape(inputs["prompt"])[1])


def begin_state(decoder, config, inputs):
    """Run the model on the prompt, and return the state with the first new token.

    `generate_tokens` explains `decoder`, `config` and `inputs`. The state is a dict of tensors,
    such as the tokens so far and the cache.
    """
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
        "failed": ops.zeros((batch,), dtype="int32"),
        "uniform": uniform,
        "constraint_states": config.begin_states(batch),
    }
    if config.with_scores:
        state["scores"] = ops.zeros(ops.shape(state["tokens"]), dtype="float32")
    return choose_token(decoder, config, state, logits[:, -1], cache)


def make_first_cache(decoder, inputs):
    """Return the cache for the first step: `inputs["cache"]`, or a new cache.

    In an encoder-decoder, run the encoder and add the entries that depend on the source.
    """
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
    """Return the logits and cache of `decoder.step`, with the static shapes that loops need.

    `decoder` is a `Decoder`. Its method `step` explains `tokens`, `cache` and `index`.
    """
    logits, after = decoder.step(tokens, cache, index)
    lost = [n for n, x in after.items() if tuple(x.shape) != tuple(cache[n].shape)]  # by a slice
    return logits, after | {n: ops.reshape(after[n], ops.shape(cache[n])) for n in lost}


def is_running(state):
    """Return whether there is room for one more token, and any row has not ended.

    `state` is from `begin_state`.
    """
    return ops.logical_and(state["count"] < state["end"], ops.any(ops.logical_not(state["done"])))


def advance_state(decoder, config, state):
    """Run the model on the last token of each row, and return the state with the next tokens.

    `decoder` is a `Decoder`, `config` a `GenerationConfig`, and `state` is from `begin_state`.
    """
    last = ops.expand_dims(state["last"], axis=1)
    logits, cache = step_decoder(decoder, last, state["cache"], state["count"] - 1)
    return choose_token(decoder, config, state, logits[:, 0], cache)


def choose_token(decoder, config, state, logits, cache):
    """Return the state with one more token, chosen by `logits`, in rows that have not ended.

    `logits` are (B, vocabulary_size). `decoder` is a `Decoder`, `config` a `GenerationConfig`,
    `state` is from `begin_state`, and `cache` is the cache after the tokens so far.
    """
    count = state["count"]
    history = make_history(state, decoder.vocabulary_size)
    logits = config.penalize(logits, history)
    allowed = config.allowed(history, state["constraint_states"])
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
    state["constraint_states"] = config.advance_states(state["constraint_states"], token)
    if config.with_scores:
        score = ops.where(over, 0.0, log_probability(logits, token))
        state["scores"] = write_column(state["scores"], count, score)
    return state


def make_history(state, vocabulary_size):
    """Return the `TokenHistory` of a loop's state, for a model with `vocabulary_size` ids."""
    names = ("tokens", "count", "begin")
    return TokenHistory(*(state[name] for name in names), vocabulary_size, end=state["end"])


def collect_results(config, state, width):
    """Return the outputs of `generate_tokens`, a dict, from the last state of the loop.

    `config` is a `GenerationConfig`, and `width` the length of the prompt.
    """
    output = {"ids": config.fill(state["tokens"][:, width:]), "failed": state["failed"]}
    if config.with_scores:
        output["scores"] = state["scores"][:, width:]
    return output


def note_failures(failed, logits, number, over=None):
    """Mark rows as failed whose logits are NaN or infinite, or forbid every token.

    Args:
        failed: int32 (B,), 0 for rows that have not failed yet, else their value of `number` then.
        logits: float32 (B, vocabulary_size).
        number: int32 scalar, 1 for the first new token, 2 for the second, ...
        over: bool (B,) or (1,), True for rows that have ended, whose logits are ignored. None if no
            row has ended.

    Returns:
        The new `failed`, int32 (B,).
    """
    # A sum is NaN if a term is. A logit of minus infinity only forbids a token.
    highest = ops.max(logits, axis=-1)
    usable = ops.logical_and(ops.sum(logits, axis=-1) < float("inf"), highest > IMPOSSIBLE)
    finite = usable if over is None else ops.logical_or(usable, over)
    return ops.where(ops.logical_or(finite, failed > 0), failed, number)


def raise_failures(decoders, failed):
    """Raise a ValueError with a likely cause if a row has failed, for the row that failed first.

    Args:
        decoders: the decoder of the model and, if there is one, of the draft model.
        failed: int32 (B,), the number of the new token at which each row failed, or 0.
    """
    failed = ops.convert_to_numpy(failed)
    if not failed.any():
        return
    row = int(np.argmin(np.where(failed > 0, failed, np.iinfo("int32").max)))
    models = [decoder.model for decoder in decoders if decoder.model]
    raise ValueError(
        f"The logits for new token {failed[row]} of row {row} are NaN or infinite, so no token "
        f"can be chosen. {_reason(models)}"
    )


def _reason(models):
    """Return the likely cause why logits are not finite, and the fix, for an error message."""
    for model in models:
        for weight in model.weights:
            if not np.isfinite(ops.convert_to_numpy(ops.sum(ops.cast(weight, "float32")))):
                return (
                    f"The weight {weight.path} of {model.name} has NaN or infinite values: the "
                    "training diverged, or the file is damaged. Use an earlier checkpoint."
                )
    return (
        "The weights are finite, so values grow too large inside the model. Try the model in "
        "float32, and look for a layer, penalty or constraint that divides by zero."
    )


def extend_prompt(prompt, start, limit):
    """Return the `tokens` of a `TokenHistory`, (B, T + limit): the prompt, followed by -1.

    `start` (B,) is the number of padding tokens at the beginning of each row, which become -1. None
    if there is no padding.
    """
    batch, width = ops.shape(prompt)
    if start is not None:
        index = ops.expand_dims(ops.arange(width, dtype="int32"), axis=0)
        prompt = ops.where(index < ops.expand_dims(start, axis=1), -1, prompt)
    return ops.concatenate([prompt, -ops.ones((batch, limit), dtype="int32")], axis=1)


def take_column(x, index):
    """Return the column of x (B, length) at `index`, a scalar tensor, as (B, 1)."""
    return ops.take(x, ops.reshape(index, (1,)), axis=1)


def write_column(x, index, values):
    """Return a copy of x (B, length) with `values` (B,) in the column `index`, a scalar tensor."""
    column = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32") == index, axis=0)
    return ops.where(column, ops.expand_dims(ops.cast(values, x.dtype), axis=1), x)


def log_probability(logits, token):
    """Return the log-probability (B,) of `token` (B,) under `logits` (B, vocabulary_size)."""
    log_p = ops.log_softmax(logits, axis=-1)
    return ops.reshape(gather_rows(log_p, ops.expand_dims(token, axis=1)), (-1,))


def gather_rows(x, index):
    """Return the entries of x (B, C) or (B, C, L) at `index` (B, K) in each row.

    The result is (B, K) or (B, K, L). The function gathers from a flat tensor, which every backend
    and LiteRT support.
    """
    size, tail = ops.shape(x)[1], ops.shape(x)[2:]
    first = ops.expand_dims(ops.arange(ops.shape(x)[0], dtype="int32") * size, axis=1)
    rows = ops.reshape(ops.cast(index, "int32") + first, (-1,))
    picked = ops.take(ops.reshape(x, (-1, *tail)), rows, axis=0)
    return ops.reshape(picked, (-1, index.shape[1], *tail))
