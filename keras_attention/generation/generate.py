"""`generate`: text from a model, in one traced loop; `GenerationOutput`, its full result."""

import dataclasses

import numpy as np
from keras import ops

from keras_attention.core import checks
from keras_attention.generation import alignments, beam_search, loop, speculative, streaming
from keras_attention.generation.compiled import get_compiled, map_leaves
from keras_attention.generation.config import choose_padding, make_config
from keras_attention.generation.inputs import prepare_inputs
from keras_attention.generation.piecewise import get_decoder
from keras_attention.generation.samplers import Beam


@dataclasses.dataclass(frozen=True)
class GenerationOutput:
    """New tokens, and how they came about. R is the number of results of each row.

    Attributes:
        ids: int32 (B, limit), or (B, R, limit) for `Beam(num_return_sequences=R)` with R > 1, best
            first; padding stands after the end.
        scores: float32, in the shape of `ids`: the log-probability of each token, in the model's
            distribution as penalties leave it (constraints and what a sampler cuts off do not
            count); 0 after the end. None if not asked for.
        totals: float32 (B,) or (B, R): their sum, for `Beam` divided by its length penalty; what
            results are ranked by. None if not asked for.
        attention: dict, {layer path: weights (B, N, limit, S)}, or (B, R, N, limit, S): what
            attention looked at when it chose each token. S is the source in cross-attention;
            in self-attention the prompt, shorter ones with padding in front, and the new tokens
            but the last. None if not asked for.
        rounds: int, how often the model itself ran to write, with a draft model; else None.
    """

    ids: np.ndarray
    scores: np.ndarray | None = None
    totals: np.ndarray | None = None
    attention: dict | None = None
    rounds: int | None = None


def generate(
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
    draft_model=None,
    num_draft_tokens=4,
    callback=None,
    seed=None,
    max_length=None,
    memory_length=None,
    cache_dtype=None,
    return_scores=False,
    return_attention=False,
):
    """Generates new tokens for every row, each chosen by the model's logits after those before it.

    Works for every functional model of this package's layers that looks back only, without
    changing it, with a cache. A model that holds layers of other packages is tested once, on a
    short text, and refused if they mix or count tokens. The loop is traced once for all lengths
    (on JAX for each power of two) and batch sizes; it stops when every row has ended. Rows are
    independent: a batch gives what its rows give alone (but drawn tokens differ, because every
    row has random numbers of its own).

    Args:
        model: a functional `keras.Model`, token ids (B, T) -> logits (B, T, V); or one that holds
            an `"encoder"` and a `"decoder"`; or a `Decoder`.
        prompt: the text that a language model continues, or the source of an encoder: int ids
            (B, T), padded on either side, or lists of ids of any lengths.
        max_new_tokens: int, how many tokens a row gets at most.
        sampler: `"greedy"`, `"sample"`, `Greedy()`, `Sample(...)`, `Beam(...)`, or a config.
        source: the source of an encoder, where the prompt is the beginning of the result: ids, or
            images, spectrograms and dicts as the encoder takes them.
        start_token_id: int or ints, put in front of every row, as decoders begin.
        end_token_id: int or ints; one of them ends its row, and is part of it. None: rows are full
            length.
        padding_id: int, never chosen (unless it ends a row), and written after the end; None
            where every id is a token, and 0 is written. `"model"` is that of its embedding.
        min_new_tokens: int, how many new tokens there are before a row may end.
        repetition_penalty: float, as `penalties.Repetition`.
        no_repeat_ngram_size: int, as `constraints.NoRepeatNGrams`.
        allowed_ids: ints, as `constraints.Allowed`.
        penalties: more `penalties` (parts).
        constraints: more `constraints`, parts or functions of `TokenHistory` -> bool (B, V). What
            Hugging Face calls `forced_bos_token_id=i` is `AtFirst(Allowed([i]))`,
            `suppress_tokens=ids` is `Forbidden(ids)`.
        draft_model: a smaller model with the same vocabulary that proposes tokens, for speculative
            decoding (Leviathan et al., 2023): the results are those of `model` alone, greedy ones
            to the token and sampled ones in distribution.
        num_draft_tokens: int, how many it proposes at a time; the cache has as many more slots.
        callback: function of int32 ids (B,), called with the tokens of each step as they come.
        seed: int, for `Sample`; it takes precedence over the sampler's own.
        max_length: int, the most tokens a row may have, prompt included.
        memory_length, cache_dtype: as `memory_length` and `dtype` of `initial_cache`.
        return_scores, return_attention: bools; either makes the result a `GenerationOutput`, which
            also counts the rounds of a draft.

    Within `visualization.record_attention(model)` it records what `return_attention` gives, under
    the paths of the model, and of an encoder-decoder how the encoder read its source.

    Returns:
        int32 ids (B, max_new_tokens), NumPy, the new tokens alone, END included and `padding_id`
        (or 0) after it; (B, R, max_new_tokens) for `Beam(num_return_sequences=R)` with R > 1. Or a
        `GenerationOutput`.

    Raises:
        ValueError: for empty prompts, prompts longer than `max_length` or the model's positions,
            ids outside the vocabulary, models that cannot take tokens one by one, or give other
            logits then, and logits that are NaN or infinite. A loop in an exported file raises
            nothing: a row that has such logits ends there.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary")(x, x)
    model = keras.Model(tokens, keras.layers.Dense(20)(x))

    ids = ka.generation.generate(model, [[5, 7, 11], [13]], max_new_tokens=4, end_token_id=1)
    assert ids.shape == (2, 4)
    best = ka.generation.generate(model, [[5, 7, 11]], 4, ka.generation.Beam(3), return_scores=True)
    assert np.isclose(best.totals[0], best.scores[0].sum())
    ```
    """
    if not (callback is None or callable(callback)):
        raise ValueError(f"callback={callback!r}: expected a function of the ids (B,) of a step.")
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
        with_scores=return_scores,
    )
    if draft_model is not None:
        checks.check_whole_number("generate", "num_draft_tokens", num_draft_tokens)
    if return_attention and memory_length is not None:
        raise ValueError(
            "return_attention=True reads the whole text once more, all of which a memory of "
            f"memory_length={memory_length} does not see: leave one of them out."
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
        draft_model=draft_model,
        num_draft_tokens=0 if draft_model is None else num_draft_tokens,
        memory_length=memory_length,
        cache_dtype=cache_dtype,
    )
    if memory_length is not None and alignments.find_recording(inputs.decoder):
        raise ValueError(
            "record_attention would read the whole text once more, all of which a memory of "
            f"memory_length={memory_length} does not see: leave one of them out."
        )
    outputs = (
        _generate(inputs)
        if callback is None
        else streaming.generate_with_callback(inputs, callback)
    )
    decoders = [decoder for decoder in (inputs.decoder, inputs.draft) if decoder is not None]
    loop.raise_failures(decoders, outputs.pop("failed"))
    return _make_result(inputs, outputs, return_attention)


