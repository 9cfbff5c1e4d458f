"""The `train` command, which trains, tests and exports a model."""

import contextlib
import dataclasses
import time

import keras

from keras_attention.cli.jobs import run_job
from keras_attention.cli.mesh import check_batch_size, finish_with_tensorflow, make_layout
from keras_attention.cli.printing import say
from keras_attention.tasks import from_preset, recipes
from keras_attention.tasks.checkpoints import list_options
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.presets import is_checkpoint
from keras_attention.tasks.registry import get_task_class

# Options that cannot be changed for the model of a preset, except that some tasks can add subwords.
SETTLED = (*recipes.IN_MODEL, *recipes.list_settled(), *recipes.OF_CHECKPOINTS)


def train(
    builder, output, source, options, preset=None, mesh=None, fully_sharded=False, trained=False
):
    """Train a model, and write the preset to a folder.

    If Keras does not run on TensorFlow, another process with TensorFlow exports and tests the
    model.

    Args:
        builder: str, the name of a task in `TASKS`.
        output: path of the output folder.
        source: `Source` of the data.
        options: dict of hyperparameters that replace values of the recipe. A value of None keeps
            the value in the recipe.
        preset: path or name of a preset, or a checkpoint, whose model is trained further. None
            trains a new model.
        mesh: dict from the name of a mesh axis to the number of devices, for
            `ka.distribution.RoleParallel`. None trains on one device.
        fully_sharded: bool, whether the devices of the axis `data` divide the weights, too.
        trained: bool, whether the model in `output` is already trained, and only needs to be
            exported and tested.
    """
    arguments = {name: value for name, value in locals().items() if name != "trained"}
    if fully_sharded and mesh is None:
        raise ValueError("--fully-sharded is for --mesh: give one, such as --mesh data=4.")
    check_batch_size(options.get("batch_size"), mesh)
    layout = contextlib.nullcontext()
    if mesh is not None and not trained:
        layout = make_layout(mesh, fully_sharded).scope()
    finishes = trained or keras.backend.backend() == "tensorflow"
    with layout:
        _train(builder, output, source, options, preset, mesh, trained, finishes)
    if not finishes:
        finish_with_tensorflow(**arguments)


def _train(builder, output, source, options, preset, mesh, trained, finishes):
    started = time.perf_counter()
    source.check_options(builder)
    if preset is None:
        task, settled = None, {}
        recipe = recipes.choose_recipe(builder, source.dataset or recipes.FILES, options)
    else:
        task, options, settled = open_preset(preset, builder, options)
        recipe = recipes.replace_numbers(task.recipe, builder, options)
        source = source.like(task.metadata)
    settings = {
        "task": builder,
        "files": source.files,
        **source.entries,
        **({} if preset is None else {"from": str(preset), **settled}),
        "recipe": dataclasses.asdict(recipe),
    }
    folder = RunFolder(output, settings)
    loaded, skipped = source.load_and_report(builder)
    about = source.describe(builder, loaded)
    about["notes"] = (*about["notes"], *skipped)
    count = len(loaded.train)
    if options.get("batch_size") is None:
        recipe = recipes.shrink_batches(recipe, count, multiple=(mesh or {}).get("data", 1))
    if options.get("epochs") is None:
        recipe = recipes.add_epochs(recipe, count)
    keras.utils.set_random_seed(recipe.seed)
    if task is None:
        task = get_task_class(builder).build(loaded, recipe, builder)
    else:
        task.check_data(loaded)
        for note in task.adapt(loaded):
            say(note)
        if options.get("vocabulary_size") is not None and task.extends:
            task.extend_vocabulary(loaded.train, options["vocabulary_size"])
        about["begun"] = str(preset)
    task.source = source.entries
    run_job(task, loaded, recipe, folder, about, started, trained=trained, finishes=finishes)


def open_preset(preset, builder, options):
    """Open the task `builder` of a preset or checkpoint, whose model is trained further.

    Returns:
        A tuple of the task, a dict of the options for training, and a dict of the options that were
        passed to `from_preset`.
    """
    options, opened = {k: v for k, v in options.items() if v is not None}, {}
    if is_checkpoint(preset):
        opened = {name: options.pop(name) for name in list_options(builder) if name in options}
        task = get_task_class(builder).from_preset(preset, **opened)
    else:
        task = from_preset(preset, "keras")
        if task.builder != builder:
            raise ValueError(f"--from {preset} is a {task.builder}: train {task.builder}.")
    for name in SETTLED:
        if name in options and not (name == "vocabulary_size" and task.extends):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is fixed by the model of --from {preset}: leave it out.")
    return task, options, opened
