"""`Generation`, the user's settings for a file that generates text, and `GenerationPlan`."""

import dataclasses

from keras_attention.core import checks
from keras_attention.core.special_ids import Padding
from keras_attention.device.litert_generator import CONTRACT
from keras_attention.generation import samplers
from keras_attention.generation.config import choose_padding, make_config
from keras_attention.generation.constraints import Constraint

LONGEST = 256  # default number of positions in a cache


@dataclasses.dataclass(frozen=True)
class Generation:
    """The settings for a file that generates text, the argument `generate` of `to_litert`.

    `to_saved_model` accepts the same argument.

    Args:
        sampler: `"greedy"`, a sampler, or a `Beam`. A list of a sampler and a `Beam` exports the
            signatures `generate` and `beam`, and an empty list exports neither. With a sampler that
            samples at random, `generate` has an additional input, `uniform`, for random numbers.
        max_length: int, the number of tokens (prompt and new tokens) that fit into the cache. None
            uses 256, or the length of the prompt and the new tokens if prompts have a fixed
            length, but at most the number of positions of the model.
        max_new_tokens: int, the maximum number of tokens that `generate` and `beam` return. None
            uses as many as fit into the cache, or half of them if the length of prompts is
            dynamic.
        start_token_id: int or list of int, the first decoder tokens of an encoder-decoder.
        end_token_id: int or list of int, the ids that end a sequence. None always generates
            `max_new_tokens`.
        padding_id: int, the id that an encoder-decoder writes after the end and never generates
            before. It may be a token of the decoder, such as the start token. None if every id is
            a token. `"model"` uses the padding id of the embedding.
        constraints: a `Constraint`, which forbids some tokens, or a list of them. They apply to
            `generate` and `beam`, and must always allow at least one token. None for no
            constraints.

    ```python
    import keras_attention as ka

    story = ka.export.Generation(ka.generation.Sample(0.8), max_length=64, end_token_id=2)
    assert story.max_new_tokens is None
    ```
    """

    sampler: object = "greedy"
    max_length: int | None = None
    max_new_tokens: int | None = None
    start_token_id: object = None
    end_token_id: object = None
    padding_id: object = "model"
    constraints: object = None


@dataclasses.dataclass(frozen=True)
class GenerationPlan:
    """A model with the checked settings of a `Generation`. Defaults have replaced None.

    Attributes:
        decoder: `Decoder`.
        configs: dict from the name of a signature (`"generate"` or `"beam"`) to its
            `GenerationConfig`. It may be empty.
        max_length: int, the number of tokens (prompt and new tokens) that fit into the cache.
        max_new_tokens: int, the maximum number of tokens that `generate` and `beam` return.
        start_token_ids: tuple of int, the first decoder tokens of an encoder-decoder, or ().
        end_token_ids: tuple of int, the ids that end a sequence.
        padding: `Padding` of the tokens, whose id is never generated.
        constraints: tuple of `Constraint`. Every token must satisfy all of them.
        batch_size, sequence_length: int, fixed sizes, or None if they are dynamic.
        examples: tuple of batches (dicts of arrays) for the whole model. It may be empty.
    """

    decoder: object
    configs: dict
    max_length: int
    max_new_tokens: int
    start_token_ids: tuple[int, ...]
    end_token_ids: tuple[int, ...]
    padding: Padding = Padding()
    constraints: tuple = ()
    batch_size: int | None = None
    sequence_length: int | None = None
    examples: tuple = ()

    def describe(self, endpoints):
        """Return a dict with everything that an app must know to call the signatures of the file.

        The dict is written to `manifest.json`. `endpoints` are the `Endpoint`s of the file.
        """
        decoder, start = self.decoder, list(self.start_token_ids)
        source_padding = decoder.source_padding and decoder.source_padding.id
        by_name = {endpoint.name: endpoint for endpoint in endpoints}
        step = by_name["step"]
        encoded = by_name["encode"].outputs if "encode" in by_name else ()
        values = {
            "contract": CONTRACT,
            "kind": "encoder_decoder" if decoder.has_source else "language_model",
            "vocabulary_size": decoder.vocabulary_size,
            "padding_id": self.padding.id,
            "source_padding_id": source_padding,
            "start_token_id": start if len(start) > 1 else next(iter(start), None),
            "end_token_ids": list(self.end_token_ids),
            "max_length": self.max_length,
            "max_new_tokens": self.max_new_tokens,
            "least_prompt": decoder.min_prompt_length(self.max_length),
            "samplers": {
                name: {"name": type(config.sampler).__name__, **config.sampler.get_config()}
                for name, config in self.configs.items()
            },
        }
        if self.constraints:
            values["constraints"] = list(map(_describe_constraint, self.constraints))
        values["cache"] = [
            {
                "name": tensor.name,
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "changes": tensor.name in step.outputs,
                "from_encode": tensor.name in encoded,
            }
            for tensor in step.inputs
            if tensor.name in step.cache
        ]
        return values


def _describe_constraint(constraint):
    """Return a dict with the name and the settings of a constraint, without functions.

    Fields that are not printed, such as the texts of all tokens, are left out.
    """
    values = {"name": type(constraint).__name__}
    for field in (field for field in dataclasses.fields(constraint) if field.repr):
        value = getattr(constraint, field.name)
        if isinstance(value, Constraint):
            value = _describe_constraint(value)
        if not callable(value):
            values[field.name] = list(value) if isinstance(value, tuple) else value
    return values


