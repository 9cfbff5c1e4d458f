"""`predict`: tags for sentences, labels for texts, classes for pictures, texts that go on."""

import json

from keras_attention.cli import folder as folders
from keras_attention.cli.tasks import TASKS


def predict(model, inputs, *, kind, options):
    """Prints what the model says about each of `inputs`, texts or picture files.

    Args:
        options: dict, what only some tasks ask for, None or False where it is not given.
    """
    folder, path = folders.locate(model, kind)
    manifest = read_manifest(folder)
    task = TASKS[manifest["task"]]
    given = [name for name, value in options.items() if value not in (None, False)]
    if strange := [name for name in given if name not in task.OPTIONS]:
        flag = strange[0].replace("_", "-")
        raise ValueError(f"--{flag} is not for models of {task.TASK}: leave it out.")
    task.show(task.load(path, manifest), folder, manifest, inputs, options)


def read_manifest(folder):
    """What the folder says about its model; a ValueError where it says nothing."""
    path = folder / folders.MANIFEST
    manifest = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if manifest.get("task") not in TASKS:
        raise ValueError(
            f"{folder} holds no {folders.MANIFEST} that says what its model is for: it was not "
            "made by `keras-attention train` or `demo`."
        )
    return manifest
