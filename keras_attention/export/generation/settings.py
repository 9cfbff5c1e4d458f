"""`Generation`, what a file that generates is asked for, and `GenerationPlan`, what follows."""

import dataclasses

from keras_attention.core import checks
from keras_attention.core.padding import Padding
from keras_attention.device.litert_generator import CONTRACT
from keras_attention.generation import samplers
from keras_attention.generation.config import choose_padding, make_config
from keras_attention.generation.constraints import Constraint

LONGEST = 256  # positions of a cache where the caller gives no length


@dataclasses.dataclass(frozen=True)
class Generation:
    """What a file writes: `generate=` of `to_litert` and `to_saved_model`.

    Args:
        sampler: `"greedy"`, a sampler, a `Beam`, or a list of a sampler and a `Beam`; an empty
            list gives `step` without loops. A sampler that draws takes chance as an input,
            `uniform`.
        max_length: int, tokens that the cache has room for, old and new; 256 by default, or what
            the model's positions have room for.
        max_new_tokens: int, how many tokens `generate` and `beam` write at most.
        start_token_id: int or ints, what an encoder-decoder begins with.
        end_token_id: int or several, what ends a text; without one it is as long as it may be.
        padding_id: int, which an encoder-decoder never writes, although to its decoder it may be a
            token, such as the first one; None where every id is a token; `"model"` for that of the
            decoder's embedding.
        constraints: as for `ka.generation.generate`: one or several, which the loops in the file
            keep to. They must leave every row a token until it ends.

    ```python
    import keras_attention as ka

    story = ka.export.Generation(ka.generation.Sample(0.8), max_length=64, end_token_id=2)
    assert story.max_new_tokens is None  # as many as fit
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
    """How the file of a model generates: one record for endpoints, checks and description.

    Attributes:
        decoder: `Decoder`.
        configs: dict, signature -> `GenerationConfig`: for `"generate"`, `"beam"`, both or none.
        max_length: int, positions in the cache: tokens of a prompt and new ones.
        max_new_tokens: int, how many tokens `generate` and `beam` write at most.
        start_token_ids: tuple of ints, what an encoder-decoder begins with; empty where that is not
            known.
        end_token_ids: tuple of ints, any of which ends a row.
        padding: `Padding` of the tokens, which is never written.
        constraints: tuple of `Constraint`, which every token has to satisfy.
        batch_size, sequence_length: ints that the file fixes, or None.
        examples: list of batches for the whole model, dicts of arrays; empty where none were given.
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
        """What a caller of the file needs beside its signatures: a dict of plain values."""
        decoder, start = self.decoder, list(self.start_token_ids)
        source_padding = decoder.source_padding and decoder.source_padding.id
        contract = CONTRACT  # the oldest that says all that this file needs
        if not self.constraints and len(start) < 2:
            zeros = (0, 0 if decoder.has_source else None)
            contract = 3 if (self.padding.id, source_padding) == zeros else 4
        by_name = {endpoint.name: endpoint for endpoint in endpoints}
        step = by_name["step"]
        encoded = by_name["encode"].outputs if "encode" in by_name else ()
        found = {
            "contract": contract,
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
            found["constraints"] = list(map(_describe_constraint, self.constraints))
        found["cache"] = [
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
        return found


def _describe_constraint(constraint):
    """Name and numbers of a constraint; of a function the name alone."""
    found = {"name": type(constraint).__name__}
    for field in dataclasses.fields(constraint):
        value = getattr(constraint, field.name)
        if isinstance(value, Constraint):
            value = _describe_constraint(value)
        if not callable(value):
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def make_plan(decoder, request, batch_size=None, sequence_length=None, examples=()):
    """Return the `GenerationPlan` of a decoder for a `Generation`, `request`.

    Raises:
        ValueError: where its values do not go together.
    """
    padding = _choose_padding(decoder, request.padding_id)
    end_token_ids = _read_ids(decoder, "end_token_id", request.end_token_id)
    if padding.id in end_token_ids:
        raise ValueError(
            f"end_token_id={padding.id} is the model's padding, which is never chosen in "
            "files. Give END another id, or build the model with padding_id=None."
        )
    start_token_ids = _read_ids(decoder, "start_token_id", request.start_token_id)
    configs = _make_configs(request, end_token_ids, padding)
    if configs and decoder.has_source and not start_token_ids:
        raise ValueError(
            f"{decoder.model.name} is an encoder-decoder, and generate= needs to know what it "
            "writes first: pass start_token_id=."
        )
    prompt = max(1, len(start_token_ids)) if decoder.has_source else sequence_length
    length, new = _choose_lengths(decoder, prompt, request.max_length, request.max_new_tokens)
    least = decoder.min_prompt_length(length)
    if sequence_length is not None and least > 1:
        raise ValueError(
            f"The first {least} tokens see one another (a prefix) and must come together, and in a "
            "file of fixed length they stand behind padding: leave sequence_length out."
        )
    decoder.check_lengths(prompt or max(1, length - new + 1), length)
    constraints = make_config("greedy", padding, constraints=request.constraints or ()).constraints
    return GenerationPlan(
        decoder,
        configs,
        length,
        new,
        start_token_ids,
        end_token_ids,
        padding,
        constraints,
        batch_size,
        sequence_length,
        tuple(examples),
    )


def _choose_padding(decoder, padding_id):
    """The `Padding` that is never written; only an encoder-decoder may have one of its own."""
    if padding_id != "model" and not decoder.has_source:
        raise ValueError(
            f"padding_id={padding_id} is for encoder-decoders: the padding of a language model is "
            "that of its embedding."
        )
    padding = choose_padding(decoder, padding_id)
    _read_ids(decoder, "padding_id", padding.id)
    return padding


def _choose_lengths(decoder, prompt, max_length, max_new_tokens):
    """Return the length of the cache and the number of new tokens; the last one is not cached.

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


def _read_ids(decoder, name, value):
    """Return a tuple of ids from one or several; each must be in the vocabulary."""
    values = () if value is None else value if isinstance(value, (tuple, list)) else (value,)
    for number in values:
        checks.check_whole_number("export", name, number, least=0)
        if number >= decoder.vocabulary_size:
            raise ValueError(
                f"{name}={number} is no id of a vocabulary of {decoder.vocabulary_size}: they go "
                f"from 0 to {decoder.vocabulary_size - 1}."
            )
    return tuple(map(int, values))


def _make_configs(request, end_token_ids, padding):
    """{signature: `GenerationConfig`} of a sampler or several."""
    configs, asked = {}, request.sampler
    for one in asked if isinstance(asked, (tuple, list)) else [asked]:
        sampler = samplers.get(one)
        name = "generate" if isinstance(sampler, samplers.TokenSampler) else "beam"
        if name in configs:
            raise ValueError(
                f"generate= has two samplers for the signature {name!r}: {configs[name].sampler} "
                f"and {sampler}. Export a file for each."
            )
        configs[name] = make_config(
            sampler,
            padding,
            end_token_id=end_token_ids or None,
            constraints=request.constraints or (),
        )
    return configs
