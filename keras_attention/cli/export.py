"""`export`: a trained model once more, in another format, precision or shape."""

import json

from keras_attention import export as exports
from keras_attention import models  # noqa: F401  (its layers are what a .keras file names)
from keras_attention.cli import folder as folders
from keras_attention.cli import sources, writing
from keras_attention.cli.console import say
from keras_attention.cli.tasks import TASKS
from keras_attention.export import keras_file

EXAMPLES = 8  # batches of real inputs to measure activations on
SHORT = {None: "", "float16": ".float16", "int8_weights": ".int8", "int8": ".full_int8"}


def export(model, output, *, format, quantization, batch_size, sequence_length, file, data_dir):
    """Writes the export and prints its report."""
    if format == "saved_model" and quantization:
        raise ValueError(f"--quantization {quantization} is for LiteRT; a SavedModel is float32.")
    folder, path = folders.locate(model, None if model.suffix == ".keras" else "keras")
    manifest = _manifest(folder)
    output = output or folder / default_name(format, quantization, batch_size, sequence_length)
    examples = None
    if quantization == "int8":
        examples = _examples(folder, manifest, file, data_dir)
    common = {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "examples": examples,
        "metadata": {name: value for name, value in manifest.items() if name != "files"},
        **writing.options(manifest),
    }
    loaded = keras_file.load(path)
    if format == "saved_model":
        report = exports.to_saved_model(loaded, output, **common)
    else:
        report = exports.to_litert(
            loaded,
            output,
            quantization=quantization,
            calibration=examples,
            **common,
        )
    say(str(report))


def default_name(format, quantization, batch_size, sequence_length):
    """`model.int8.1x128.tflite`, `saved_model_1x128`: what is free is `n`."""
    fixed = (
        ""
        if batch_size is None and sequence_length is None
        else _shape(batch_size, sequence_length)
    )
    if format == "saved_model":
        return folders.SAVED_MODEL + (f"_{fixed}" if fixed else "")
    return f"model{SHORT[quantization]}{f'.{fixed}' if fixed else ''}.tflite"


def _shape(batch_size, sequence_length):
    return f"{batch_size or 'n'}x{sequence_length or 'n'}"


def _manifest(folder):
    path = folder / folders.MANIFEST
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _examples(folder, manifest, file, data_dir):
    """Real inputs for calibration, of the development part of what the model was trained on."""
    dataset = manifest.get("dataset") if file is None else None
    if "task" not in manifest or (dataset is None and file is None):
        raise ValueError(
            "--quantization int8 measures activations on real inputs: name a labelled file "
            "with --file, or use int8_weights, which needs none."
        )
    loaded = sources.load(
        manifest["task"],
        dataset=dataset,
        files={"dev": file},
        label_column=manifest.get("label_column"),
        text_column=manifest.get("text_column"),
        languages=None if dataset else manifest.get("languages"),
        data_dir=data_dir,
    )
    task = TASKS[manifest["task"]]
    batches, _ = task.prepare(folder, manifest, loaded.dev, str(file or dataset))
    return [inputs for inputs, _ in batches.take(EXAMPLES).as_numpy_iterator()]
