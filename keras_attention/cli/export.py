"""`export` and `inspect`: another file of a trained model, and the contents of a model file."""

from keras_attention.cli import datasets
from keras_attention.cli.console import say
from keras_attention.cli.folder import FORMATS, SAVED_MODEL, find_model_file, read_any_manifest
from keras_attention.cli.generating_files import get_generation_options
from keras_attention.cli.tasks import TASKS
from keras_attention.data.manifest import check_unchanged
from keras_attention.export import inspection, runner, to_litert, to_saved_model

EXAMPLES = 8  # batches of real inputs to measure activations on
SHORT = {None: "", "float16": ".float16", "int8_weights": ".int8", "int8": ".full_int8"}


def export(
    model,
    output,
    *,
    format,
    quantization,
    batch_size,
    sequence_length,
    compatible_with,
    file,
    data_dir,
):
    """Writes the export and prints its report."""
    if format == "saved_model" and compatible_with:
        raise ValueError(
            f"--compatible-with {compatible_with[0]} is for LiteRT; TensorFlow runs a SavedModel."
        )
    if format == "saved_model" and quantization:
        raise ValueError(f"--quantization {quantization} is for LiteRT; a SavedModel is float32.")
    folder, path = find_model_file(model, None if model.suffix == ".keras" else "keras")
    manifest = read_any_manifest(folder)
    check_unchanged(path)
    loaded = runner.load_keras_model(path)
    has_length = any(None in tensor.shape[1:] for tensor in loaded.inputs)
    shape = name_shape(batch_size, sequence_length, has_length)
    output = output or folder / default_name(format, quantization, shape)
    examples = None
    if quantization == "int8":
        examples = _examples(folder, manifest, file, data_dir)
    common = {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "examples": examples,
        "metadata": {name: value for name, value in manifest.items() if name != "files"},
        **get_generation_options(manifest),
    }
    if format == "saved_model":
        report = to_saved_model(loaded, output, **common)
    else:
        report = to_litert(
            loaded,
            output,
            quantization=quantization,
            calibration=examples,
            compatible_with=compatible_with,
            **common,
        )
    say(str(report))


def default_name(format, quantization, shape):
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


def _examples(folder, manifest, file, data_dir):
    """Real inputs for calibration, of the development part of the model's data."""
    dataset = manifest.get("dataset") if file is None else None
    if "task" not in manifest or (dataset is None and file is None):
        raise ValueError(
            "--quantization int8 measures activations on real inputs: name a labelled file "
            "with --file, or use int8_weights, which needs none."
        )
    loaded = datasets.load_data(
        manifest["task"],
        dataset=dataset,
        files={"dev": file},
        label_column=manifest.get("label_column"),
        text_column=manifest.get("text_column"),
        languages=None if dataset else manifest.get("languages"),
        data_dir=data_dir,
    )
    task = TASKS[manifest["task"]]
    batches, _ = task.make_batches(folder, manifest, loaded.dev, str(file or dataset))
    return [inputs for inputs, _ in batches.take(EXAMPLES).as_numpy_iterator()]


def inspect(path):
    """Prints signatures, ops and size of a model file, or of each in a trained folder."""
    found = [path / name for name in FORMATS.values() if (path / name).exists()]
    for k, file in enumerate(found or [path]):
        content = inspection.inspect(file)
        if not content.signatures:
            raise ValueError(f"{file} is damaged: it holds no signature.")
        say(("\n" if k else "") + str(content))
