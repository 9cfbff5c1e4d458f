"""Tokens as they come: `stream`, and what `generate(callback=...)` does."""

import numpy as np
from keras import ops

from keras_attention.generation import loop
from keras_attention.generation.compiled import compiled, map_leaves
from keras_attention.generation.request import prepare
from keras_attention.generation.rules import rules_of
from keras_attention.generation.samplers import TokenSampler

_CHOICE = frozenset(rules_of.__kwdefaults__) - {"with_scores"}
_WHAT = frozenset(prepare.__kwdefaults__) - {"draft_model", "num_draft_tokens"}


def stream(model, prompt=None, max_new_tokens=None, sampler="greedy", **options):
    """Yields the tokens that `generate` returns, one step at a time.

    Args:
        model, prompt, max_new_tokens, sampler: as in `generate`; not `Beam`, which goes back on
            tokens.
        options: those of `generate` that say which tokens come: all but `draft_model`,
            `num_draft_tokens`, `callback`, `return_scores` and `return_attention`.

    Returns:
        An iterator of int32 ids (B,), NumPy, `padding_id` for rows that have ended. It stops when
        all have. Arguments are checked here, before the first token is asked for.

    Example:

    ```python
    import keras
    import keras_attention as ka

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary")(x, x)
    model = keras.Model(tokens, keras.layers.Dense(20)(x))

    for ids in ka.generation.stream(model, [[5, 7, 11]], max_new_tokens=3):
        assert ids.shape == (1,)
    ```
    """
    if unknown := sorted(options.keys() - _CHOICE - _WHAT):
        known = ", ".join(sorted(_CHOICE | _WHAT))
        raise ValueError(f"stream does not take {', '.join(unknown)}: expected {known}.")
    choice = {name: options.pop(name) for name in _CHOICE & options.keys()}
    return steps(prepare(model, prompt, max_new_tokens, rules_of(sampler, **choice), **options))


def steps(request):
    """An iterator of the new ids (B,) of a `Request`."""
    _check(request)
    return (ids for ids, _ in _states(request))


def run(request, callback):
    """What `loop.write` gives for a request; `callback` is called with the ids of each step."""
    _check(request)
    for ids, after in _states(request):
        callback(ids)
        state = after
    outputs = loop.results(request.rules, state, request.inputs["prompt"].shape[1])
    return map_leaves(ops.convert_to_numpy, outputs)


def _check(request):
    drafted = "" if request.draft is None else " with a draft model"
    if drafted or not isinstance(request.rules.sampler, TokenSampler):
        raise ValueError(
            f"sampler={request.rules.sampler}{drafted} does not settle one token after the other: "
            "stream, or use a callback, with Greedy() or Sample() and no draft model."
        )


def _states(request):
    """Yields the ids of each step, and the state after it."""
    decoder, rules = request.decoder, request.rules
    begin = compiled(
        (decoder,),
        (loop.begin, rules),
        lambda inputs: loop.begin(decoder, rules, inputs),
        request.specs,
    )
    state = begin(request.inputs)
    advance = compiled(
        (decoder,),
        (loop.advance, rules),
        lambda state: loop.advance(decoder, rules, state),
        begin.output_specs(state),
    )
    for number in range(request.number):
        yield ops.convert_to_numpy(state["last"]).astype("int32"), state
        if number + 1 == request.number or np.all(ops.convert_to_numpy(state["done"])):
            return
        state = advance(state)
