"""`fit_task`: the training of a task on raw examples, as `Task.fit` does it."""

import dataclasses
import logging
import tempfile

from keras_attention.core.lazy import keras
from keras_attention.tasks import recipes
from keras_attention.tasks.advice import advise
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.training import train_model

LOG = logging.getLogger(__name__)


def fit_task(task, data, dev, numbers, *, backup_dir, callbacks, verbose):
    """Trains a task on a data set. See `Task.fit`.

    Args:
        task: `Task`.
        data: `ka.data.DataSet`.
        dev: raw examples to choose the best epoch on; empty to hold some out of `data`.
        numbers: dict, those of the recipe that were given, None for its own.

    Returns:
        A `keras.callbacks.History`.
    """
    recipe = recipes.replace_numbers(task.recipe, task.builder, numbers)
    examples, dev = task.hold_out(data.train, dev, recipe.seed)
    if numbers["batch_size"] is None:
        recipe = recipes.shrink_batches(recipe, len(examples))
    chosen = recipe
    if numbers["epochs"] is None:
        recipe = recipes.add_epochs(recipe, len(examples))
    task.check_data(data)
    notes = [*task.adapt(data), *task.describe_data(data)]
    job = task.make_job(examples, dev, recipe)
    for note in notes if verbose else ():
        LOG.warning(note)
    with tempfile.TemporaryDirectory() as temporary:
        folder = RunFolder(
            f"{temporary}/run" if backup_dir is None else backup_dir,
            {"recipe": dataclasses.asdict(recipe)},
        )
        folder.start()
        options = {"backup": backup_dir is not None, "callbacks": callbacks, "verbose": verbose}
        (score, epoch), history = train_model(job, recipe, folder, **options)
        folder.discard()
    if verbose and (advice := advise(job, recipe, history)):
        LOG.warning(advice)
    task.forget_runner()
    task.tune(dev)
    task.recipe = chosen  # so that a second call does not add epochs to those added here
    task.scores = {"best_epoch": epoch, "dev": {job.monitor: round(score, 6)}}
    return make_history(job.model, history)


def make_history(model, epochs):
    """Return the epochs' numbers as Keras gives them."""
    history = keras.callbacks.History()
    history.set_model(model)
    history.epoch = [epoch["epoch"] - 1 for epoch in epochs]
    names = [name for name in epochs[0] if name not in ("epoch", "seconds")] if epochs else []
    history.history = {name: [epoch[name] for epoch in epochs] for name in names}
    return history
