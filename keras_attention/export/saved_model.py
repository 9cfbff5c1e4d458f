"""Export to a SavedModel, the format of TensorFlow Serving."""

import pathlib

from keras_attention.export import (
    backend,
    compare,
    files,
    generative,
    manifest,
    reload,
    saved_model_file,
    trace,
    weights,
)
from keras_attention.export.errors import ExportError
from keras_attention.export.report import ExportReport
from keras_attention.scope import MASK_CONSTANT


def to_saved_model(
    model,
    path,
    *,
    batch_size=None,
    sequence_length=None,
    examples=None,
    metadata=None,
    generate=None,
    max_length=None,
    max_new_tokens=None,
    begin_id=None,
    end_id=None,
):
    """Writes `model` as a SavedModel that runs with TensorFlow alone, and proves that it does.

    The folder has one signature, `serving_default`. It takes the model's inputs by name and
    returns its outputs by name: the keys of a dict, or the names of the output layers. Integer
    inputs are int32. The folder is read back in a new process without Keras (a few seconds), and
    what it computes there is compared with the model.

    Args:
        model: a functional `keras.Model` with one input, a list or a dict of them. One that
            computes in reduced precision is exported in float32.
        path: the folder to write. A SavedModel that is there already is replaced when the new one
            has passed all checks, not before.
        batch_size, sequence_length: int fixes the batch axis, or every other free axis; None
            leaves it free.
        examples: inputs to check with, a batch or an iterable of batches (dicts of arrays, or
            an array where there is one input). Made up from the embeddings' sizes if None.
        metadata: dict for `manifest.json` beside the folder: labels, vocabulary, lengths.
        generate, max_length, max_new_tokens, begin_id, end_id: for models that generate, as in
            `to_litert`; the signatures are then those of `docs/on-device.md`.

    Returns:
        `ExportReport`.

    Raises:
        ExportError: if the model cannot be exported, or the file computes something else.

    ```python
    import tempfile
    import keras
    import keras_attention as ka

    inputs = keras.Input((4,), name="features")
    model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(inputs))
    with tempfile.TemporaryDirectory() as folder:
        metadata = {"labels": ["cat", "dog"]}
        report = ka.export.to_saved_model(model, f"{folder}/saved_model", metadata=metadata)
    assert report.signatures[0].inputs[0].name == "features"
    assert report.max_abs_error < 1e-5
    ```
    """
    backend.tensorflow()
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
    with files.replacing(path) as new:
        owned = trace.save(work.model, work.endpoints, new, MASK_CONSTANT)
        report = _check(work, new, path, owned)
    manifest.write(report, metadata)
    return report


def _target(path):
    path = pathlib.Path(path)
    if path.suffix == ".tflite":
        raise ValueError(f"path={str(path)!r} names a LiteRT file: a SavedModel is a folder.")
    occupied = path.is_file() or (path.is_dir() and any(path.iterdir()))
    if occupied and not (path / "saved_model.pb").is_file():
        raise ValueError(f"path={str(path)!r} exists and is no SavedModel; it is left as it is.")
    return path


def _check(work, new, path, owned):
    signatures, ops = saved_model_file.read(new)
    signatures = work.check_shapes(signatures)
    stored = saved_model_file.values(new)
    if not owned <= stored <= owned + 1:  # the checkpoint's own index may count as one value
        raise ExportError(f"The checkpoint holds {stored} values for {owned} of the model.")
    parity = _parity(work, new)
    return ExportReport(
        path=str(path),
        format="saved_model",
        model=work.model.name,
        signatures=signatures,
        ops=ops,
        size=files.size(new),
        weights_bytes=weights.bytes_of(work.model),
        parity=tuple(parity),
        checks=(
            "the shapes are those asked for",
            "every variable is stored once",
            "runs in a new process without Keras, called by name",
            f"equals the model in {work.batches} batches",
        ),
        quantization=None,
        mask_constant=MASK_CONSTANT,
        gpu=(),
        warnings=tuple(work.warnings),
        versions=backend.versions("tensorflow"),
        sha256=files.sha256(new),
        generation=generative.sidecar(work),
    )


def _parity(work, folder):
    checked = [(point.endpoint.name, case) for point in work.points for case in point.cases]
    results = reload.run(folder, [(name, case.inputs) for name, case in checked])
    parity = []
    for (name, case), outputs in zip(checked, results, strict=True):
        measured = compare.measure(case, outputs, signature=name, runtime="TensorFlow")
        compare.check(case, measured, tolerance=compare.TOLERANCE["saved_model"])
        parity += measured
    return parity
