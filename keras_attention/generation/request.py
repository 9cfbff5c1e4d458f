"""What a user asks of `generate`, checked, and made into rules and tensors."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention import checks
from keras_attention.generation import prompts, proof
from keras_attention.generation.compiled import Spec, map_leaves
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.rules import Rules
from keras_attention.generation.sources import rows_of, source_of


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be written.

    Attributes:
        decoder: `Decoder`, or what can do what one can.
        rules: `Rules`.
        inputs: dict of tensors, as `loop.write` takes them, and `draft_cache` for a draft.
        specs: dict of `Spec`, the like.
        number: int, how many new tokens are wanted.
        draft: a `Decoder` that proposes tokens, or None.
        num_draft_tokens: int, how many it proposes at a time; as many places stay free behind.
    """

    decoder: object
    rules: Rules
    inputs: dict
    specs: dict
    number: int
    draft: object = None
    num_draft_tokens: int = 0


def prepare(
    model,
    prompt,
    max_new_tokens,
    rules,
    *,
    source=None,
    begin_id=None,
    seed=None,
    max_length=None,
    draft_model=None,
    num_draft_tokens=0,
    memory_length=None,
    cache_dtype=None,
):
    """The `Request` for these arguments of `generate`, and `Rules` in place of the others."""
    decoder = decoder_of(model)
    draft = None if draft_model is None else decoder_of(draft_model)
    rules.check_ids(decoder.vocabulary_size)
    found = {}
    if decoder.has_source:
        source, prompt = (prompt, None) if source is None else (source, prompt)
        found["source"] = source_of(decoder, source)
    elif source is not None:
        raise ValueError(
            "source=... is what an encoder reads, and this model has none: give a language model "
            "its text as the prompt."
        )
    if begin_id is not None:
        check_begin(begin_id, decoder.vocabulary_size)
    rows = _rows(prompt, begin_id, rules.padding_id, found.get("source"))
    prompts.check_rows("prompt", rows, decoder.vocabulary_size)
    number = _number(max(map(len, rows)), max_new_tokens, max_length)
    found |= _prompt(rows, rules.blank)
    found["number"] = np.int32(number), Spec((), "int32")
    limit = prompts.bucket(number) + num_draft_tokens
    length = found["prompt"][0].shape[1] + limit
    found["uniform"] = chance(seed, rules.sampler, (limit, len(rows)), 1 if draft is None else 3)
    for name, kind in {"cache": decoder, "draft_cache": draft}.items():
        if kind is not None:
            fed = max(map(len, rows)) + number + num_draft_tokens - 1  # the last one is not
            kind.check(min(map(len, rows)), fed)
            found[name] = empty_cache(kind, len(rows), length, memory_length, cache_dtype)
    inputs = map_leaves(ops.convert_to_tensor, {name: pair[0] for name, pair in found.items()})
    specs = {name: pair[1] for name, pair in found.items()}
    return Request(decoder, rules.unseeded(), inputs, specs, number, draft, num_draft_tokens)


def decoder_of(model):
    """The `Decoder` of a model, the same one while its weights are; other objects stay."""
    if not isinstance(model, keras.Model):
        return model if hasattr(model, "step") else Decoder(model)
    kept = vars(model)  # past Keras, which would track and save what an attribute holds
    weights = [id(weight) for weight in model.weights]
    if kept.get("_decoder", (None,))[0] != weights:
        decoder = Decoder(model)
        proof.check(decoder)
        kept["_decoder"] = weights, decoder
    return kept["_decoder"][1]


def _rows(prompt, begin_id, padding_id, source):
    """The rows that the model goes on from, a list of arrays of ids."""
    if prompt is not None:
        rows = prompts.rows("prompt", prompt, padding_id)
        if not rows:
            raise ValueError("The prompt has no rows: expected ids (B, T), or a list of lists.")
    elif begin_id is not None:
        rows = [np.zeros((0,), "int32")] * (1 if source is None else rows_of(source[0]))
    else:
        raise ValueError(
            "There is nothing to go on from: give a prompt, or the id that begins every text, "
            "begin_id=..."
        )
    if source is not None and len(rows) != rows_of(source[0]):
        raise ValueError(
            f"The prompt has {len(rows)} rows and the source {rows_of(source[0])}: expected one of "
            "each for every result."
        )
    if begin_id is None:
        return rows
    return [np.concatenate([np.array([begin_id], "int32"), row]) for row in rows]


def check_begin(begin_id, vocabulary_size):
    """Refuses what is no id."""
    checks.whole_number("generate", "begin_id", begin_id, least=0)
    if begin_id >= vocabulary_size:
        raise ValueError(
            f"begin_id={begin_id} is outside the model's vocabulary of {vocabulary_size} ids, 0 to "
            f"{vocabulary_size - 1}."
        )


def _number(longest, max_new_tokens, max_length):
    """How many new tokens there may be after a prompt of `longest` tokens."""
    if max_length is None and max_new_tokens is None:
        raise ValueError(
            "generate needs max_new_tokens=..., how many tokens each row may get, or max_length=..."
            ", how many it may have with its prompt: a model may never write an END."
        )
    if max_new_tokens is not None:
        checks.whole_number("generate", "max_new_tokens", max_new_tokens)
    if max_length is None:
        return max_new_tokens
    room = checks.whole_number("generate", "max_length", max_length) - longest
    if room < (max_new_tokens or 1):
        raise ValueError(
            f"The longest prompt has {longest} tokens, which leaves room for {max(room, 0)} new "
            f"ones in max_length={max_length}; max_new_tokens={max_new_tokens}. Give a larger "
            "max_length, a shorter prompt, or ask for fewer."
        )
    return max_new_tokens or room


def _prompt(rows, blank):
    longest = max(map(len, rows))
    width = prompts.bucket(longest)
    ids, start = prompts.pad_left(rows, width, blank)
    found = {"prompt": (ids, Spec((None, None), "int32"))}
    if start.any():
        found["start"] = start, Spec((None,), "int32")
    return found


def empty_cache(decoder, batch_size, length, *options):
    """Zeros for what the decoder keeps of tokens, and their `Spec`s: lengths may differ."""
    if options[0] is not None:
        checks.whole_number("generate", "memory_length", options[0])
    here, longer = decoder.layout(length, *options), decoder.layout(length + 1, *options)
    tensors, specs = {}, {}
    for name, (shape, dtype) in here.items():
        if None in shape:  # of the source, and made by the encoder
            continue
        other = longer.get(name, (shape, dtype))[0]
        same = [a if a == b else None for a, b in zip(shape, other, strict=True)]
        tensors[name] = ops.zeros((batch_size, *shape), dtype=dtype)
        specs[name] = Spec((None, *same), dtype)
    return tensors, specs


def chance(seed, sampler, shape, several=1):
    """Numbers in [0, 1), and their `Spec`; the same for a seed on every backend.

    Args:
        shape: (limit, B). several: int, how many for each place: (limit, several, B) if above 1.
    """
    seed = sampler.seed if seed is None else seed
    if seed is None:  # keras.utils.set_random_seed sets this generator
        seed = np.random.randint(2**31)
    checks.whole_number("generate", "seed", seed, least=0)
    shape = shape if several == 1 else (shape[0], several, shape[1])
    numbers = np.random.default_rng(seed).integers(2**23, size=shape) / 2**23  # none becomes 1
    return numbers.astype("float32"), Spec((None,) * len(shape), "float32")
