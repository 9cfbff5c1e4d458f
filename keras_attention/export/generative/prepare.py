"""The export job of a model that generates."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_attention.export import batches, precision
from keras_attention.export import endpoint as plain
from keras_attention.export.errors import ExportError
from keras_attention.export.generative import endpoints, settings, whole
from keras_attention.export.generative.cases import Maker
from keras_attention.export.job import Job, Point
from keras_attention.generation.decoder import Decoder

TOLERANCE = 1e-4  # of logits that a cache gives, per unit of the largest (at least 1)


@dataclasses.dataclass(frozen=True)
class Generation:
    """What is exported of a model that generates, beside its endpoints.

    Attributes:
        decoder: `Decoder`.
        settings: `settings.Settings`.
        examples: list of batches for the whole model, dicts of arrays; empty where none were given.
    """

    decoder: object
    settings: object
    examples: list

    def sidecar(self, points):
        """What the caller of a file must know that its signatures do not say, as plain values."""
        decoder, chosen = self.decoder, self.settings
        step = next(point for point in points if point.name == "step")
        return {
            "kind": "encoder_decoder" if decoder.has_source else "language_model",
            "vocabulary_size": decoder.vocabulary_size,
            "padding_id": 0,
            "begin_id": chosen.begin_id,
            "end_ids": list(chosen.end_ids),
            "max_length": chosen.max_length,
            "max_new_tokens": chosen.max_new_tokens,
            "least_prompt": decoder.plan.least_prompt(chosen.max_length),
            "samplers": {n: _described(rules.sampler) for n, rules in chosen.rules.items()},
            "cache": [_entry(t, step.outputs) for t in step.inputs if t.name in step.cache],
        }


def _described(sampler):
    return {"name": type(sampler).__name__, **sampler.get_config()}


def _entry(tensor, changed):
    shape = list(tensor.shape)
    return {
        "name": tensor.name,
        "shape": shape,
        "dtype": tensor.dtype,
        "changes": tensor.name in changed,
    }


def prepare(model, generate, *, batch_size, sequence_length, examples, **arguments):
    """The job: the model in float32, all its endpoints, and what they are checked on.

    Args:
        generate, arguments: as for `settings.of`.
    """
    exported = precision.in_float32(model)
    given = [] if examples is None else batches.read(examples, plain.of(exported), "examples")
    decoder = Decoder(exported)
    chosen = settings.of(decoder, generate, sequence_length=sequence_length, **arguments)
    points = endpoints.of(decoder, chosen, batch_size, sequence_length)
    maker = Maker(decoder, chosen, points, given or None)
    cases, warnings = maker.all()
    check_cache(decoder, chosen, cases.get("encode"))
    if exported is not model:
        policies = ", ".join(precision.reduced(model))
        warnings = [*warnings, f"exported in float32; the model computes in {policies}"]
    return Job(
        exported,
        tuple(Point(point, cases[point.name]) for point in points),
        warnings,
        Generation(decoder, chosen, given),
    )


def check_cache(decoder, chosen, encoded=None):
    """Raises ExportError unless tokens piece by piece give what the whole model gives.

    Args:
        encoded: cases of `encode`, of an encoder-decoder.
    """
    source = encoded[0].inputs if encoded else None
    rows = len(next(iter(source.values()))) if source else 2
    length = min(9, chosen.max_length)
    tokens = np.random.default_rng(1).integers(
        1, decoder.vocabulary_size, (rows, length), dtype="int32"
    )
    expected = whole.logits(decoder, tokens, source)
    packed = plain.pack(decoder.encoder, source) if source else None
    with keras.device("cpu:0"):
        cache, found, index = decoder.start(rows, chosen.max_length, packed), [], 0
        for piece in filter(np.size, np.split(tokens, [length // 2, length // 2 + 1], axis=1)):
            now = ops.convert_to_tensor(index, dtype="int32")
            logits, cache = decoder.step(ops.convert_to_tensor(piece), cache, now)
            found.append(np.asarray(logits))
            index += piece.shape[1]
    error = float(np.abs(np.concatenate(found, axis=1) - expected).max())
    scale = max(1.0, float(np.abs(expected).max()))
    if not error <= TOLERANCE * scale:
        raise ExportError(
            f"{decoder.model.name} gives other logits token by token than for the whole sequence: "
            f"they differ by {error:.1e}, and {TOLERANCE * scale:.0e} is allowed. A layer of its "
            "own may look at other tokens without keeping them in the cache."
        )
