"""What a LiteRT file must pass, and the report of it."""

from keras_attention.export import (
    backend,
    files,
    flatbuffer,
    generative,
    gpu_profile,
    inventory,
    trial,
    weights,
)
from keras_attention.export.errors import ExportError
from keras_attention.export.report import ExportReport


def check(work, new, path, quantization, mask_constant):
    """The `ExportReport` of the file at `new`, which goes to `path`; ExportError where it fails.

    Args:
        work: `job.Job`.
        quantization, mask_constant: as in `to_litert`.
    """
    graph = flatbuffer.read(new)
    warnings = [*work.warnings, *inventory.check(graph, work.model)]
    signatures = work.check_shapes(graph.signatures)
    _check_static(graph, work)
    warnings += weights.check(graph, work.model, quantization)
    parity = []
    for point in work.points:
        parity += trial.run(new, point.endpoint, point.cases, quantization)
    drift = generative.drift_of(new, work, quantization)
    if drift is None:
        warnings += trial.notes(parity, quantization)
    return ExportReport(
        path=str(path),
        format="litert",
        model=work.model.name,
        signatures=signatures,
        ops=graph.ops,
        size=files.size(new),
        weights_bytes=weights.bytes_of(work.model),
        parity=tuple(parity),
        checks=(
            "built-in ops only, no variables, at most 4 axes",
            "the shapes are those asked for",
            "every weight is stored once",
            "runs in the stock runtime with and without XNNPACK, called by name",
            f"compared with the model in {work.batches} batches",
        ),
        quantization=quantization,
        mask_constant=mask_constant,
        gpu=gpu_profile.lint(graph),
        warnings=tuple(warnings),
        versions=backend.versions("tensorflow", "ai_edge_litert"),
        sha256=files.sha256(new),
        generation=generative.sidecar(work),
        drift=drift,
    )


def _check_static(graph, work):
    """With all inputs fixed, every tensor must be: delegates refuse the file otherwise."""
    if any(None in tensor.shape for e in work.endpoints for tensor in e.inputs):
        return
    for op in graph.operators:
        if any(None in tensor.shape for tensor in op.outputs):
            culprit = inventory.culprit(op, work.model)
            raise ExportError(
                f"All inputs are fixed, but the shape of what {culprit} computes is not.",
                op=culprit.op,
                layer=culprit.layer,
            )
