"""`train`: from data to a folder with a tested, exported model."""

import dataclasses

import keras

from keras_attention.cli import recipes, sources
from keras_attention.cli.console import say
from keras_attention.cli.errors import Interrupted
from keras_attention.cli.finish import finish, summarize
from keras_attention.cli.fit import fit
from keras_attention.cli.folder import Folder
from keras_attention.cli.tasks import TASKS


def train(task, output, *, dataset, files, columns, data_dir, options):
    """Trains `task` on a data set or on files and fills the folder `output`."""
    recipe = recipes.choose(task, dataset, options)
    files = {part: str(path) for part, path in files.items() if path is not None}
    source = {"dataset": dataset, **columns}
    settings = {
        "task": task,
        "files": files,
        **source,
        "recipe": dataclasses.asdict(recipe),
    }
    folder = Folder(output, settings)
    loaded = sources.load(task, files=files, data_dir=data_dir, **source)
    about = sources.describe(
        loaded, dataset=dataset, files=files, languages=columns.get("languages")
    )
    keras.utils.set_random_seed(recipe.seed)
    run(TASKS[task].job(loaded, recipe, source, about), recipe, folder)


def run(job, recipe, folder):
    """Trains, finishes and sums up one job; returns its scores."""
    folder.start()
    counts = ", ".join(f"{count:,} {what}" for what, count in job.about["counts"].items())
    say(f"{job.about['name']}: {counts}")
    say(f"{job.model.name}: {job.model.count_params():,} parameters")
    if folder.resumed:
        say(f"going on with the unfinished run in {folder.path}")
    best, history = fit(job, recipe, folder)
    try:
        scores = finish(job, recipe, folder, best, history)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after the training, which is kept in {folder.path}: run the same command "
            "again to export and test the model."
        ) from None
    summarize(folder, scores)
    return scores
