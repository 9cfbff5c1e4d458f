"""`demo`: what a data set that is always at hand makes of one model, or of two side by side."""

import dataclasses
import pathlib
import time

import keras

from keras_attention.cli import dates, digits, folder, images, recipes, sources, translating
from keras_attention.cli.console import say, show_table, shown
from keras_attention.cli.finish import size_of
from keras_attention.cli.folder import Folder
from keras_attention.cli.tasks import TASKS
from keras_attention.cli.train import run

# Where each demo goes by itself, and the tasks it trains, each with its folder there.
DEMOS = {
    digits.NAME: ("saved_models/digits-vit", {images.TASK: "."}),
    dates.NAME: (
        "saved_models/dates",
        {translating.RECURRENT.TASK: "recurrent", translating.TRANSFORMER.TASK: "transformer"},
    ),
}


def demo(name, output, options):
    """Trains every model of the demo `name` and compares them."""
    started = time.perf_counter()
    default, tasks = DEMOS[name]
    output = pathlib.Path(output or default)
    chosen = {task: recipes.choose(task, name, options) for task in tasks}
    folders = {
        task: Folder(output / inside, {"recipe": dataclasses.asdict(chosen[task])}, replace=True)
        for task, inside in tasks.items()
    }
    loaded, made = sources.NAMED[name][0](None), {}
    for task, recipe in chosen.items():
        about = sources.describe(loaded, dataset=name)
        keras.utils.set_random_seed(recipe.seed)
        source = {"dataset": name, "label_column": None}
        job = TASKS[task].job(loaded, recipe, source, about)
        made[task] = job.model.count_params(), run(job, recipe, folders[task])
        say("")
    if len(made) > 1:
        compare(made, folders)
    say(f"{time.perf_counter() - started:.0f} seconds in all")


def compare(made, folders):
    """Prints one table of the models {task: (parameters, scores)}."""
    rows = []
    for task, (parameters, scores) in made.items():
        tested = [shown(*pair) for pair in scores["test"]["keras"].items()]
        seconds, size = scores["training_seconds"], size_of(folders[task].path / folder.LITERT)
        rows.append((task, f"{parameters:,}", *tested, f"{seconds:.0f}", size))
    measured = [name.replace("_", " ") for name in scores["test"]["keras"]]
    header = ("model", "parameters", *measured, "seconds to train", folder.LITERT)
    show_table(header, rows, title="Side by side, on the test set")
