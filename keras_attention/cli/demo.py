"""`demo`: one model, or two to compare, trained on data that needs no download."""

import dataclasses
import pathlib
import time

import keras

from keras_attention.cli import datasets, folder, recipes
from keras_attention.cli.console import format_score, say, show_table
from keras_attention.cli.folder import Folder
from keras_attention.cli.tasks import TASKS
from keras_attention.cli.train import format_path_size, run_job

# The default folder of each demo, and the tasks that it trains, each with its folder there.
DEMOS = {
    datasets.DIGITS: ("saved_models/digits-vit", {"vision_transformer": "."}),
    datasets.DATES: (
        "saved_models/dates",
        {"seq2seq_recurrent": "recurrent", "seq2seq_transformer": "transformer"},
    ),
}


def demo(name, output, options):
    """Trains every model of the demo `name` and compares them."""
    started = time.perf_counter()
    default, tasks = DEMOS[name]
    output = pathlib.Path(output or default)
    chosen = {task: recipes.choose_recipe(task, name, options) for task in tasks}
    folders = {
        task: Folder(output / inside, {"recipe": dataclasses.asdict(chosen[task])}, replace=True)
        for task, inside in tasks.items()
    }
    loaded, made = datasets.NAMED[name][0](None), {}
    for task, recipe in chosen.items():
        about = datasets.describe_data(loaded, dataset=name)
        keras.utils.set_random_seed(recipe.seed)
        source = {"dataset": name, "label_column": None}
        job = TASKS[task].make_job(loaded, recipe, source, about)
        made[task] = job.model.count_params(), run_job(job, recipe, folders[task])
        say("")
    if len(made) > 1:
        print_comparison(made, folders)
    say(f"{time.perf_counter() - started:.0f} seconds in all")


def print_comparison(made, folders):
    """Prints one table of the models {task: (parameters, scores)}."""
    rows = []
    for task, (parameters, scores) in made.items():
        tested = [format_score(*pair) for pair in scores["test"]["keras"].items()]
        seconds = f"{scores['training_seconds']:.0f}"
        size = format_path_size(folders[task].path / folder.LITERT)
        rows.append((task, f"{parameters:,}", *tested, seconds, size))
    measured = [name.replace("_", " ") for name in scores["test"]["keras"]]
    header = ("model", "parameters", *measured, "seconds to train", folder.LITERT)
    show_table(header, rows, title="Side by side, on the test set")
