"""Export to LiteRT (`.tflite`), the format of phones and other small devices."""

import pathlib
import tempfile

from keras_attention.export import (
    backend,
    batches,
    convert,
    files,
    flatbuffer,
    generative,
    gpu_profile,
    inventory,
    manifest,
    memory,
    trace,
    trial,
    weights,
)
from keras_attention.export.errors import ExportError
from keras_attention.export.report import ExportReport

# What masks add to scores. float16 ends at 65504; in int8 the constant sets the scale of the
# score tensor, and one of -1e4 leaves no levels for the scores themselves.
MASK_CONSTANTS = {None: -1e9, "int8_weights": -1e9, "float16": -1e4, "int8": -100.0}


def to_litert(
    model,
    path,
    *,
    quantization=None,
    calibration=None,
    batch_size=None,
    sequence_length=None,
    examples=None,
    metadata=None,
    mask_constant=None,
    generate=None,
    max_length=None,
    max_new_tokens=None,
    begin_id=None,
    end_id=None,
):
    """Writes `model` as a LiteRT file of built-in ops only, and proves that it runs.

    The file has one signature, `serving_default`, which takes the model's inputs by name and
    returns its outputs by name, as `to_saved_model` does. Its ops are counted, and the stock
    runtime runs it with and without XNNPACK; what it computes is compared with the model.

    Args:
        model: a functional `keras.Model` with one input, a list or a dict of them. One that
            computes in reduced precision is exported in float32.
        path: the file to write, ending in `.tflite`. A file that is there already is replaced
            when the new one has passed all checks, not before.
        quantization: None, `"float16"` (half the size), `"int8_weights"` (a quarter, and usually
            the fastest on CPUs) or `"int8"` (activations, too; needs `calibration`).
        calibration: iterable of batches of real inputs, as `examples`, all of which are run.
        batch_size, sequence_length: int fixes the batch axis, or every other free axis; None
            leaves it free. GPU and NPU delegates want both fixed.
        examples: inputs to check with, a batch or an iterable of batches (dicts of arrays, or
            an array where there is one input). Made up from the embeddings' sizes if None. Int8
            files must agree with the model on given examples; made-up ones only warn.
        metadata: dict for `manifest.json` beside the file: labels, vocabulary, lengths.
        mask_constant: float, what masks add to scores; by default -1e9, or -1e4 for float16 and
            -100 for int8.

    Returns:
        `ExportReport`.

    Raises:
        ExportError: if the model needs an op that LiteRT lacks (its `op` and `layer` name it), or
            the file computes something else than the model.

    ```python
    import tempfile
    import keras
    import keras_attention as ka

    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(20, 4, mask_zero=True)(ids)
    model = keras.Model(ids, keras.layers.Dense(2, name="logits")(x))
    with tempfile.TemporaryDirectory() as folder:
        report = ka.export.to_litert(model, f"{folder}/model.tflite")
        logits = ka.export.load(f"{folder}/model.tflite")({"token_ids": [[5, 7, 0]]})["logits"]
    assert logits.shape == (1, 3, 2)
    assert report.max_abs_error < 1e-4
    ```
    """
    backend.tensorflow()
    backend.litert()
    _check_arguments(quantization, calibration, generate)
    path = _target(path)
    manifest.check(path.parent, metadata)
    work = generative.job(
        model,
        generate,
        batch_size=batch_size,
        sequence_length=sequence_length,
        examples=examples,
        max_length=max_length,
        max_new_tokens=max_new_tokens,
        begin_id=begin_id,
        end_id=end_id,
    )
    if calibration is not None:
        calibration = batches.read(calibration, work.endpoints[0], "calibration", most=None)
    memory.check(weights.bytes_of(work.model))
    if mask_constant is None:
        mask_constant = MASK_CONSTANTS[quantization]
    with files.replacing(path) as new:
        with tempfile.TemporaryDirectory() as folder:
            trace.save(work.model, work.endpoints, folder, mask_constant)
            content = convert.convert(
                folder,
                work.endpoints,
                work.model,
                quantization=quantization,
                calibration=calibration,
            )
        new.write_bytes(content)
        report = _check(work, new, path, quantization, mask_constant)
    manifest.write(report, metadata)
    return report


def _check_arguments(quantization, calibration, generate):
    if quantization not in MASK_CONSTANTS:
        known = ", ".join(repr(name) for name in MASK_CONSTANTS)
        raise ValueError(f"quantization={quantization!r} is unknown. Known: {known}.")
    if quantization == "int8" and generate is not None:
        raise ValueError(
            'quantization="int8" also rounds what a decoder keeps, and the rounding adds up token '
            'by token: use "int8_weights" for models that generate.'
        )
    if (quantization == "int8") != (calibration is not None):
        raise ValueError(
            'quantization="int8" measures its activations on real inputs: pass calibration=, an '
            "iterable of batches."
            if calibration is None
            else f'calibration= is for quantization="int8"; received {quantization!r}.'
        )


def _target(path):
    path = pathlib.Path(path)
    if path.suffix != ".tflite" or path.is_dir():
        raise ValueError(f"path={str(path)!r} must name a file that ends in .tflite.")
    return path


def _check(work, new, path, quantization, mask_constant):
    graph = flatbuffer.read(new)
    warnings = [*work.warnings, *inventory.check(graph, work.model)]
    signatures = work.check_shapes(graph.signatures)
    _check_static(graph, work)
    warnings += weights.check(graph, work.model, quantization)
    parity = []
    for point in work.points:
        parity += trial.run(new, point.endpoint, point.cases, quantization)
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
        drift=generative.drift(new, work),
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
