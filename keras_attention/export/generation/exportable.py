"""Models that are ready for export with or without signatures that generate."""

import dataclasses

import keras
import numpy as np

from keras_attention.device.litert_generator import CONTRACT
from keras_attention.export import exportable
from keras_attention.export.batches import read_batches
from keras_attention.export.checks.cases import draw_ids
from keras_attention.export.endpoint import make_endpoint, pack_inputs
from keras_attention.export.errors import ExportError
from keras_attention.export.exportable import CheckedEndpoint, Exportable
from keras_attention.export.generation.cases import CaseMaker
from keras_attention.export.generation.endpoints import make_endpoints
from keras_attention.export.generation.reference import compute_logits
from keras_attention.export.generation.settings import make_settings, read_ids
from keras_attention.export.precision import (
    check_stateless,
    convert_to_float32,
    list_reduced_policies,
)
from keras_attention.generation.constraints import Constraint
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.piecewise import measure_piecewise_error

TOLERANCE = 1e-4  # of logits that a cache gives, per unit of the largest (at least 1)


@dataclasses.dataclass(frozen=True)
class Generation:
    """How an `Exportable` generates.

    Attributes:
        decoder: `Decoder`.
        settings: `Settings`.
        examples: list of batches for the whole model, dicts of arrays; empty where none were given.
    """

    decoder: object
    settings: object
    examples: list

    def describe(self, endpoints):
        """What a caller of the file needs beside its signatures: a dict of plain values."""
        decoder, settings = self.decoder, self.settings
        by_name = {endpoint.name: endpoint for endpoint in endpoints}
        step = by_name["step"]
        encoded = by_name["encode"].outputs if "encode" in by_name else ()
        return {
            "contract": self._find_contract(),
            "kind": "encoder_decoder" if decoder.has_source else "language_model",
            "vocabulary_size": decoder.vocabulary_size,
            "padding_id": settings.padding_id,
            "source_padding_id": settings.source_padding_id,
            "start_token_id": self._describe_start(),
            "end_token_ids": list(settings.end_token_ids),
            "max_length": settings.max_length,
            "max_new_tokens": settings.max_new_tokens,
            "least_prompt": decoder.min_prompt_length(settings.max_length),
            "samplers": {
                n: _describe_sampler(config.sampler) for n, config in settings.configs.items()
            },
            **self._describe_constraints(),
            "cache": [
                _describe_entry(t, step.outputs, encoded)
                for t in step.inputs
                if t.name in step.cache
            ],
        }

    def _find_contract(self):
        """The oldest contract of a file's callers that says all that this file needs."""
        settings, has_source = self.settings, self.decoder.has_source
        if settings.constraints or len(settings.start_token_ids) > 1:
            return CONTRACT
        zero = settings.padding_id == 0 == (settings.source_padding_id if has_source else 0)
        return 3 if zero else 4

    def _describe_start(self):
        """An id, a list of several, or None."""
        ids = list(self.settings.start_token_ids)
        return ids if len(ids) > 1 else next(iter(ids), None)

    def _describe_constraints(self):
        constraints = self.settings.constraints
        return {"constraints": list(map(_describe_part, constraints))} if constraints else {}


def _describe_part(constraint):
    """Name and numbers of a constraint; of a function the name alone."""
    found = {"name": type(constraint).__name__}
    for field in dataclasses.fields(constraint):
        value = getattr(constraint, field.name)
        if isinstance(value, Constraint):
            value = _describe_part(value)
        if not callable(value):
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _describe_sampler(sampler):
    return {"name": type(sampler).__name__, **sampler.get_config()}


def _describe_entry(tensor, changed, encoded):
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "changes": tensor.name in changed,
        "from_encode": tensor.name in encoded,
    }


def make_exportable(
    model, generate, *, batch_size, sequence_length, examples, padding_id="model", **arguments
):
    """The `Exportable` of a model, with endpoints that generate, or as it is.

    Args:
        generate: None, a sampler or several.
        padding_id: int that is never written, or `"model"` for the decoder's own.
        arguments: those of `make_settings` that only models that generate take.
    """
    common = {"batch_size": batch_size, "sequence_length": sequence_length, "examples": examples}
    if generate is not None:
        return _make_generating(model, generate, padding_id, **common, **arguments)
    if padding_id != "model":
        arguments["padding_id"] = padding_id
    if names := [name for name, value in arguments.items() if value is not None]:
        raise ValueError(
            f"{', '.join(names)} is for files that generate: pass generate= too, a sampler such as "
            '"greedy".'
        )
    return exportable.make_exportable(model, **common)


def _make_generating(
    model, generate, padding_id, *, batch_size, sequence_length, examples, **arguments
):
    check_stateless(model)
    exported = convert_to_float32(model)
    given = []
    if examples is not None:
        given = read_batches(examples, make_endpoint(exported), "examples")
    decoder = Decoder(exported)
    if padding_id != "model":
        decoder.padding_id = _read_padding(decoder, padding_id)
    settings = make_settings(decoder, generate, sequence_length=sequence_length, **arguments)
    endpoints = make_endpoints(decoder, settings, batch_size, sequence_length)
    cases, warnings = CaseMaker(decoder, settings, endpoints, given or None).make_all()
    check_cache(decoder, settings, cases.get("encode"))
    if exported is not model:
        policies = ", ".join(list_reduced_policies(model))
        warnings = [*warnings, f"exported in float32; the model computes in {policies}"]
    return Exportable(
        exported,
        tuple(CheckedEndpoint(endpoint, cases[endpoint.name]) for endpoint in endpoints),
        warnings,
        Generation(decoder, settings, given),
    )


def _read_padding(decoder, padding_id):
    """The id that an encoder-decoder never writes."""
    if not decoder.has_source:
        raise ValueError(
            f"padding_id={padding_id} is for encoder-decoders: the padding of a language model is "
            "that of its embedding."
        )
    return next(iter(read_ids(decoder, "padding_id", padding_id)), None)


def check_cache(decoder, settings, encoded=None):
    """Raises ExportError unless tokens piece by piece give what the whole model gives.

    Args:
        encoded: cases of `encode`, of an encoder-decoder.
    """
    source = encoded[0].inputs if encoded else None
    rows = len(next(iter(source.values()))) if source else 2
    length = min(9, settings.max_length)
    shape, random = (rows, length), np.random.default_rng(1)
    tokens = draw_ids(random, decoder.vocabulary_size, shape, decoder.padding_id)
    expected = compute_logits(decoder, tokens, source)
    packed = pack_inputs(decoder.encoder, source) if source else None
    lengths = [size for size in (length // 2, 1, length - length // 2 - 1) if size]
    with keras.device("cpu:0"):
        cache = decoder.start(rows, settings.max_length, packed)
        error, scale = measure_piecewise_error(decoder, tokens, lengths, cache, expected)
    if not error <= TOLERANCE * scale:
        raise ExportError(
            f"{decoder.model.name} gives other logits token by token than for the whole sequence: "
            f"they differ by {error:.1e}, and {TOLERANCE * scale:.0e} is allowed. A layer of its "
            "own may look at other tokens without keeping them in the cache."
        )
