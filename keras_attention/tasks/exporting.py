"""Export the model of a task in one format, or in the three formats of a preset."""

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
SHORT = {
    None: "",
    "float16": ".float16",
    "int8_weights": ".int8",
    "int4_weights": ".int4",
    "int8": ".full_int8",
}


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
    """Write a model as a LiteRT file or a SavedModel, and return the `ExportReport`.

    Args:
        model: `keras.Model`, or a dict from the names of signatures to models.
        output: path of the file or folder to write.
        format: `"litert"` or `"saved_model"`.
        examples: list of input batches for comparing the outputs of the file and the model, and
            for calibrating an `"int8"` export. None uses random inputs.
        metadata: dict, additional entries of the manifest.
        quantization: str, how weights are stored, such as `"int8_weights"`. None for float32.
        batch_size, sequence_length: int, fixed sizes of the inputs. None accepts any size.
        compatible_with: list of LiteRT runtimes to check, such as `"gpu"` (`ka.export.to_litert`).

    Raises:
        ValueError: `format` is unknown, or an argument is only for LiteRT.
    """
    if format not in FORMATS:
        raise ValueError(f"format={format!r}: expected one of {', '.join(FORMATS)}.")
    if format == "saved_model" and compatible_with:
        raise ValueError(
            f"compatible_with={compatible_with[0]!r} is for LiteRT: leave it out, or choose LiteRT."
        )
    if format == "saved_model" and quantization:
        raise ValueError(
            f"quantization={quantization!r} is for LiteRT, and a SavedModel is float32: leave it "
            "out, or choose LiteRT."
        )
    if quantization == "int8" and examples is None:
        raise ValueError(
            "quantization='int8' measures activations on real inputs: pass labelled examples "
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
    """Make the `Generation` (sampler, length and start ids) that an exported file implements.

    `metadata` is the task's part of `manifest.json`. Return None if the model generates no text.
    """
    options = get_generation_options(metadata)
    return Generation(options.pop("generate"), **options) if options else None


@contextlib.contextmanager
def keep_preprocessing(preprocessor, path):
    """Context manager around an export to `path`: save the files of `preprocessor` next to `path`.

    An app needs these files (vocabularies or tokenizer, labels, and the entry `preprocessing` of
    `manifest.json`), and so does `from_preset` to open the exported file. They are written after
    the export. If one of them would overwrite a file of another model, or a file that
    `manifest.json` does not list, none is written, and a warning is issued.
    """
    folder = pathlib.Path(path).parent
    with tempfile.TemporaryDirectory() as made:
        preprocessor.save(made)
        problem = _find_conflict(pathlib.Path(made), pathlib.Path(path))
    yield
    if problem is None:
        preprocessor.save(folder)
    else:
        warnings.warn(problem, stacklevel=4)


def _find_conflict(made, path):
    """Return a warning, a str, if saving a preprocessor would overwrite files of another model.

    `made` is the folder with the new files, and `path` the exported file, whose folder they will be
    copied to. Return None without such a conflict.
    """
    folder, listed = path.parent, manifests.read_manifest(path.parent).get("files", {})
    models = [name for name in listed if name != path.name and (folder / name).exists()]
    models = [n for n in models if n.endswith((".keras", ".tflite")) or (folder / n).is_dir()]
    for new in sorted(made.iterdir()):
        old = folder / new.name
        if new.name == manifests.MANIFEST or not old.exists():
            continue
        if manifests.compute_sha256(old) == manifests.compute_sha256(new):
            continue
        if new.name not in listed or models:
            reader = f"that {models[0]} reads" if new.name in listed else "of something else"
            return (
                f"{path} is written without the files that an app needs, because {folder} has a "
                f"{new.name} {reader}. Give the export a folder of its own, such as "
                f"{folder / path.stem / path.name}."
            )
    return None


def export_all(model, folder, *, examples, metadata):
    """Prepare the three exports of a preset: SavedModel, LiteRT, and LiteRT with int8 weights.

    The caller writes each file to `folder` by calling a function, which also compares the outputs
    of the file and the model on `examples`, a list of input batches. `metadata` is a dict, the
    task's part of `manifest.json`.

    Yields:
        Tuples of a file name, and a function without arguments that writes the file and returns its
        report.
    """
    generate = _make_generation(metadata)
    common = {"examples": examples, "metadata": metadata, "generate": generate}
    yield SAVED_MODEL, lambda: to_saved_model(model, folder / SAVED_MODEL, **common)
    with trace_once(model, **common) as write:
        yield LITERT, lambda: write(folder / LITERT)
        yield LITERT_INT8, lambda: write(folder / LITERT_INT8, "int8_weights")


def choose_name(format, quantization, shape):
    """Return the name of an exported file, such as `model.int8.1x128.tflite`.

    `format` and `quantization` are arguments of `export_model`. `shape` is the part for fixed input
    sizes that `name_shape` returns, or None.
    """
    if format == "saved_model":
        return "_".join(filter(None, [SAVED_MODEL, shape]))
    return f"model{SHORT[quantization]}{f'.{shape}' if shape else ''}.tflite"


def name_shape(batch_size, sequence_length, has_length):
    """Return the part of a file name that states fixed input sizes, such as `1x128`.

    `batch_size` and `sequence_length` are ints, or None for any size, written as `n`. If the inputs
    have no sequence axis (`has_length` is False), the result is only the batch size. Return None if
    no axis has a fixed size.
    """
    if batch_size is None and sequence_length is None:
        return None
    batch = str(batch_size or "n")
    return f"{batch}x{sequence_length or 'n'}" if has_length else batch
