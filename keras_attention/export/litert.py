"""Export to LiteRT (`.tflite`), the format of phones and other small devices."""

import pathlib
import tempfile

from keras_attention.export import (
    backend,
    batches,
    convert,
    files,
    generative,
    litert_check,
    lookups,
    manifest,
    memory,
    trace,
    weights,
)

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

    With `generate=` a model that generates has others in its place, over one copy of the weights:
    `encode` reads a source (of an encoder-decoder), `step` takes any number of new tokens, `index`
    and the cache, and gives logits and the cache; `generate` and `beam` are whole loops. They are
    written down for callers in `docs/on-device.md`, and `LiteRTGenerator` is one.

    Args:
        model: a functional `keras.Model` with one input, a list or a dict of them. One that
            computes in reduced precision is exported in float32.
        path: the file to write, ending in `.tflite`. A file that is there already is replaced
            when the new one has passed all checks, not before.
        quantization: None, `"float16"` (half the size), `"int8_weights"` (a quarter, and usually
            the fastest on CPUs) or `"int8"` (activations, too; needs `calibration`).
        calibration: iterable of batches of real inputs, as `examples`, all of which are run.
        batch_size, sequence_length: int fixes the batch axis, or every other free axis; None
            leaves it free. GPU and NPU delegates want both fixed. With `generate=` the length is
            that of a source, or of a language model's prompts, which `prefill` then takes in
            pieces of that length, and `step` takes one token.
        examples: inputs to check with, a batch or an iterable of batches (dicts of arrays, or
            an array where there is one input). Made up from the embeddings' sizes if None. Int8
            files must agree with the model on given examples; made-up ones only warn. Of a model
            that generates they are whole texts, and the report has the file's `Drift` on them.
        metadata: dict for `manifest.json` beside the file: labels, vocabulary, lengths.
        mask_constant: float, what masks add to scores; by default -1e9, or -1e4 for float16 and
            -100 for int8.
        generate: for a causal language model or an encoder-decoder: `"greedy"`, a sampler, a
            `Beam`, or a list of a sampler and a `Beam`; an empty list gives `step` without loops.
            A sampler that draws takes chance as an input, `uniform`.
        max_length: int, tokens that the cache has room for, old and new; 256 by default, or what
            the model's positions have room for.
        max_new_tokens: int, how many tokens `generate` and `beam` write at most.
        begin_id: int, what an encoder-decoder writes first. end_id: int or several, what ends a
            text; without one it is as long as it may be.

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

    model = ka.models.causal_language_model(20, num_layers=1, num_heads=2, hidden_dim=8)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.tflite"
        ka.export.to_litert(model, path, generate="greedy", max_length=16, max_new_tokens=4)
        output = ka.export.load(path, "generate")({"token_ids": [[5, 7, 11]]})
    assert output["generated_ids"].shape == (1, 4)
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
        if quantization == "int8_weights":
            content = lookups.compact(content)
        new.write_bytes(content)
        report = litert_check.check(work, new, path, quantization, mask_constant)
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
