"""`stream`, which yields tokens one step at a time, and `generate` with a callback."""

import numpy as np
from keras import ops

from keras_attention.generation import alignments, loop
from keras_attention.generation.compiled import get_compiled, map_leaves
from keras_attention.generation.config import choose_padding, make_config
from keras_attention.generation.inputs import prepare_inputs
from keras_attention.generation.piecewise import get_decoder
from keras_attention.generation.samplers import TokenSampler


def stream(
    model,
    prompt=None,
    max_new_tokens=None,
    sampler="greedy",
    *,
    source=None,
    start_token_id=None,
    end_token_id=None,
    padding_id="model",
    min_new_tokens=0,
    repetition_penalty=None,
    no_repeat_ngram_size=None,
    allowed_ids=None,
    penalties=(),
    constraints=(),
    seed=None,
    max_length=None,
    memory_length=None,
    cache_dtype=None,
):
    """Yields the tokens that `generate` returns, one step at a time.

    Args: as in `generate`, without those of drafts and of the full result. `Beam` is refused,
    because it goes back on tokens.

    Returns:
        An iterator of int32 ids (B,), NumPy, `padding_id` for rows that have ended. It stops when
        all have. Arguments are checked here, before the first token is asked for.

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
    decoder = get_decoder(model)
    config = make_config(
        sampler,
        choose_padding(decoder, padding_id),
        end_token_id=end_token_id,
        min_new_tokens=min_new_tokens,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        allowed_ids=allowed_ids,
        penalties=penalties,
        constraints=constraints,
    )
    inputs = prepare_inputs(
        decoder,
        prompt,
        max_new_tokens,
        config,
        source=source,
        start_token_id=start_token_id,
        seed=seed,
        max_length=max_length,
        memory_length=memory_length,
        cache_dtype=cache_dtype,
    )
    _check_sampler(inputs)
    _refuse_recording(inputs)
    return _stream_tokens(inputs)


def _stream_tokens(inputs):
    for ids, _ in _states(inputs):
        _refuse_recording(inputs)
        yield ids


def generate_with_callback(inputs, callback):
    """Runs `loop.generate_tokens`, and calls `callback` with the ids of each step."""
    _check_sampler(inputs)
    for ids, after in _states(inputs):
        callback(ids)
        state = after
    outputs = loop.collect_results(inputs.config, state, inputs.tensors["prompt"].shape[1])
    return map_leaves(ops.convert_to_numpy, outputs)


def _check_sampler(inputs):
    drafted = "" if inputs.draft is None else " with a draft model"
    if drafted or not isinstance(inputs.config.sampler, TokenSampler):
        raise ValueError(
            f"sampler={inputs.config.sampler}{drafted} does not settle one token after the other: "
            "stream, or use a callback, with Greedy() or Sample() and no draft model."
        )


def _refuse_recording(inputs):
    if alignments.find_recording(inputs.decoder):
        raise ValueError(
            "stream gives tokens one by one, and record_attention has what they looked at when all "
            "are there: use generate(..., callback=...) within it."
        )


def _states(inputs):
    """Yields the ids of each step, and the state after it."""
    decoder, config = inputs.decoder, inputs.config
    begin = get_compiled(
        (decoder,),
        (loop.begin_state, config),
        lambda tensors: loop.begin_state(decoder, config, tensors),
        inputs.specs,
    )
    state = begin(inputs.tensors)
    advance = get_compiled(
        (decoder,),
        (loop.advance_state, config),
        lambda state: loop.advance_state(decoder, config, state),
        begin.output_specs(state),
    )
    for number in range(inputs.number):
        loop.raise_failures((decoder,), state["failed"])
        yield ops.convert_to_numpy(state["last"]).astype("int32"), state
        if number + 1 == inputs.number or np.all(ops.convert_to_numpy(state["done"])):
            return
        state = advance(state)
