"""`make_exportable`: makes the `Exportable` of a model, with or without generation."""

import keras
import numpy as np

from keras_attention.export import exportable
from keras_attention.export.batches import read_batches
from keras_attention.export.checks.cases import draw_ids
from keras_attention.export.endpoint import make_endpoint, pack_inputs
from keras_attention.export.errors import ExportError
from keras_attention.export.exportable import CheckedEndpoint, Exportable
from keras_attention.export.generation.cases import CaseMaker
from keras_attention.export.generation.endpoints import make_endpoints
from keras_attention.export.generation.reference import compute_logits
from keras_attention.export.generation.settings import Generation, make_plan
from keras_attention.export.hearing import Hearing, make_hearing
from keras_attention.export.precision import (
    check_stateless,
    convert_to_float32,
    list_reduced_policies,
)
from keras_attention.generation.decoder import Decoder
from keras_attention.generation.piecewise import measure_piecewise_error

TOLERANCE = 1e-4  # for logits with a cache, relative to the largest logit (or 1 if it is smaller)


def make_exportable(model, generate, *, batch_size=None, sequence_length=None, examples=None):
    """Return the `Exportable` of a model: the model with its endpoints and test cases.

    Args:
        model: functional `keras.Model`, or a dict from the names of signatures to such models.
        generate: a `Generation`, or its sampler, or a `Hearing`. None exports the model as one
            function, without generation.
        batch_size, sequence_length: int, fixed sizes, or None for dynamic axes.
        examples: batches for comparing the file with the model. None makes random inputs.
    """
    if isinstance(model, dict):
        if generate is not None:
            raise ValueError(
                f"generate= is for one model, but the file has the signatures {', '.join(model)}. "
                "Export the model that generates alone."
            )
        return exportable.make_joint_exportable(model, batch_size, sequence_length, examples)
    if generate is None:
        return exportable.make_plain_exportable(model, batch_size, sequence_length, examples)
    if isinstance(generate, Hearing):
        return make_hearing(model, generate, batch_size)
    check_stateless(model)
    exported = convert_to_float32(model)
    batches = []
    if examples is not None:
        batches = read_batches(examples, make_endpoint(exported), "examples")
    decoder = Decoder(exported)
    request = generate if isinstance(generate, Generation) else Generation(generate)
    plan = make_plan(decoder, request, batch_size, sequence_length, batches)
    endpoints = make_endpoints(plan)
    cases, warnings = CaseMaker(plan, endpoints).make_all()
    check_cache(plan, cases.get("encode"))
    if exported is not model:
        policies = ", ".join(list_reduced_policies(model))
        warnings = [*warnings, f"exported in float32. The model computes in {policies}"]
    checked = tuple(CheckedEndpoint(endpoint, cases[endpoint.name]) for endpoint in endpoints)
    return Exportable(exported, checked, warnings, plan)


def check_cache(plan, encoded=None):
    """Raise an ExportError if a model gives other logits with a cache than without.

    With a cache, the model reads a sequence in pieces. Without a cache, it reads the whole sequence
    at once.

    Args:
        plan: `GenerationPlan`, which contains the model and its settings.
        encoded: list of the test cases of `encode`. None for a language model.
    """
    decoder = plan.decoder
    source = encoded[0].inputs if encoded else None
    rows = len(next(iter(source.values()))) if source else 2
    length = min(9, plan.max_length)
    shape, random = (rows, length), np.random.default_rng(1)
    tokens = draw_ids(random, decoder.vocabulary_size, shape, plan.padding.id)
    expected = compute_logits(decoder, tokens, source)
    packed = pack_inputs(decoder.encoder, source) if source else None
    lengths = [size for size in (length // 2, 1, length - length // 2 - 1) if size]
    with keras.device("cpu:0"):
        cache = decoder.start(rows, plan.max_length, packed)
        error, scale = measure_piecewise_error(decoder, tokens, lengths, cache, expected)
    if not error <= TOLERANCE * scale:
        raise ExportError(
            f"{decoder.model.name} gives other logits token by token than for the whole sequence. "
            f"They differ by {error:.1e}, and {TOLERANCE * scale:.0e} is allowed. Look for a layer "
            "that mixes tokens without a cache."
        )
