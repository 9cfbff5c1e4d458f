"""`from_preset`: open presets and Hugging Face checkpoints as tasks."""

from keras_attention.tasks.folders import find_model_file, read_task_manifest
from keras_attention.tasks.presets import find_preset, is_checkpoint
from keras_attention.tasks.registry import get_task_class


def from_preset(preset, file=None):
    """Open a trained task: a preset (a folder with a model and its files) or a checkpoint.

    The files determine the class of the task.

    Args:
        preset: str or path, one of these:
            - the path of a folder that `save_to_preset` or `keras-attention train` wrote, or of a
              model file in it,
            - the name of a preset, see `list_presets`,
            - a Hugging Face checkpoint with a task-specific head, either `"hf://name"` or the path
              of a folder.
        file: the format of the file to run: `"keras"`, `"saved_model"`, `"litert"` or
            `"litert-int8"`. None selects the first of these that exists.

    Returns:
        A `Task`. If it runs an exported file, it can predict and evaluate, but `fit` requires
        `model.keras` in the same folder.

    Raises:
        ValueError: the preset does not exist or is damaged, or does not name a task.
    """
    if is_checkpoint(preset):
        from keras_attention.tasks.checkpoints import find_task

        return get_task_class(find_task(preset)).from_preset(preset, file)
    folder, path = find_model_file(find_preset(preset), file)
    manifest = read_task_manifest(folder)
    return get_task_class(manifest["task"]).open_file(path, manifest)


def open_preset(task_class, preset, file, options):
    """Open a preset or a checkpoint as a task of a given class, for `Task.from_preset`.

    Args:
        task_class: subclass of `Task`.
        preset: str or path, a preset or a Hugging Face checkpoint.
        file: the format of the file to run, such as `"litert"`. None selects the first that exists.
        options: dict of options for checkpoints, such as `max_length`. `Task.from_preset` lists
            these.

    Raises:
        ValueError: the preset is a task of another class, or it cannot be opened.
    """
    if is_checkpoint(preset):
        if file not in (None, "keras"):
            raise ValueError(f"{preset} is a checkpoint, which has no file of kind {file}.")
        from keras_attention.tasks.checkpoints import open_checkpoint

        return open_checkpoint(preset, task_class, options)
    if options:
        raise ValueError(
            f"{next(iter(options))}= is for checkpoints of Hugging Face, and {preset} is a preset: "
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
