"""Exports of a task's model: one format, or all three that a preset has; what lies beside them."""

import contextlib
import pathlib
import tempfile
import warnings

from keras_attention.export import Generation, to_litert, to_saved_model
from keras_attention.export.litert import trace_once
from keras_attention.files import manifest as manifests
from keras_attention.tasks.folders import LITERT, LITERT_INT8, SAVED_MODEL
from keras_attention.tasks.generators import get_generation_options

FORMATS = ("litert", "saved_model")
SHORT = {None: "", "float16": ".float16", "int8_weights": ".int8", "int8": ".full_int8"}


def export_model(
    model,
    output,
    *,
    format,
    quantization=None,
    batch_size=None,
    sequence_length=None,
    compatible_with=(),
    examples=None,
    metadata=None,
):
    """Writes one export; gives its report.

    Args:
        format: `"litert"` or `"saved_model"`.
        examples: list of batches of inputs to compare on, and to measure activations on; or None.
        metadata: dict, entries of the manifest.
        The others as for `ka.export.to_litert`.
    """
    if format not in FORMATS:
        raise ValueError(f"format={format!r}: expected one of {', '.join(FORMATS)}.")
    if format == "saved_model" and compatible_with:
        raise ValueError(
            f"compatible_with={compatible_with[0]!r} is for LiteRT; TensorFlow runs a SavedModel."
        )
    if format == "saved_model" and quantization:
        raise ValueError(f"quantization={quantization!r} is for LiteRT; a SavedModel is float32.")
    if quantization == "int8" and examples is None:
        raise ValueError(
            "quantization='int8' measures activations on real inputs: name a labelled file "
            "with calibration=, or use int8_weights, which needs none."
        )
    common = {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "examples": examples,
        "metadata": metadata,
        "generate": _make_generation(metadata or {}),
    }
    if format == "saved_model":
        return to_saved_model(model, output, **common)
    return to_litert(
        model,
        output,
        quantization=quantization,
        calibration=examples if quantization == "int8" else None,
        compatible_with=compatible_with,
        **common,
    )


def _make_generation(metadata):
    """Return the `Generation` of a manifest, or None where the model does not generate."""
    options = get_generation_options(metadata)
    return Generation(options.pop("generate"), **options) if options else None


@contextlib.contextmanager
def keep_preprocessing(preprocessor, path):
    """Return an export to `path` within: what `preprocessor.save` writes then lies beside it.

    So an app has the vocabularies or the tokenizer, and the labels, with `preprocessing` in the
    manifest, and `from_preset` opens the file. Where that would replace a file that no manifest
    knows, or one that another model in the folder reads, it is left out with a warning.
    """
    folder = pathlib.Path(path).parent
    with tempfile.TemporaryDirectory() as made:
        preprocessor.save(made)
        problem = _find_what_is_in_the_way(pathlib.Path(made), pathlib.Path(path))
    yield
    if problem is None:
        preprocessor.save(folder)
    else:
        warnings.warn(problem, stacklevel=4)


def _find_what_is_in_the_way(made, path):
    """Return a warning about a file beside `path` that one in `made` would replace, or None."""
    folder, known = path.parent, manifests.read_manifest(path.parent).get("files", {})
    models = [name for name in known if name != path.name and (folder / name).exists()]
    models = [n for n in models if n.endswith((".keras", ".tflite")) or (folder / n).is_dir()]
    for new in sorted(made.iterdir()):
        old = folder / new.name
        if new.name == manifests.MANIFEST or not old.exists():
            continue
        if manifests.compute_sha256(old) == manifests.compute_sha256(new):
            continue
        if new.name not in known or models:
            owner = f"that {models[0]} reads" if new.name in known else "of something else"
            return (
                f"{path} is written without what an app needs beside it: {folder} holds a "
                f"{new.name} {owner}. Give the export a folder of its own, such as "
                f"{folder / path.stem / path.name}."
            )
    return None


def export_all(model, folder, *, examples, metadata):
    """Return the three exports of a preset, each compared with the model on `examples`.

    Yields:
        (file name, function without arguments that makes it and gives its report).
    """
    generate = _make_generation(metadata)
    common = {"examples": examples, "metadata": metadata, "generate": generate}
    yield SAVED_MODEL, lambda: to_saved_model(model, folder / SAVED_MODEL, **common)
    with trace_once(model, **common) as write:
        yield LITERT, lambda: write(folder / LITERT)
        yield LITERT_INT8, lambda: write(folder / LITERT_INT8, "int8_weights")


def choose_name(format, quantization, shape):
    """`model.int8.1x128.tflite`, `saved_model_1x128`; without a shape, all is free."""
    if format == "saved_model":
        return "_".join(filter(None, [SAVED_MODEL, shape]))
    return f"model{SHORT[quantization]}{f'.{shape}' if shape else ''}.tflite"


def name_shape(batch_size, sequence_length, has_length):
    """`1x128`, or `1` for inputs without a length; a free axis is `n`; None if all are free."""
    if batch_size is None and sequence_length is None:
        return None
    batch = str(batch_size or "n")
    return f"{batch}x{sequence_length or 'n'}" if has_length else batch
