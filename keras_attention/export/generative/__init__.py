"""Models that generate, as files: `encode`, `step`, `generate`, `beam` over one copy of weights."""

from keras_attention.export import compare
from keras_attention.export import job as plain
from keras_attention.export.errors import ExportError
from keras_attention.export.generative import drift, prepare
from keras_attention.export.generative.settings import given


def job(model, generate, *, batch_size, sequence_length, examples, **arguments):
    """The export job: of the endpoints that generate, or of the model as it is.

    Args:
        generate: None, a sampler or several.
        arguments: what only models that generate take, see `settings.of`.
    """
    common = {"batch_size": batch_size, "sequence_length": sequence_length, "examples": examples}
    if generate is not None:
        return prepare.prepare(model, generate, **common, **arguments)
    if names := given(**arguments):
        raise ValueError(
            f"{', '.join(names)} is for files that generate: pass generate= too, a sampler such as "
            '"greedy".'
        )
    return plain.prepare(model, **common)


def sidecar(work):
    """What the report of a job says of how its file generates; None where it does not."""
    return work.generation and work.generation.sidecar(work.endpoints)


def drift_of(path, work, quantization):
    """The `Drift` of the LiteRT file of a job; None where no examples say it.

    Raises ExportError where a quantized file would too often go on with another token.
    """
    generation = work.generation
    if generation is None or not generation.examples:
        return None
    found = drift.measure(path, generation)
    floor = compare.AGREEMENT.get(quantization, 0.0)
    if found.agreement < floor:
        raise ExportError(
            "The quantized file writes other texts than the model: after the same tokens of the "
            f"examples it goes on alike in {found.agreement:.3f} of the positions; {floor} is the "
            "least allowed."
        )
    return found
