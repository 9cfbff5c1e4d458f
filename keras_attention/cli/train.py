"""`train`: from data to a folder with a tested, exported model."""

import dataclasses
import time

import keras

from keras_attention.tasks import from_preset, recipes
from keras_attention.tasks.checkpoints import is_checkpoint, list_options
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.jobs import run_job
from keras_attention.tasks.registry import get_task_class

# Options that the model of a preset has settled; some tasks add subwords, though.
SETTLED = (
    *recipes.IN_MODEL,
    *("max_length", "tokens", "vocabulary_size", "beam", "length_penalty", "prefix"),
    *("language", "task"),
)


def train(builder, output, source, options, preset=None):
    """Trains a model on the data of a `Source` and fills the folder `output`.

    Args:
        builder: str, a name in `TASKS`.
        preset: path or name of a preset to go on from, or None.
    """
    started = time.perf_counter()
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
    source.check_options(builder)
    loaded = source.load(builder)
    about = source.describe(builder, loaded)
    if options.get("batch_size") is None:
        count = get_task_class(builder).count(loaded.train)
        recipe = recipes.shrink_batches(recipe, count)
    keras.utils.set_random_seed(recipe.seed)
    if task is None:
        task = get_task_class(builder).build(loaded, recipe, builder)
    else:
        task.adapt(loaded)
        if options.get("vocabulary_size") is not None and _can_extend(task):
            task.extend_vocabulary(loaded.train, options["vocabulary_size"])
        about["begun"] = str(preset)
    task.source = source.entries
    run_job(task, loaded, recipe, folder, about, started)


def open_preset(preset, builder, options):
    """(the task of a preset to go on from, the other options, those that it was opened with)."""
    given = {name: value for name, value in options.items() if value is not None}
    opened = {}
    if is_checkpoint(preset):
        opened = {name: given.pop(name) for name in list_options(builder) if name in given}
        task = get_task_class(builder).from_preset(preset, **opened)
    else:
        task = from_preset(preset, "keras")
        if task.builder != builder:
            raise ValueError(f"--from {preset} holds a {task.builder}: train {task.builder}.")
    kept = [name for name in SETTLED if name != "vocabulary_size" or not _can_extend(task)]
    if settled := [name for name in kept if name in given]:
        option = f"--{settled[0].replace('_', '-')}"
        raise ValueError(f"{option} is settled by the model of --from {preset}: leave it out.")
    return task, given, opened


def _can_extend(task):
    """Whether `--vocabulary-size` says how many subwords of the new texts are to be learnt."""
    return hasattr(task, "extend_vocabulary")
