"""`generate`, which generates tokens in one compiled loop, and `GenerationOutput`, its result."""

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
    """The result of `generate` with scores or attention.

    The shapes use B for rows, `limit` for the maximum number of new tokens, and R for
    `num_return_sequences` of a `Beam`. Without a `Beam`, or if R is 1, there is no axis R.

    Attributes:
        ids: int32 (B, limit) or (B, R, limit), the new tokens, the best sequence first. Padding
            follows the end of a sequence.
        scores: float32, in the shape of `ids`, the log-probability of each token after penalties,
            and 0 after the end. Constraints and the cut-off of a sampler do not change it.
        totals: float32 (B,) or (B, R), the sum of the scores. For a `Beam` it is divided by the
            length penalty, and results are ranked by it.
        attention: dict {layer path: weights (B, N, limit, S) or (B, R, N, limit, S)}, the attention
            weights with which each token was chosen. In cross-attention, S is the source. In
            self-attention, S is the prompt (shorter prompts begin with padding) followed by all new
            tokens except the last.
        rounds: int, how often the model ran after the first token, if there was a draft model.

    `scores`, `totals`, `attention` and `rounds` are None if they were not requested.
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
    """Generate new tokens that continue each prompt of a batch, or translate each source.

    The function works with every functional model that is built from layers of this package, if no
    token depends on later tokens. It does not change the model. It tests a model that has layers of
    other packages once on a short text, and raises an error if these layers mix or count tokens.

    The loop uses a cache, and is compiled once for all lengths and batch sizes (on JAX once for
    each power of two). It stops when every row has ended. Rows do not depend on one another: greedy
    and beam search return the same tokens for a batch as for its rows one by one.

    Args:
        model: a functional `keras.Model` from token ids (B, T) to logits (B, T, vocabulary_size),
            or a model that contains an `"encoder"` and a `"decoder"`, or a `Decoder`.
        prompt: the tokens that a language model continues, or the source of an encoder-decoder: int
            ids (B, T) with padding on either side, or lists of ids of any lengths.
        max_new_tokens: int, the maximum number of new tokens in a row.
        sampler: `"greedy"`, `"sample"`, `Greedy()`, `Sample(...)`, `Beam(...)`, or a config.
        source: the source of an encoder-decoder, if `prompt` is the beginning of the result: ids,
            images, spectrograms, or a dict of the encoder's inputs.
        start_token_id: int or ints, tokens that begin every row, before the prompt. In an
            encoder-decoder, they begin every result.
        end_token_id: int or ints, the ids that end a row. The end id is part of the result. If
            None, all rows have full length.
        padding_id: int, pads rows after their end. The model never chooses this id, unless it is
            also an end id. None means that every id is a token, and pads with 0. `"model"` is the
            padding id of the model's embedding.
        min_new_tokens: int, the minimum number of new tokens in a row.
        repetition_penalty: float above 1, makes tokens less probable that already occurred, as
            `penalties.Repetition` does.
        no_repeat_ngram_size: int n, forbids that n tokens in a row occur twice, as
            `constraints.NoRepeatNGrams` does.
        allowed_ids: ints, the only ids that may be generated.
        penalties: a `Penalty` or a list of them, applied after `repetition_penalty`.
        constraints: a `Constraint`, a function from `TokenHistory` to bool (B, vocabulary_size), or
            a list of them. Hugging Face's `forced_bos_token_id=i` is `AtFirst(Allowed([i]))`, and
            its `suppress_tokens=ids` is `Forbidden(ids)`.
        draft_model: a smaller model with the same vocabulary, which proposes tokens that `model`
            checks several at a time, to generate faster (speculative decoding, Leviathan et al.,
            2023). Greedy tokens stay the same, and sampled tokens keep their distribution.
        num_draft_tokens: int, number of tokens that the draft model proposes at a time. The cache
            is longer by this number.
        callback: function that is called with the new tokens of each step, int32 (B,), or None.
        seed: int, the seed for `Sample`. It replaces the sampler's own seed.
        max_length: int, the maximum number of tokens in a row, including the prompt.
        memory_length, cache_dtype: the arguments `memory_length` and `dtype` of `initial_cache`.
        return_scores, return_attention: bools, whether to return a `GenerationOutput` with scores,
            or with attention weights.

    Inside `visualization.record_attention(model)`, the attention weights of the new tokens and of
    the encoder are recorded under the model's layer paths.

    Returns:
        int32 ids (B, max_new_tokens), NumPy: the new tokens including the end id, then padding. For
        `Beam(num_return_sequences=R)` with R > 1, (B, R, max_new_tokens). A `GenerationOutput` if
        scores or attention are requested.

    Raises:
        ValueError: a prompt is empty, or longer than `max_length` or the model's positions. An id
            is outside the vocabulary. The model cannot read tokens one by one. Logits are NaN or
            infinite (in an exported file, such a row ends without an error).

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
    recording = return_attention or alignments.find_recording(decoder)
    if recording and memory_length is not None:
        raise ValueError(
            "return_attention and record_attention need the whole text, but "
            f"memory_length={memory_length} keeps only its end. Leave memory_length out, or do "
            "not request attention weights."
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
    outputs = (
        _generate(inputs)
        if callback is None
        else streaming.generate_with_callback(inputs, callback)
    )
    decoders = [decoder for decoder in (inputs.decoder, inputs.draft) if decoder is not None]
    loop.raise_failures(decoders, outputs.pop("failed"))
    return _make_result(inputs, outputs, return_attention)


def _generate(inputs):
    """Run the compiled loop that fits `inputs`, and return its outputs as NumPy arrays."""
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
    """Return ids, or a `GenerationOutput` if scores or attention were requested.

    `inputs` is the `GenerationInputs`, and `outputs` the dict of arrays that the loop returned.
    `return_attention` is a bool.
    """
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
    if return_attention or inputs.config.with_scores:
        return GenerationOutput(**outputs)
    return outputs["ids"]
