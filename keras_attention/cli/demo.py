"""The `demo` command: trains one or two models on data that needs no download."""

import dataclasses
import pathlib
import time

import keras

from keras_attention.cli import sources
from keras_attention.cli.jobs import format_path_size, run_job
from keras_attention.cli.printing import say, show_table
from keras_attention.export.checks.formatting import format_score
from keras_attention.tasks import folders, recipes
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.registry import get_task_class

# Name of a demo -> (default output folder, {builder: subfolder for its model}).
DEMOS = {
    sources.DIGITS: ("runs/digits-vit", {"vision_transformer": "."}),
    sources.DATES: (
        "runs/dates-compared",
        {"seq2seq_recurrent": "recurrent", "seq2seq_transformer": "transformer"},
    ),
}


def demo(name, output, options):
    """Train every model of a demo, and print a comparison if there are several models.

    Args:
        name: str, a key of `DEMOS`.
        output: path of the output folder. None uses the default.
        options: dict of hyperparameters, such as `epochs`, that replace values of the recipe. A
            value of None keeps the value in the recipe.
    """
    started = time.perf_counter()
    default, builders = DEMOS[name]
    output = pathlib.Path(output or default)
    chosen = {builder: recipes.choose_recipe(builder, name, options) for builder in builders}
    folders_of = {
        builder: RunFolder(
            output / inside, {"recipe": dataclasses.asdict(chosen[builder])}, replace=True
        )
        for builder, inside in builders.items()
    }
    source = sources.Source(dataset=name)
    loaded, results = None, {}
    for builder, recipe in chosen.items():
        loaded = loaded or source.load(builder)
        about = source.describe(builder, loaded)
        keras.utils.set_random_seed(recipe.seed)
        task = get_task_class(builder).build(loaded, recipe, builder)
        task.source = source.entries
        scores = run_job(task, loaded, recipe, folders_of[builder], about)
        results[builder] = task.model.count_params(), scores
        say("")
    if len(results) > 1:
        print_comparison(results, folders_of)
    say(f"{time.perf_counter() - started:.0f} seconds in all")


def print_comparison(results, folders_of):
    """Print a table that compares models.

    Args:
        results: dict from the name of a task, such as `"seq2seq_recurrent"`, to (number of
            parameters, content of `scores.json`).
        folders_of: dict from the name of a task to its `RunFolder`.
    """
    rows = []
    for builder, (parameters, scores) in results.items():
        tested = [format_score(*pair) for pair in scores["test"]["keras"].items()]
        seconds = f"{scores['training_seconds']:.0f}"
        size = format_path_size(folders_of[builder].path / folders.LITERT)
        rows.append((builder, f"{parameters:,}", *tested, seconds, size))
    measured = [name.replace("_", " ") for name in scores["test"]["keras"]]
    header = ("model", "parameters", *measured, "seconds to train", folders.LITERT)
    show_table(header, rows, title="Side by side, on the test set")
