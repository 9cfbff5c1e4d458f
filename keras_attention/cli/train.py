"""`train`: from data to a folder with a tested, exported model."""

import contextlib
import dataclasses
import time

import keras

from keras_attention.cli.examples import load_examples
from keras_attention.cli.jobs import run_job
from keras_attention.cli.mesh import check_batch_size, finish_with_tensorflow, make_layout
from keras_attention.cli.printing import say
from keras_attention.tasks import from_preset, recipes
from keras_attention.tasks.checkpoints import list_options
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.presets import is_checkpoint
from keras_attention.tasks.registry import get_task_class

# Options that the model of a preset has settled; some tasks add subwords, though.
SETTLED = (*recipes.IN_MODEL, *recipes.list_settled(), *recipes.OF_CHECKPOINTS)


def train(
    builder, output, source, options, preset=None, mesh=None, fully_sharded=False, trained=False
):
    """Trains a model on the data of a `Source` and fills the folder `output`.

    What another backend than TensorFlow has trained, a process of TensorFlow exports and tests.

    Args:
        builder: str, a name in `TASKS`.
        preset: path or name of a preset to go on from, or None.
        mesh: dict, name of a mesh axis -> how many devices, of a `ka.distribution.RoleParallel`; or
            None for one device.
        fully_sharded: bool, of that layout.
        trained: bool, whether the run in `output` is trained, and is to be exported and tested.
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
    """`train` in one process, in which the layout is set."""
    started = time.perf_counter()
    source.check_options(builder)
    if preset is None:
        dataset, settled = source.dataset or recipes.FILES, {}
        task, recipe = None, recipes.choose_recipe(builder, dataset, options)
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
    loaded, skipped = load_examples(source, builder)
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
        for sentence in task.adapt(loaded):
            say(sentence)
        if options.get("vocabulary_size") is not None and task.extends:
            task.extend_vocabulary(loaded.train, options["vocabulary_size"])
        about["begun"] = str(preset)
    task.source = source.entries
    run_job(task, loaded, recipe, folder, about, started, trained=trained, finishes=finishes)


def open_preset(preset, builder, options):
    """Return (the task to go on from, the other options, those that it was opened with)."""
    given = {name: value for name, value in options.items() if value is not None}
    opened = {}
    if is_checkpoint(preset):
        opened = {name: given.pop(name) for name in list_options(builder) if name in given}
        task = get_task_class(builder).from_preset(preset, **opened)
    else:
        task = from_preset(preset, "keras")
        if task.builder != builder:
            raise ValueError(f"--from {preset} holds a {task.builder}: train {task.builder}.")
    kept = [name for name in SETTLED if name != "vocabulary_size" or not task.extends]
    if settled := [name for name in kept if name in given]:
        option = f"--{settled[0].replace('_', '-')}"
        raise ValueError(f"{option} is settled by the model of --from {preset}: leave it out.")
    return task, given, opened
