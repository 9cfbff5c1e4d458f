"""`stream`, which yields tokens step by step, and `generate` with a callback."""

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
    """Yield each token that `generate` returns as soon as it is chosen, for example to show it.

    `generate` explains the arguments. Draft models, scores and attention are not available here. A
    `Beam` raises an error, because it may replace earlier tokens.

    Returns:
        An iterator of NumPy arrays int32 (B,), the next id of each row, with padding for rows that
        have ended. It stops when all rows have ended. The call itself checks the arguments, before
        the first token is generated.

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

    def yield_ids():
        for ids, _ in _states(inputs):
            _refuse_recording(inputs)
            yield ids

    return yield_ids()


def generate_with_callback(inputs, callback):
    """Generate tokens, and call `callback` with the ids (B,) of each step.

    `inputs` is a `GenerationInputs`. The function returns the dict of `loop.generate_tokens`.
    """
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
            f"sampler={inputs.config.sampler}{drafted} does not choose one token at a time. Use "
            "stream, or a callback, with Greedy() or Sample() and without a draft model."
        )


def _refuse_recording(inputs):
    if alignments.find_recording(inputs.decoder):
        raise ValueError(
            "stream yields tokens one by one, but record_attention needs all of them. Within "
            "record_attention use generate(..., callback=...)."
        )


def _states(inputs):
    """Generate token by token. Yield the ids (B,) of each step, and the state after the step."""
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
