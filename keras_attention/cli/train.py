"""`train` and `demo`: from data to a folder with a tested, exported model."""

import dataclasses
import time

import keras

from keras_attention.cli import digits, images, recipes, sources
from keras_attention.cli.console import say
from keras_attention.cli.finish import finish, summarize
from keras_attention.cli.fit import fit
from keras_attention.cli.folder import Folder
from keras_attention.cli.tasks import TASKS


def train(task, output, *, dataset, files, label_column, text_column, data_dir, options):
    """Trains `task` on a data set or on files and fills the folder `output`."""
    recipe = recipes.choose(task, dataset, options)
    files = {part: str(path) for part, path in files.items() if path is not None}
    source = {"dataset": dataset, "label_column": label_column, "text_column": text_column}
    settings = {
        "task": task,
        "files": files,
        **source,
        "recipe": dataclasses.asdict(recipe),
    }
    folder = Folder(output, settings)
    loaded = sources.load(task, files=files, data_dir=data_dir, **source)
    about = sources.describe(loaded, dataset=dataset, files=files)
    keras.utils.set_random_seed(recipe.seed)
    run(TASKS[task].job(loaded, recipe, source, about), recipe, folder)


def demo(output, options):
    """Trains the small vision transformer on handwritten digits."""
    started = time.perf_counter()
    train_demo = recipes.choose(images.TASK, digits.NAME, options)
    folder = Folder(output, {"recipe": dataclasses.asdict(train_demo)}, replace=True)
    loaded = digits.load()
    about = sources.describe(loaded, dataset=digits.NAME)
    keras.utils.set_random_seed(train_demo.seed)
    source = {"dataset": digits.NAME, "label_column": None}
    run(images.job(loaded, train_demo, source, about), train_demo, folder)
    say(f"{time.perf_counter() - started:.0f} seconds in all")


def run(job, recipe, folder):
    """Trains, finishes and sums up one job."""
    folder.start()
    counts = ", ".join(f"{count:,} {what}" for what, count in job.about["counts"].items())
    say(f"{job.about['name']}: {counts}")
    say(f"{job.model.name}: {job.model.count_params():,} parameters")
    if folder.resumed:
        say(f"going on with the unfinished run in {folder.path}")
    best, history = fit(job, recipe, folder)
    scores = finish(job, recipe, folder, best, history)
    summarize(folder, scores)
