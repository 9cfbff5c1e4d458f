"""The `export` and `inspect` commands, which export a model and describe a model file."""

import contextlib
import pathlib

from keras_attention.cli.printing import say
from keras_attention.cli.sources import Source
from keras_attention.export import inspection
from keras_attention.export.checks.runner import load_keras_model
from keras_attention.export.exportable import list_models
from keras_attention.files.manifest import check_unchanged
from keras_attention.tasks.exporting import (
    choose_name,
    export_model,
    keep_preprocessing,
    name_shape,
)
from keras_attention.tasks.folders import FORMATS, find_model_file, read_any_manifest
from keras_attention.tasks.presets import find_preset
from keras_attention.tasks.registry import get_task_class
from keras_attention.tasks.task import CALIBRATING


def export(preset, output, *, file, data_dir, **options):
    """Export a model, and print the report.

    Args:
        preset: path of a preset, the folder of a trained model, or of a `.keras` file.
        output: path of the new file or folder. None chooses a name in the folder of the model.
        file: path of a file with examples for calibrating an int8 export. None uses the
            development split of the dataset that the model was trained on.
        data_dir: path of the folder for datasets. None uses the default.
        **options: other arguments of `export_file`.
    """

    def find_examples(task):
        if file is None and not task.source.get("dataset"):
            return None
        files = {} if file is None else {"dev": file}
        source = Source.from_manifest(task.metadata, files=files, data_dir=data_dir)
        name = str(file or source.dataset)
        batches = task.make_batches(source.load(task.builder).dev, name)
        return task.take_inputs(batches, CALIBRATING)

    say(str(export_file(find_preset(preset), output, find_examples=find_examples, **options)))


def export_file(
    path,
    output,
    *,
    format,
    quantization,
    batch_size,
    sequence_length,
    compatible_with=(),
    find_examples=lambda task: None,
):
    """Export the Keras model of a preset, or any `.keras` file, and return the `ExportReport`.

    Args:
        path: path of the preset or the file.
        output: path of the new file or folder. None chooses a name in the folder of the model.
        format: `"litert"` or `"saved_model"`.
        find_examples: function from a task to a list of input batches for calibrating an int8
            export, or None.
        quantization, batch_size, sequence_length, compatible_with: how the file stores weights, its
            fixed sizes, and the runtimes that must run it, explained in `ka.export.to_litert`.
    """
    path = pathlib.Path(path)
    folder, file = find_model_file(path, None if path.suffix == ".keras" else "keras")
    manifest = read_any_manifest(folder)
    task = examples = None
    if "task" in manifest:
        task = get_task_class(manifest["task"]).open_file(file, manifest)
        model = task.make_exportable(task.model)
        examples = find_examples(task) if quantization == "int8" else task.make_examples()
    else:
        check_unchanged(file)
        model = load_keras_model(file)
    inputs = [tensor for one in list_models(model) for tensor in one.inputs]
    has_length = any(None in tensor.shape[1:] for tensor in inputs)
    shape = name_shape(batch_size, sequence_length, has_length)
    output = pathlib.Path(output or folder / choose_name(format, quantization, shape))
    preprocessing = contextlib.nullcontext()
    if task is not None and output.parent.resolve() != folder.resolve():
        preprocessing = keep_preprocessing(task.preprocessor, output)
    with preprocessing:
        return export_model(
            model,
            output,
            format=format,
            quantization=quantization,
            batch_size=batch_size,
            sequence_length=sequence_length,
            compatible_with=compatible_with,
            examples=examples,
            metadata={name: value for name, value in manifest.items() if name != "files"},
        )


def inspect(path):
    """Print the signatures, ops and size of a model file, or of each model file in a preset."""
    path = find_preset(path)
    files = [path / name for name in FORMATS.values() if (path / name).exists()]
    for k, file in enumerate(files or [path]):
        content = inspection.inspect(file)
        if not content.signatures:
            raise ValueError(f"{file} is damaged: it has no signature.")
        say(("\n" if k else "") + str(content))
