"""`generate`: text from a model, in one traced loop."""

from keras import ops

from keras_attention import checks
from keras_attention.generation import alignments, beam_search, loop, speculative, streaming
from keras_attention.generation.compiled import compiled, map_leaves
from keras_attention.generation.request import prepare
from keras_attention.generation.result import Generated
from keras_attention.generation.rules import rules_of
from keras_attention.generation.samplers import Beam


def generate(
    model,
    prompt=None,
    max_new_tokens=None,
    sampler="greedy",
    *,
    source=None,
    begin_id=None,
    end_id=None,
    padding_id=0,
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
    """New tokens for every row, chosen one after the other by what a model says comes next.

    Works for every functional model of this package's layers that looks back only, without
    changing it: what earlier tokens leave is kept in a cache. A model that holds layers of others
    is tried once, on a short text, and refused if they mix or count tokens. All is one loop,
    traced once for all lengths (on JAX for each power of two) and sizes of the batch; it stops
    when every row has ended. Rows do not see each other: a batch gives what its rows give alone
    (but for drawn tokens: chance is another for every row of a batch).

    Args:
        model: a functional `keras.Model`, token ids (B, T) -> logits (B, T, V); or one that holds
            an `"encoder"` and a `"decoder"`; or a `Decoder`.
        prompt: what a language model goes on from, or what an encoder reads: int ids (B, T), padded
            on either side, or lists of ids of any lengths.
        max_new_tokens: int, how many tokens a row gets at most.
        sampler: `"greedy"`, `"sample"`, `Greedy()`, `Sample(...)`, `Beam(...)`, or a config.
        source: what the encoder reads, where the prompt is to be how the result begins: ids, or
            images, spectrograms and dicts as the encoder takes them.
        begin_id: int, put in front of every row: the BEGIN of decoders.
        end_id: int or ints; one of them ends its row, and is part of it. None: rows go on to the
            last place.
        padding_id: int, never chosen (unless it is an END), and put after the end; None where
            every id is a token.
        min_new_tokens: int, no END before so many new tokens.
        repetition_penalty: float, as `penalties.Repetition`.
        no_repeat_ngram_size: int, as `constraints.NoRepeatNGrams`.
        allowed_ids: ints, as `constraints.Allowed`.
        penalties: more `penalties` (parts).
        constraints: more `constraints`, parts or functions of `Written` -> bool (B, V).
        draft_model: a smaller model with the same vocabulary that proposes tokens, for speculative
            decoding (Leviathan et al., 2023): the results are those of `model` alone, greedy ones
            to the token and sampled ones in distribution.
        num_draft_tokens: int, how many it proposes at a time; so many more places are needed.
        callback: function of int32 ids (B,), called with the tokens of each step as they come.
        seed: int, for `Sample`; before its own.
        max_length: int, the most places a row may have, prompt included.
        memory_length, cache_dtype: as `memory_length` and `dtype` of `initial_cache`.
        return_scores, return_attention: bools; either makes the result a `Generated`, in which a
            draft's work can be seen, too.

    Returns:
        int32 ids (B, max_new_tokens), NumPy, the new tokens alone, END included and `padding_id`
        (or 0) after it; (B, R, max_new_tokens) for `Beam(num_return_sequences=R)` with R > 1. Or a
        `Generated`.

    Raises:
        ValueError: for empty prompts, prompts longer than `max_length` or the model's positions,
            ids outside the vocabulary, and models that cannot take tokens one by one, or give
            other logits then.

    Example:

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    tokens = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(20, 8)(tokens)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal", position="rotary")(x, x)
    model = keras.Model(tokens, keras.layers.Dense(20)(x))

    ids = ka.generation.generate(model, [[5, 7, 11], [13]], max_new_tokens=4, end_id=1)
    assert ids.shape == (2, 4)
    best = ka.generation.generate(model, [[5, 7, 11]], 4, ka.generation.Beam(3), return_scores=True)
    assert np.isclose(best.totals[0], best.scores[0].sum())
    ```
    """
    if not (callback is None or callable(callback)):
        raise ValueError(f"callback={callback!r}: expected a function of the ids (B,) of a step.")
    rules = rules_of(
        sampler,
        end_id=end_id,
        padding_id=padding_id,
        min_new_tokens=min_new_tokens,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        allowed_ids=allowed_ids,
        penalties=penalties,
        constraints=constraints,
        with_scores=return_scores,
    )
    if draft_model is not None:
        checks.whole_number("generate", "num_draft_tokens", num_draft_tokens)
    if return_attention and memory_length is not None:
        raise ValueError(
            "return_attention=True reads the whole text once more, all of which a memory of "
            f"memory_length={memory_length} does not see: leave one of them out."
        )
    request = prepare(
        model,
        prompt,
        max_new_tokens,
        rules,
        source=source,
        begin_id=begin_id,
        seed=seed,
        max_length=max_length,
        draft_model=draft_model,
        num_draft_tokens=0 if draft_model is None else num_draft_tokens,
        memory_length=memory_length,
        cache_dtype=cache_dtype,
    )
    outputs = run(request) if callback is None else streaming.run(request, callback)
    return _result(request, outputs, return_attention)


def run(request):
    """What the loop for a request gives, as NumPy arrays."""
    decoder, rules = request.decoder, request.rules
    if request.draft is not None:
        outputs = speculative.run(request)
    else:
        write = beam_search.search if isinstance(rules.sampler, Beam) else loop.write
        function = compiled(
            (decoder,), (write, rules), lambda inputs: write(decoder, rules, inputs), request.specs
        )
        outputs = function(request.inputs)
    return map_leaves(ops.convert_to_numpy, outputs)


def _result(request, outputs, return_attention):
    """Ids alone, or `Generated`."""
    ids = outputs["ids"] = outputs["ids"][..., : request.number]
    if return_attention:
        outputs["attention"] = alignments.of(request, ids)
    if request.rules.with_scores:
        outputs["scores"] = outputs["scores"][..., : request.number]
        outputs.setdefault("totals", outputs["scores"].sum(axis=-1))
    else:
        outputs = {name: x for name, x in outputs.items() if name not in ("scores", "totals")}
    if request.draft is not None:
        outputs["rounds"] = int(outputs["rounds"])
    if isinstance(request.rules.sampler, Beam) and ids.shape[1] == 1:
        outputs = map_leaves(lambda x: x[:, 0], outputs)
    asked = return_attention or request.rules.with_scores
    return Generated(**outputs) if asked else outputs["ids"]
