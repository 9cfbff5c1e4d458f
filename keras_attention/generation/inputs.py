"""`GenerationInputs`: prompts and sources as users have them, checked and made into tensors."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.core import checks, keras_internals
from keras_attention.generation.compiled import Spec, dtype_of, map_leaves
from keras_attention.generation.config import GenerationConfig
from keras_attention.generation.piecewise import get_decoder

MOST_IDS = 2**31  # as many as int32, the dtype of ids, has from 0 on


@dataclasses.dataclass(frozen=True)
class GenerationInputs:
    """The arguments of `generate`, checked, as tensors.

    Attributes:
        decoder: `Decoder`, or an object with its methods.
        config: `GenerationConfig`.
        tensors: dict of tensors, as `loop.generate_tokens` takes them, and `draft_cache` for a
            draft.
        specs: dict of the `Spec` of each.
        number: int, how many new tokens are wanted.
        draft: a `Decoder` that proposes tokens, or None.
        num_draft_tokens: int, how many it proposes at a time; the cache has room for as many more.
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
    """The `GenerationInputs` of these arguments of `generate`; `config` stands for the others."""
    decoder = get_decoder(model)
    draft = None if draft_model is None else get_decoder(draft_model)
    config.check_ids(decoder.vocabulary_size)
    found = {}
    if decoder.has_source:
        source, prompt = (prompt, None) if source is None else (source, prompt)
        found["source"] = read_source(decoder, source)
    elif source is not None:
        raise ValueError(
            "source=... is what an encoder reads, and this model has none: give a language model "
            "its text as the prompt."
        )
    if start_token_id is not None:
        start_token_id = _read_start_tokens(start_token_id, decoder.vocabulary_size)
    rows = _prompt_rows(prompt, start_token_id, config.padding, found.get("source"))
    check_rows("prompt", rows, decoder.vocabulary_size)
    number = _count_new_tokens(max(map(len, rows)), max_new_tokens, max_length)
    found |= _pad_prompts(rows, config.padding.filler)
    found["number"] = np.int32(number), Spec((), "int32")
    limit = bucket_length(number) + num_draft_tokens
    length = found["prompt"][0].shape[1] + limit
    several = 1 if draft is None else 3
    found["uniform"] = draw_uniform(seed, config.sampler, (limit, len(rows)), several)
    for name, kind in {"cache": decoder, "draft_cache": draft}.items():
        if kind is not None:
            fed = max(map(len, rows)) + number + num_draft_tokens - 1  # the last one is not
            kind.check_lengths(min(map(len, rows)), fed)
            found[name] = _empty_cache(kind, len(rows), length, memory_length, cache_dtype)
    tensors = map_leaves(ops.convert_to_tensor, {name: pair[0] for name, pair in found.items()})
    specs = {name: pair[1] for name, pair in found.items()}
    config = config.without_seed()
    return GenerationInputs(decoder, config, tensors, specs, number, draft, num_draft_tokens)


def _prompt_rows(prompt, start_token_id, padding, source):
    """Return the prompts with their start tokens: a list of arrays of ids."""
    if prompt is not None:
        rows = read_rows("prompt", prompt, padding.id)
        if not rows:
            raise ValueError("The prompt has no rows: expected ids (B, T), or a list of lists.")
    elif start_token_id is not None:
        rows = [np.zeros((0,), "int64")] * (1 if source is None else count_rows(source[0]))
    else:
        raise ValueError(
            "There is nothing to go on from: give a prompt, or the id that begins every text, "
            "start_token_id=..."
        )
    if source is not None and len(rows) != count_rows(source[0]):
        raise ValueError(
            f"The prompt has {len(rows)} rows and the source {count_rows(source[0])}: expected one "
            "of each for every result."
        )
    if start_token_id is None:
        return rows
    return [np.concatenate([np.array(start_token_id, "int64"), row]) for row in rows]


