"""Whether a file computes what a model computes, on inputs of one's own."""

import dataclasses

from keras_attention.export import (
    backend,
    batches,
    cases,
    compare,
    endpoint,
    files,
    flatbuffer,
    precision,
    runner,
)


def verify(model, path, inputs, *, tolerance=None):
    """Runs the file at `path` on `inputs` and compares it with `model`.

    Args:
        model: the functional `keras.Model` that the file should equal. (One in reduced precision
            is compared in float32, as it is exported.)
        path: a SavedModel folder, a `.tflite` or a `.keras` file.
        inputs: a batch or an iterable of batches: dicts of arrays, or arrays where the model has
            one input.
        tolerance: float, the largest absolute error allowed per unit of the largest output (at
            least 1). By default 1e-5, for LiteRT 1e-4 or 1e-2 with float16 weights; int8 files
            are only measured, and refused for NaN.

    Returns:
        dict, output name -> `Parity`, the worst over all batches.

    Raises:
        ExportError: where the file is further off than `tolerance`, gives NaN, or lacks an output.
        ValueError: if there is no model at `path`, or it takes other inputs.
    """
    backend.tensorflow()
    kind, execute = files.kind(path), runner.load(path)
    if tolerance is None:
        tolerance = compare.TOLERANCE["saved_model"] if kind != "litert" else _tolerance(path)
    own = endpoint.of(precision.in_float32(model))
    worst = {}
    for batch in batches.read(inputs, own, "inputs", most=None):
        case = cases.Case(batch, cases.run(own, batch))
        measured = compare.measure(case, execute(batch), signature=own.name, runtime=kind)
        compare.check(case, measured, tolerance=tolerance)
        for parity in measured:
            worst[parity.output] = _worse(worst.get(parity.output), parity)
    return worst


def _tolerance(path):
    dtypes = {tensor.dtype for tensor in flatbuffer.read(path).constants}
    quantization = "int8" if "int8" in dtypes else "float16" if "float16" in dtypes else None
    return compare.TOLERANCE.get(quantization)


def _worse(known, parity):
    if known is None:
        return parity
    error = max(known.max_abs_error, parity.max_abs_error)
    agreement = parity.argmax_agreement
    if agreement is not None:
        agreement = min(known.argmax_agreement, agreement)
    batch = parity.batch if error == parity.max_abs_error else known.batch
    return dataclasses.replace(parity, batch=batch, max_abs_error=error, argmax_agreement=agreement)
