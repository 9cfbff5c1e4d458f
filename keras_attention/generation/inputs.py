"""Check the prompts and sources of `generate`, and convert them to tensors."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.generation.compiled import Spec, dtype_of, map_leaves
from keras_attention.generation.config import GenerationConfig
from keras_attention.generation.piecewise import get_decoder

MOST_IDS = 2**31  # number of ids that int32, the dtype of ids, can represent


@dataclasses.dataclass(frozen=True)
class GenerationInputs:
    """The checked arguments of `generate`, as tensors.

    Attributes:
        decoder: a `Decoder`, or an object with its methods.
        config: a `GenerationConfig`.
        tensors: dict of the inputs of `loop.generate_tokens`. With a draft model also
            `draft_cache`.
        specs: dict with the `Spec` of each tensor.
        number: int, the maximum number of new tokens.
        draft: a `Decoder` that proposes tokens, or None.
        num_draft_tokens: int, number of tokens that the draft proposes at a time.
    """

    decoder: object
    config: GenerationConfig
    tensors: dict
    specs: dict
    number: int
    draft: object = None
    num_draft_tokens: int = 0


def prepare_inputs(
    model,
    prompt,
    max_new_tokens,
    config,
    *,
    source=None,
    start_token_id=None,
    seed=None,
    max_length=None,
    draft_model=None,
    num_draft_tokens=0,
    memory_length=None,
    cache_dtype=None,
):
    """Check the arguments of `generate`, and return them as `GenerationInputs`.

    `config` is a `GenerationConfig`. `generate` explains the other arguments.
    """
    decoder = get_decoder(model)
    draft = None if draft_model is None else get_decoder(draft_model)
    config.check_ids(decoder.vocabulary_size)
    pairs = {}  # name -> (value, its `Spec`)
    if decoder.has_source:
        source, prompt = (prompt, None) if source is None else (source, prompt)
        pairs["source"] = read_source(decoder, source)
    elif source is not None:
        raise ValueError(
            "source= is for a model with an encoder, and this model has none. Pass the text of a "
            "language model as the prompt."
        )
    if start_token_id is not None:
        start_token_id = _read_start_tokens(start_token_id, decoder.vocabulary_size)
    rows = _prompt_rows(prompt, start_token_id, config.padding, pairs.get("source"))
    check_rows("prompt", rows, decoder.vocabulary_size)
    longest = max(map(len, rows))
    number = _count_new_tokens(longest, max_new_tokens, max_length)
    config.check_room(number)
    ids, start = pad_left(rows, bucket_length(longest), config.padding.filler)
    pairs["prompt"] = ids, Spec((None, None), "int32")
    if start.any():
        pairs["start"] = start, Spec((None,), "int32")
    pairs["number"] = np.int32(number), Spec((), "int32")
    limit = bucket_length(number) + num_draft_tokens
    num_uniform = 1 if draft is None else 3
    pairs["uniform"] = draw_uniform(seed, config.sampler, (limit, len(rows)), num_uniform)
    for name, model in {"cache": decoder, "draft_cache": draft}.items():
        if model is not None:
            cached = longest + number + num_draft_tokens - 1  # without the last token
            model.check_lengths(min(map(len, rows)), cached)
            length = ids.shape[1] + limit
            pairs[name] = _empty_cache(model, len(rows), length, memory_length, cache_dtype)
    tensors = map_leaves(ops.convert_to_tensor, {name: pair[0] for name, pair in pairs.items()})
    specs = {name: pair[1] for name, pair in pairs.items()}
    config = config.without_seed()
    return GenerationInputs(decoder, config, tensors, specs, number, draft, num_draft_tokens)


def _prompt_rows(prompt, start_token_id, padding, source):
    """Return `prompt` as a list of arrays of ids, each with the start tokens in front.

    `start_token_id` is a list of ids, or None. `padding` is the `Padding` of the model. `source` is
    None or (the inputs of the encoder, their `Spec`s).
    """
    if prompt is not None:
        rows = read_rows("prompt", prompt, padding.id)
        if not rows:
            raise ValueError("The prompt has no rows: expected ids (B, T), or a list of lists.")
    elif start_token_id is not None:
        rows = [np.zeros((0,), "int64")] * (1 if source is None else count_rows(source[0]))
    else:
        raise ValueError(
            "generate got neither a prompt nor a start token, but needs a first token. Pass a "
            "prompt, or start_token_id=, the id that begins every text."
        )
    if source is not None and len(rows) != count_rows(source[0]):
        raise ValueError(
            f"The prompt has {len(rows)} rows and the source {count_rows(source[0])}. Pass one "
            "prompt for each row of the source."
        )
    if start_token_id is None:
        return rows
    return [np.concatenate([np.array(start_token_id, "int64"), row]) for row in rows]


def _read_start_tokens(start_token_id, vocabulary_size):
    """Return the start tokens as a list of ids. Ids outside the vocabulary raise an error.

    `start_token_id` is an int or several ints.
    """
    several = isinstance(start_token_id, list | tuple)
    ids = list(start_token_id) if several else [start_token_id]
    if not ids:
        raise ValueError("start_token_id=() is empty: expected an id, or several ids.")
    for number in ids:
        checks.check_whole_number("generate", "start_token_id", number, least=0)
        if number >= vocabulary_size:
            raise ValueError(
                f"start_token_id={number} is outside the model's vocabulary of "
                f"{vocabulary_size} ids. Choose an id from 0 to {vocabulary_size - 1}."
            )
    return ids


def _count_new_tokens(longest, max_new_tokens, max_length):
    """Return the maximum number of new tokens after a prompt of `longest` tokens, an int.

    The other arguments are those of `generate`, ints or None.
    """
    if max_length is None and max_new_tokens is None:
        raise ValueError(
            "generate needs a limit, because a model may never choose an end id. Pass "
            "max_new_tokens=, or max_length=, which includes the prompt."
        )
    if max_new_tokens is not None:
        checks.check_whole_number("generate", "max_new_tokens", max_new_tokens)
    if max_length is None:
        return max_new_tokens
    room = checks.check_whole_number("generate", "max_length", max_length) - longest
    if room < (max_new_tokens or 1):
        raise ValueError(
            f"The longest prompt has {longest} tokens, so max_length={max_length} leaves room for "
            f"{max(room, 0)} new ones, but max_new_tokens={max_new_tokens}. Use a larger "
            "max_length, a shorter prompt, or fewer new tokens."
        )
    return max_new_tokens or room


def _empty_cache(decoder, batch_size, length, *options):
    """Return an empty cache for `length` tokens, and its `Spec`s with None for variable sizes.

    `decoder` is a `Decoder`, and `options` are the arguments `memory_length` and `dtype` of its
    `start`.
    """
    if options[0] is not None:
        checks.check_whole_number("generate", "memory_length", options[0])
    longer = decoder.cache_shapes(length + 1, *options)
    tensors, specs = {}, {}
    for name, (shape, dtype) in decoder.cache_shapes(length, *options).items():
        if None in shape:  # a source entry, which the encoder computes
            continue
        other = longer.get(name, (shape, dtype))[0]
        same = [a if a == b else None for a, b in zip(shape, other, strict=True)]
        tensors[name] = ops.zeros((batch_size, *shape), dtype=dtype)
        specs[name] = Spec((None, *same), dtype)
    return tensors, specs


def draw_uniform(seed, sampler, shape, count=1):
    """Return random numbers in [0, 1), float32 (limit, B), from which tokens are sampled.

    The result is a tuple of the numbers and their `Spec`. A seed gives the same numbers on every
    backend.

    Args:
        seed: int. None uses the sampler's seed, or a random seed.
        sampler: a `Sampler`.
        shape: (limit, B), the maximum number of new tokens, and the number of rows.
        count: int, number of random numbers for each token. If it is above 1, the result is
            (limit, count, B).
    """
    seed = sampler.seed if seed is None else seed
    if seed is None:  # keras.utils.set_random_seed sets this generator
        seed = np.random.randint(2**31)
    checks.check_whole_number("generate", "seed", seed, least=0)
    shape = shape if count == 1 else (shape[0], count, shape[1])
    numbers = np.random.default_rng(seed).integers(2**23, size=shape) / 2**23  # always below 1
    return numbers.astype("float32"), Spec((None,) * len(shape), "float32")


def read_source(decoder, source):
    """Return the encoder's inputs as an array or a dict of arrays, and their `Spec`s.

    Args:
        decoder: a `Decoder` with an encoder.
        source: ids (B, S), lists of ids of any lengths, another array, or a dict of arrays.
    """
    if source is None:
        raise ValueError("The model has an encoder. Pass its input as prompt= or as source=.")
    encoder = decoder.encoder  # None for a `Decoder` without a model
    inputs = () if encoder is None else encoder.inputs
    input_specs = {x.name: Spec(tuple(x.shape), dtype_of(x)) for x in inputs}
    if isinstance(source, dict):
        arrays = {name: _read_array(x, input_specs.get(name)) for name, x in source.items()}
        return arrays, {name: _source_spec(x, input_specs.get(name)) for name, x in arrays.items()}
    spec = next(iter(input_specs.values())) if len(input_specs) == 1 else None
    array = _read_source_ids(decoder, source) if is_ids(source) else _read_array(source, spec)
    return array, _source_spec(array, spec)


def count_rows(source):
    """Return the number of rows of a source, an array or a dict of arrays."""
    return len(keras.tree.flatten(source)[0])


def _read_array(x, spec):
    x = np.asarray(ops.convert_to_numpy(x))
    if spec is None:
        return x
    if "int" in spec.dtype and x.dtype.kind == "f":
        raise ValueError(f"The source is {x.dtype}, but the encoder reads ids. Pass whole numbers.")
    if "int" in spec.dtype and x.dtype.kind in "iu" and x.size:
        limits = np.iinfo(spec.dtype)
        least, most = int(x.min()), int(x.max())
        if least < limits.min or most > limits.max:
            raise ValueError(
                f"The source has the id {least if least < limits.min else most}, but the encoder "
                f"reads {spec.dtype}, {limits.min} to {limits.max}. Pass ids of the vocabulary."
            )
    return x.astype(spec.dtype)


def _source_spec(x, spec):
    """Return the `Spec` of an array x that is passed to the encoder, for any batch size.

    `spec` is the `Spec` of the encoder's input. If it is None, ids may have any length.
    """
    dtype = dtype_of(x)
    if spec is not None:
        return Spec((None, *spec.shape[1:]), dtype)
    return Spec((None, *(x.shape[1:] if "float" in dtype else [None] * (x.ndim - 1))), dtype)


def _read_source_ids(decoder, source):
    padding = decoder.source_padding
    rows = read_rows("source", source, padding.id)
    if not rows:
        raise ValueError("The source has no rows: expected ids (B, S), or a list of lists.")
    layers = [] if decoder.encoder is None else keras_internals.all_layers(decoder.encoder)
    tables = [x.input_dim for x in layers if isinstance(x, keras.layers.Embedding)]
    check_rows("source", rows, max(tables, default=None))
    lengths = set(map(len, rows))
    if padding.id is None and len(lengths) > 1:
        raise ValueError(
            f"The source has rows of {min(lengths)} to {max(lengths)} ids, but the encoder has no "
            "padding id (padding_id=None) to pad short rows. Pass rows of one length at a time."
        )
    width = max(lengths) if padding.id is None else bucket_length(max(lengths))
    return pad_right(rows, width, padding.filler)


def read_rows(name, ids, padding=0):
    """Return the rows of `ids` as a list of int64 arrays, without padding on either side.

    Args:
        name: str, the name of the argument in error messages.
        ids: ints (B, T), padded on either side, or a list of lists of ints, or one row (T,).
        padding: int, the padding id. None if every id is a token.
    """
    if not isinstance(ids, list | tuple) and not len(getattr(ids, "shape", ())):
        raise ValueError(
            f"{name}={ids!r}: expected token ids, whole numbers (B, T), or a list of lists. "
            "Tokenize text with the tokenizer used in training."
        )
    if hasattr(ids, "shape"):
        ids = keras.ops.convert_to_numpy(ids)
    if len(ids) and np.ndim(ids[0]) == 0:
        ids = [ids]
    return [_read_row(name, number, row, padding) for number, row in enumerate(ids)]


def _read_row(name, number, ids, padding):
    ids = np.asarray(keras.ops.convert_to_numpy(ids))
    if ids.size == 0:
        return np.zeros((0,), "int64")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: row {number} holds {ids.dtype} of shape {ids.shape}. Expected token ids, "
            "whole numbers (B, T), or a list of lists. Tokenize text with the tokenizer used in "
            "training."
        )
    if padding is not None:
        tokens = np.flatnonzero(ids != padding)
        ids = ids[tokens[0] : tokens[-1] + 1] if len(tokens) else ids[:0]
    if ids.dtype == "uint64":
        ids = np.minimum(ids, np.uint64(2**63 - 1))
    return ids.astype("int64")  # becomes int32 after the range check


def check_rows(name, rows, vocabulary_size=None):
    """Raise an error that names the argument `name` if a row is empty or has an unknown id.

    `rows` is a list of int arrays. Ids must be below `vocabulary_size`, or below 2³¹ if it is None.
    """
    for number, row in enumerate(rows):
        if not len(row):
            fix = "Add a token"
            fix += ", pass start_token_id=," if name == "prompt" else ""
            raise ValueError(
                f"{name}: row {number} is empty: expected at least one token. {fix} or leave the "
                "row out."
            )
        size = MOST_IDS if vocabulary_size is None else vocabulary_size
        outside = row[(row < 0) | (row >= size)]
        if len(outside):
            scope = "any vocabulary" if vocabulary_size is None else f"the vocabulary of {size} ids"
            raise ValueError(
                f"{name}: row {number} has the id {outside[0]}, which is outside {scope}. "
                f"Expected ids from 0 to {size - 1}."
            )


def pad_left(rows, width, padding):
    """Pad rows on the left with the id `padding`.

    Returns the padded rows, int32 (B, width), and the number of padding tokens in each, int32 (B,).
    """
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[width - len(row) :] = row
    return padded, np.array([width - len(row) for row in rows], "int32")


def pad_right(rows, width, padding):
    """Pad rows on the right with the id `padding`. Return int32 (B, width)."""
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def bucket_length(length):
    """Return `length`, or on JAX the next power of two, so that JAX compiles for fewer lengths."""
    if keras.backend.backend() != "jax":
        return length
    return max(8, 1 << (length - 1).bit_length())


def is_ids(source):
    """Return whether a source consists of token ids, and not of images, sound or several inputs."""
    if hasattr(source, "dtype"):
        return "int" in str(source.dtype) and len(source.shape) <= 2
    return isinstance(source, list | tuple)
