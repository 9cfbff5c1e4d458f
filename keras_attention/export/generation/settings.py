"""Settings of a file that generates: samplers, lengths and special ids."""

import dataclasses

from keras_attention.core import checks
from keras_attention.generation import samplers
from keras_attention.generation.config import make_config

LONGEST = 256  # positions of a cache where the caller gives no length


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a file generates.

    Attributes:
        configs: dict, signature -> `GenerationConfig`: for `"generate"`, `"beam"`, both or none.
        max_length: int, positions in the cache: tokens of a prompt and new ones.
        max_new_tokens: int, how many tokens `generate` and `beam` write at most.
        start_token_ids: tuple of ints, what an encoder-decoder begins with; empty where that is not
            known.
        end_token_ids: tuple of ints, any of which ends a row.
        padding_id, source_padding_id: ints, the ids that are no tokens; None where all are.
        constraints: tuple of `Constraint`, which every token has to satisfy.
    """

    configs: dict
    max_length: int
    max_new_tokens: int
    start_token_ids: tuple[int, ...]
    end_token_ids: tuple[int, ...]
    padding_id: int | None = 0
    source_padding_id: int | None = 0
    constraints: tuple = ()

    @property
    def filler_id(self):
        """What stands where there is no token."""
        return self.padding_id or 0


def make_settings(
    decoder,
    generate,
    *,
    max_length,
    max_new_tokens,
    start_token_id,
    end_token_id,
    constraints=None,
    sequence_length,
):
    """The `Settings` of an export's arguments; a ValueError where they do not go together."""
    end_token_ids = read_ids(decoder, "end_token_id", end_token_id)
    if decoder.padding_id in end_token_ids:
        raise ValueError(
            f"end_token_id={decoder.padding_id} is the model's padding, which is never chosen in "
            "files. Give END another id, or build the model with padding_id=None."
        )
    start_token_ids = read_ids(decoder, "start_token_id", start_token_id)
    constraints = make_config("greedy", constraints=constraints or ()).constraints
    configs = _make_configs(generate, end_token_ids, decoder.padding_id, constraints)
    if configs and decoder.has_source and not start_token_ids:
        raise ValueError(
            f"{decoder.model.name} is an encoder-decoder, and generate= needs to know what it "
            "writes first: pass start_token_id=."
        )
    prompt = max(1, len(start_token_ids)) if decoder.has_source else sequence_length
    length, new = _choose_lengths(decoder, prompt, max_length, max_new_tokens)
    least = decoder.min_prompt_length(length)
    if sequence_length is not None and least > 1:
        raise ValueError(
            f"The first {least} tokens see one another (a prefix) and must come together, and in a "
            "file of fixed length they stand behind padding: leave sequence_length out."
        )
    decoder.check_lengths(prompt or max(1, length - new + 1), length)
    padding = decoder.padding_id, decoder.source_padding_id
    return Settings(configs, length, new, start_token_ids, end_token_ids, *padding, constraints)


def _choose_lengths(decoder, prompt, max_length, max_new_tokens):
    """The length of the cache and the number of new tokens; the last one is not cached.

    Args:
        prompt: int, the length of a prompt where it is known, or None.
    """
    for name, value in (("max_length", max_length), ("max_new_tokens", max_new_tokens)):
        if value is not None:
            checks.check_whole_number("export", name, value)
    if max_length is None:
        wanted = LONGEST if prompt is None else prompt + (max_new_tokens or LONGEST) - 1
        max_length = min([wanted, *decoder.cache_spec.max_lengths.values()])
    if max_new_tokens is None:
        max_new_tokens = max_length // 2 if prompt is None else max_length - prompt + 1
    if (prompt or 1) + max_new_tokens - 1 > max_length:
        before = "a prompt" if prompt is None else f"a prompt of {prompt}"
        raise ValueError(
            f"max_new_tokens={max_new_tokens} after {before} does not fit into the cache, which "
            f"has {max_length} places. Give a larger max_length=, or a smaller max_new_tokens=."
        )
    return max_length, max_new_tokens


def read_ids(decoder, name, value):
    """A tuple of ids from one or several; each must be in the vocabulary."""
    values = () if value is None else value if isinstance(value, (tuple, list)) else (value,)
    for number in values:
        checks.check_whole_number("export", name, number, least=0)
        if number >= decoder.vocabulary_size:
            raise ValueError(
                f"{name}={number} is no id of a vocabulary of {decoder.vocabulary_size}: they go "
                f"from 0 to {decoder.vocabulary_size - 1}."
            )
    return tuple(map(int, values))


def _make_configs(generate, end_token_ids, padding_id, constraints):
    """{signature: `GenerationConfig`} of a sampler or several."""
    configs = {}
    for one in generate if isinstance(generate, (tuple, list)) else [generate]:
        sampler = samplers.get(one)
        name = "generate" if isinstance(sampler, samplers.TokenSampler) else "beam"
        if name in configs:
            raise ValueError(
                f"generate= has two samplers for the signature {name!r}: {configs[name].sampler} "
                f"and {sampler}. Export a file for each."
            )
        configs[name] = make_config(
            sampler,
            end_token_id=end_token_ids or None,
            padding_id=padding_id,
            constraints=constraints,
        )
    return configs