def make_plan(decoder, request, batch_size=None, sequence_length=None, examples=()):
    """Check the user's settings, and make a `GenerationPlan`.

    Args:
        decoder: `Decoder`.
        request: `Generation`, the user's settings.
        batch_size, sequence_length: int, fixed sizes, or None.
        examples: list of batches for the whole model.

    Raises:
        ValueError: settings contradict each other.
    """
    padding = _choose_padding(decoder, request.padding_id)
    end_token_ids = _read_ids(decoder, "end_token_id", request.end_token_id)
    if padding.id in end_token_ids:
        raise ValueError(
            f"end_token_id={padding.id} is the model's padding id, which files never generate. "
            "Give END another id, or build the model with padding_id=None."
        )
    start_token_ids = _read_ids(decoder, "start_token_id", request.start_token_id)
    configs = _make_configs(request, end_token_ids, padding)
    if configs and decoder.has_source and not start_token_ids:
        raise ValueError(
            f"{decoder.model.name} is an encoder-decoder, and generate= needs the token that its "
            "decoder reads first. Pass start_token_id=."
        )
    prompt = max(1, len(start_token_ids)) if decoder.has_source else sequence_length
    length, new = _choose_lengths(decoder, prompt, request.max_length, request.max_new_tokens)
    least = decoder.min_prompt_length(length)
    if sequence_length is not None and least > 1:
        raise ValueError(
            f"The first {least} tokens attend to one another (a prefix) and must be read together. "
            "In a file of fixed length they follow padding. Leave sequence_length out."
        )
    decoder.check_lengths(prompt or max(1, length - new + 1), length)
    config = make_config("greedy", padding, constraints=request.constraints or ())
    config.check_room(new)
    return GenerationPlan(
        decoder,
        configs,
        length,
        new,
        start_token_ids,
        end_token_ids,
        padding,
        config.constraints,
        batch_size,
        sequence_length,
        tuple(examples),
    )


def _choose_padding(decoder, padding_id):
    """Return the `Padding` for the user's setting `padding_id`. Its id is never generated.

    A language model accepts only the setting `"model"`.
    """
    if padding_id != "model" and not decoder.has_source:
        raise ValueError(
            f"padding_id={padding_id} is only for encoder-decoders. A language model uses the "
            "padding of its embedding. Leave padding_id out."
        )
    padding = choose_padding(decoder, padding_id)
    _read_ids(decoder, "padding_id", padding.id)
    return padding


def _choose_lengths(decoder, prompt, max_length, max_new_tokens):
    """Return the length of the cache and the maximum number of new tokens.

    The last new token is not stored in the cache.

    Args:
        decoder: `Decoder`.
        prompt: int, the length of prompts, or None if it is dynamic.
        max_length, max_new_tokens: the user's settings, int or None.
    """
    for name, value in (("max_length", max_length), ("max_new_tokens", max_new_tokens)):
        if value is not None:
            checks.check_whole_number("export", name, value)
    if max_length is None:
        length = LONGEST if prompt is None else prompt + (max_new_tokens or LONGEST) - 1
        max_length = min([length, *decoder.cache_spec.max_lengths.values()])
    if max_new_tokens is None:
        max_new_tokens = max_length // 2 if prompt is None else max_length - prompt + 1
    if (prompt or 1) + max_new_tokens - 1 > max_length:
        before = "a prompt" if prompt is None else f"a prompt of {prompt}"
        raise ValueError(
            f"max_new_tokens={max_new_tokens} after {before} does not fit into the cache, which "
            f"has room for {max_length} tokens. Increase max_length=, or decrease max_new_tokens=."
        )
    return max_length, max_new_tokens


def _read_ids(decoder, name, value):
    """Convert None, an id or a list of ids to a tuple, and check that the vocabulary has each id.

    `name` is the name of the user's setting for error messages.
    """
    values = () if value is None else value if isinstance(value, (tuple, list)) else (value,)
    for number in values:
        checks.check_whole_number("export", name, number, least=0)
        if number >= decoder.vocabulary_size:
            raise ValueError(
                f"{name}={number} is outside the vocabulary of {decoder.vocabulary_size} ids. "
                f"Choose an id from 0 to {decoder.vocabulary_size - 1}."
            )
    return tuple(map(int, values))


def _make_configs(request, end_token_ids, padding):
    """Return a dict from the signatures of a `Generation`, `"generate"` and `"beam"`, to configs.

    The configs are `GenerationConfig`s. `request` is the `Generation`. `end_token_ids` are ints,
    and `padding` is the `Padding` of the model.
    """
    configs, parts = {}, request.sampler
    for one in parts if isinstance(parts, (tuple, list)) else [parts]:
        sampler = samplers.get(one)
        name = "generate" if isinstance(sampler, samplers.TokenSampler) else "beam"
        if name in configs:
            raise ValueError(
                f"generate= has two samplers for the signature {name!r}: {configs[name].sampler} "
                f"and {sampler}. Export one file for each."
            )
        configs[name] = make_config(
            sampler,
            padding,
            end_token_id=end_token_ids or None,
            constraints=request.constraints or (),
        )
    return configs
