"""`fit_task`, the implementation of `Task.fit`, and `advise`, which suggests better options."""

import dataclasses
import logging
import tempfile

from keras_attention.core.lazy import keras
from keras_attention.tasks import recipes
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.training import train_model

LEAST_GAIN = 0.01  # a score that rises by more in the last quarter of the epochs still improves
LEAST_GAP = 0.05  # by more than this the dev score must exceed the training score for advice
DONE = 0.95  # above this training score, more epochs hardly help
LOG = logging.getLogger(__name__)


def fit_task(task, data, dev, numbers, *, backup_dir, callbacks, verbose):
    """Train the model of a task, and return a `keras.callbacks.History`.

    `Task.fit` calls this function.

    Args:
        task: `Task`.
        data: `ka.data.DataSet`. Only its training split is used.
        dev: development examples. If they are empty, some training examples are held out.
        numbers: dict of hyperparameters that replace values of the recipe. A value of None keeps
            the recipe's value.
        backup_dir: folder for the training state, to resume an interrupted run. None keeps none.
        callbacks: list of Keras callbacks.
        verbose: as in `keras.Model.fit`.
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
    if verbose:
        print(f"Kept the weights of epoch {epoch} of {len(history)}: {job.monitor} {score:.4f}.")
    if verbose and (advice := advise(job, recipe, history)):
        LOG.warning(advice)
    task.forget_runner()
    task.tune(dev)
    task.recipe = chosen  # so that the next call does not add epochs twice
    task.scores = {"best_epoch": epoch, "dev": {job.monitor: round(score, 6)}}
    return make_history(job.model, history)


def make_history(model, epochs):
    """Make a `keras.callbacks.History` from `epochs`, a list with a dict of metrics for each epoch.

    `model` is the model that was trained.
    """
    history = keras.callbacks.History()
    history.set_model(model)
    history.epoch = [epoch["epoch"] - 1 for epoch in epochs]
    names = [name for name in epochs[0] if name not in ("epoch", "seconds")] if epochs else []
    history.history = {name: [epoch[name] for epoch in epochs] for name in names}
    return history


def advise(job, recipe, history):
    """Suggest an option that may improve the result of a finished training run.

    Return a sentence, or None without advice:

    - If the time limit ended the run while the score was still rising, suggest more minutes.
    - If the training score is far below the development score, suggest less dropout, because
      dropout is only active in training.
    - If the score was still rising in the last epoch, suggest more epochs.
    - If the score on the development split is already 1, suggest nothing.

    `job` and `recipe` are the `Job` and `Recipe` of the run. `history` is a list of dicts with the
    metrics of each epoch.
    """
    name, epochs = job.monitor, len(history)
    if not history or name not in history[-1]:
        return None
    if not job.lower_is_better and history[-1][f"val_{name}"] == 1:
        return None
    sign = -1 if job.lower_is_better else 1
    dev = [sign * epoch[f"val_{name}"] for epoch in history]
    before = dev[: -max(1, epochs // 4)]
    rose = bool(before) and dev[-1] == max(dev) and dev[-1] - max(before) > LEAST_GAIN
    if recipe.minutes is not None and epochs < recipe.epochs and (rose or epochs == 1):
        return (
            f"The time was over in epoch {epochs} of {recipe.epochs}, while {name} was still "
            "improving: give more with minutes=."
        )
    train = history[-1][name]
    if job.lower_is_better or not 0 <= train <= 1:
        return None
    if dev[-1] - train > LEAST_GAP and train < DONE and recipe.model.get("dropout"):
        return (
            f"{name} is {train:.1%} on the training part, far below {dev[-1]:.1%} on the "
            "development part, because dropout slows the training down. Build a model with "
            f"dropout= below {recipe.model['dropout']:g}, or train longer with epochs=."
        )
    if rose and train < DONE:
        return (
            f"{name} was still improving in the last of {epochs} epochs: train longer with epochs=."
        )
    return None
