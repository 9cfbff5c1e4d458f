"""Presets are opened as tasks: by their files, or as checkpoints of Hugging Face."""

import pathlib

from keras_attention.data.preprocessors.tokenizer_owner import TokenizerOwner
from keras_attention.files.fields import Fields
from keras_attention.tasks import recipes
from keras_attention.tasks.folders import MANIFEST, SOURCE, find_model_file, read_task_manifest
from keras_attention.tasks.presets import find_preset, is_checkpoint
from keras_attention.tasks.registry import get_task_class


def from_preset(preset, file=None):
    """Return the task in a preset, of the class that its files say.

    Args:
        preset: path of a folder that `save_to_preset` or `keras-attention train` wrote, or of a
            model file in it; or the name of a preset, see `list_presets`; or a checkpoint of
            Hugging Face, `"hf://name"` or a folder, whose head is that of a task.
        file: `"keras"`, `"saved_model"`, `"litert"` or `"litert-int8"`, which file to run; None for
            the first of these that is there.

    Returns:
        A `Task`. One that runs an exported file predicts and evaluates; to train on, it needs
        `model.keras` in the folder.

    Raises:
        ValueError: there is no such preset, or it is damaged or of no task.
    """
    if is_checkpoint(preset):
        from keras_attention.tasks.checkpoints import find_task

        return get_task_class(find_task(preset)).from_preset(preset, file)
    folder, path = find_model_file(find_preset(preset), file)
    manifest = read_task_manifest(folder)
    return get_task_class(manifest["task"]).open_file(path, manifest)


def open_preset(task_class, preset, file, options):
    """`Task.from_preset` of a class; arguments as there."""
    if is_checkpoint(preset):
        if file not in (None, "keras"):
            raise ValueError(f"{preset} is a checkpoint: it holds no file of kind {file}.")
        from keras_attention.tasks.checkpoints import open_checkpoint

        return open_checkpoint(preset, task_class, options)
    if options:
        raise ValueError(
            f"{next(iter(options))}= is for checkpoints of Hugging Face, and {preset} is none: "
            "leave it out."
        )
    task = from_preset(preset, file)
    if not isinstance(task, task_class):
        name = type(task).__name__
        raise ValueError(
            f"{preset} is a {name}, not a {task_class.__name__}: open it with "
            f"ka.tasks.{name}.from_preset, or ka.tasks.from_preset."
        )
    return task


def open_model_file(task_class, path, manifest=None):
    """`Task.open_file` of a class; arguments as there."""
    path = pathlib.Path(path)
    manifest = read_task_manifest(path.parent) if manifest is None else manifest
    settings = task_class.read_settings(Fields(path.parent / MANIFEST, manifest))
    preprocessor = task_class.load_preprocessor(path.parent, manifest)
    task = task_class(None, preprocessor, builder=manifest["task"], **settings)
    task.source = {name: manifest[name] for name in SOURCE if name in manifest}
    by_checkpoint = isinstance(preprocessor, TokenizerOwner) and preprocessor.is_pretrained
    task.pretrained = manifest.get("pretrained", by_checkpoint)
    kind = recipes.PRETRAINED if task.pretrained else manifest.get("dataset") or recipes.FILES
    task.recipe = recipes.slow_down(recipes.choose_recipe(task.builder, kind))
    task.path, task.manifest = path, manifest
    task.example = manifest.get("example") or task_class.example
    return task
