"""`demo`: one model, or two to compare, trained on data that needs no download."""

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

# The default folder of each demo, and the builders of its models, each with its folder there.
DEMOS = {
    sources.DIGITS: ("runs/digits-vit", {"vision_transformer": "."}),
    sources.DATES: (
        "runs/dates-compared",
        {"seq2seq_recurrent": "recurrent", "seq2seq_transformer": "transformer"},
    ),
}


def demo(name, output, options):
    """Trains every model of the demo `name` and compares them."""
    started = time.perf_counter()
    default, builders = DEMOS[name]
    output = pathlib.Path(output or default)
    chosen = {builder: recipes.choose_recipe(builder, name, options) for builder in builders}
    places = {
        builder: RunFolder(
            output / inside, {"recipe": dataclasses.asdict(chosen[builder])}, replace=True
        )
        for builder, inside in builders.items()
    }
    source = sources.Source(dataset=name)
    loaded, made = None, {}
    for builder, recipe in chosen.items():
        loaded = loaded or source.load(builder)
        about = source.describe(builder, loaded)
        keras.utils.set_random_seed(recipe.seed)
        task = get_task_class(builder).build(loaded, recipe, builder)
        task.source = source.entries
        scores = run_job(task, loaded, recipe, places[builder], about)
        made[builder] = task.model.count_params(), scores
        say("")
    if len(made) > 1:
        print_comparison(made, places)
    say(f"{time.perf_counter() - started:.0f} seconds in all")


def print_comparison(made, places):
    """Prints one table of the models {builder: (parameters, scores)}."""
    rows = []
    for builder, (parameters, scores) in made.items():
        tested = [format_score(*pair) for pair in scores["test"]["keras"].items()]
        seconds = f"{scores['training_seconds']:.0f}"
        size = format_path_size(places[builder].path / folders.LITERT)
        rows.append((builder, f"{parameters:,}", *tested, seconds, size))
    measured = [name.replace("_", " ") for name in scores["test"]["keras"]]
    header = ("model", "parameters", *measured, "seconds to train", folders.LITERT)
    show_table(header, rows, title="Side by side, on the test set")