def _generate(inputs):
    """Runs the loop for `inputs`; its outputs as NumPy arrays."""
    decoder, config = inputs.decoder, inputs.config
    if inputs.draft is not None:
        outputs = speculative.generate_with_draft(inputs)
    else:
        write = (
            beam_search.search_beams if isinstance(config.sampler, Beam) else loop.generate_tokens
        )
        function = get_compiled(
            (decoder,),
            (write, config),
            lambda tensors: write(decoder, config, tensors),
            inputs.specs,
        )
        outputs = function(inputs.tensors)
    return map_leaves(ops.convert_to_numpy, outputs)


def _make_result(inputs, outputs, return_attention):
    """Ids alone, or `GenerationOutput`."""
    ids = outputs["ids"] = outputs["ids"][..., : inputs.number]
    if recording := alignments.find_recording(inputs.decoder):
        only = ids[:, 0] if isinstance(inputs.config.sampler, Beam) and ids.shape[1] == 1 else ids
        alignments.record_alignments(inputs, only, recording)
    if return_attention:
        outputs["attention"] = alignments.compute_alignments(inputs, ids)
    if inputs.config.with_scores:
        outputs["scores"] = outputs["scores"][..., : inputs.number]
        outputs.setdefault("totals", outputs["scores"].sum(axis=-1))
    else:
        outputs = {name: x for name, x in outputs.items() if name not in ("scores", "totals")}
    if inputs.draft is not None:
        outputs["rounds"] = int(outputs["rounds"])
    if isinstance(inputs.config.sampler, Beam) and ids.shape[1] == 1:
        outputs = map_leaves(lambda x: x[:, 0], outputs)
    asked = return_attention or inputs.config.with_scores
    return GenerationOutput(**outputs) if asked else outputs["ids"]