def _read_start_tokens(start_token_id, vocabulary_size):
    """Return the start tokens, a list of one id or several; refuses what is no id of the model."""
    several = isinstance(start_token_id, list | tuple)
    ids = list(start_token_id) if several else [start_token_id]
    if not ids:
        raise ValueError("start_token_id=() is empty: expected an id, or several.")
    for number in ids:
        checks.check_whole_number("generate", "start_token_id", number, least=0)
        if number >= vocabulary_size:
            raise ValueError(
                f"start_token_id={number} is outside the model's vocabulary of "
                f"{vocabulary_size} ids, 0 to {vocabulary_size - 1}."
            )
    return ids


def _count_new_tokens(longest, max_new_tokens, max_length):
    """How many new tokens there may be after a prompt of `longest` tokens."""
    if max_length is None and max_new_tokens is None:
        raise ValueError(
            "generate needs max_new_tokens=..., how many tokens each row may get, or max_length=..."
            ", how many it may have with its prompt: a model may never write an END."
        )
    if max_new_tokens is not None:
        checks.check_whole_number("generate", "max_new_tokens", max_new_tokens)
    if max_length is None:
        return max_new_tokens
    room = checks.check_whole_number("generate", "max_length", max_length) - longest
    if room < (max_new_tokens or 1):
        raise ValueError(
            f"The longest prompt has {longest} tokens, which leaves room for {max(room, 0)} new "
            f"ones in max_length={max_length}; max_new_tokens={max_new_tokens}. Give a larger "
            "max_length, a shorter prompt, or ask for fewer."
        )
    return max_new_tokens or room


def _pad_prompts(rows, filler):
    """{"prompt": ..., "start": ...}, each a tensor and its `Spec`; no start where all are full."""
    longest = max(map(len, rows))
    width = bucket_length(longest)
    ids, start = pad_left(rows, width, filler)
    found = {"prompt": (ids, Spec((None, None), "int32"))}
    if start.any():
        found["start"] = start, Spec((None,), "int32")
    return found


def _empty_cache(decoder, batch_size, length, *options):
    """Zeros for the cache of tokens, and their `Spec`s: axes that follow the length are None."""
    if options[0] is not None:
        checks.check_whole_number("generate", "memory_length", options[0])
    here, longer = (
        decoder.cache_shapes(length, *options),
        decoder.cache_shapes(length + 1, *options),
    )
    tensors, specs = {}, {}
    for name, (shape, dtype) in here.items():
        if None in shape:  # of the source, and made by the encoder
            continue
        other = longer.get(name, (shape, dtype))[0]
        same = [a if a == b else None for a, b in zip(shape, other, strict=True)]
        tensors[name] = ops.zeros((batch_size, *shape), dtype=dtype)
        specs[name] = Spec((None, *same), dtype)
    return tensors, specs


def draw_uniform(seed, sampler, shape, several=1):
    """Numbers in [0, 1), and their `Spec`; the same for a seed on every backend.

    Args:
        shape: (limit, B). several: int, how many for each token: (limit, several, B) if above 1.
    """
    seed = sampler.seed if seed is None else seed
    if seed is None:  # keras.utils.set_random_seed sets this generator
        seed = np.random.randint(2**31)
    checks.check_whole_number("generate", "seed", seed, least=0)
    shape = shape if several == 1 else (shape[0], several, shape[1])
    numbers = np.random.default_rng(seed).integers(2**23, size=shape) / 2**23  # none becomes 1
    return numbers.astype("float32"), Spec((None,) * len(shape), "float32")


def read_source(decoder, source):
    """Return the inputs of the encoder as arrays, and their `Spec`s.

    Args:
        decoder: a `Decoder` with an encoder.
        source: ids (B, S) or lists of ids of any lengths; another array; or a dict of arrays.
    """
    if source is None:
        raise ValueError("The model has an encoder: give what it reads, as prompt or as source.")
    encoder = decoder.encoder  # None of a `Decoder` without a model of its own
    inputs = () if encoder is None else encoder.inputs
    known = {x.name: Spec(tuple(x.shape), dtype_of(x)) for x in inputs}
    if isinstance(source, dict):
        arrays = {name: _read_array(x, known.get(name)) for name, x in source.items()}
        return arrays, {name: _source_spec(x, known.get(name)) for name, x in arrays.items()}
    known = next(iter(known.values())) if len(known) == 1 else None
    array = _read_source_ids(decoder, source) if is_ids(source) else _read_array(source, known)
    return array, _source_spec(array, known)


def count_rows(source):
    """How many rows a source has."""
    return len(keras.tree.flatten(source)[0])


def _read_array(x, spec):
    x = np.asarray(ops.convert_to_numpy(x))
    if spec is None:
        return x
    if "int" in spec.dtype and x.dtype.kind == "f":
        raise ValueError(f"The encoder reads ids, whole numbers, and was given {x.dtype}.")
    if "int" in spec.dtype and x.dtype.kind in "iu" and x.size:
        known = np.iinfo(spec.dtype)
        least, most = int(x.min()), int(x.max())
        if least < known.min or most > known.max:
            raise ValueError(
                f"The encoder reads {spec.dtype}, {known.min} to {known.max}, and was given "
                f"{least if least < known.min else most}."
            )
    return x.astype(spec.dtype)


def _source_spec(x, known):
    """The `Spec` of an encoder's input, for any batch; ids of unknown inputs have any length."""
    dtype = dtype_of(x)
    if known is not None:
        return Spec((None, *known.shape[1:]), dtype)
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
            f"The source has rows of {min(lengths)} to {max(lengths)} ids, and every id is a token "
            "to the encoder (padding_id=None): none can fill up the short ones. Give rows "
            "of one length at a time."
        )
    width = max(lengths) if padding.id is None else bucket_length(max(lengths))
    return pad_right(rows, width, padding.filler)


def read_rows(name, ids, padding=0):
    """Return a list of int64 arrays, one for each row, without the padding around it.

    Args:
        name: str, of the argument, for messages.
        ids: ints (B, T), padded on either side; a list of lists of ints; or ints (T,), one row.
        padding: int, the id around the tokens; None where every id is a token.
    """
    if not isinstance(ids, list | tuple) and not len(getattr(ids, "shape", ())):
        raise ValueError(
            f"{name}={ids!r}: expected token ids, whole numbers (B, T), or a list of lists of "
            "them. Texts are made ids by what made those of the training."
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
            f"{name}: row {number} holds {ids.dtype} of shape {ids.shape}, but token ids are whole "
            "numbers (B, T), or a list of lists of them. Texts are made ids by what made those of "
            "the training."
        )
    if padding is not None:
        tokens = np.flatnonzero(ids != padding)
        ids = ids[tokens[0] : tokens[-1] + 1] if len(tokens) else ids[:0]
    if ids.dtype == "uint64":
        ids = np.minimum(ids, np.uint64(2**63 - 1))
    return ids.astype("int64")  # int32 once they are checked


def check_rows(name, rows, vocabulary_size=None):
    """Refuses empty rows, and ids that are outside the vocabulary."""
    for number, row in enumerate(rows):
        if not len(row):
            raise ValueError(
                f"{name}: row {number} is empty, and a model needs a token to go on from. Give it "
                "one, or leave the row out"
                + ("; start_token_id=... puts one before each." if name == "prompt" else ".")
            )
        size = MOST_IDS if vocabulary_size is None else vocabulary_size
        outside = row[(row < 0) | (row >= size)]
        if len(outside):
            whose = "any vocabulary: ids are whole numbers from" if vocabulary_size is None else ""
            raise ValueError(
                f"{name}: row {number} has the id {outside[0]}, which is outside "
                f"{whose or f'the vocabulary of {size} ids,'} 0 to {size - 1}."
            )


def pad_left(rows, width, padding):
    """int32 (B, width), rows at the right end, and where each begins, int32 (B,)."""
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[width - len(row) :] = row
    return padded, np.array([width - len(row) for row in rows], "int32")


def pad_right(rows, width, padding):
    """int32 (B, width), rows at the left end."""
    padded = np.full((len(rows), width), padding, "int32")
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def bucket_length(length):
    """Return the length to pad to: itself; on JAX a power of two, to compile less often."""
    if keras.backend.backend() != "jax":
        return length
    return max(8, 1 << (length - 1).bit_length())


def is_ids(source):
    """Return whether a source is token ids, and not an image, a spectrogram or several inputs."""
    if hasattr(source, "dtype"):
        return "int" in str(source.dtype) and len(source.shape) <= 2
    return isinstance(source, list | tuple)
