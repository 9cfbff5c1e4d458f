"""Training that an interruption costs one epoch at most, and that ends when its time is over."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable

from keras_attention import training
from keras_attention.core.lazy import keras
from keras_attention.tasks.run_state import (
    Backup,
    KeepBest,
    KeepHistory,
    load_weights,
    read_history,
)


@dataclasses.dataclass
class Job:
    """What `train_model` trains.

    Attributes:
        model: the keras.Model.
        train, dev: tf.data.Datasets of (inputs, labels) batches; `train` is shuffled. Labels of
            padding are -1.
        metrics: functions that make the Keras metrics; the first one's score on `dev` chooses the
            weights that are kept.
        loss: a Keras loss. Of a model of several outputs, loss and metrics take all of them, as
            `ka.training.JointModel` has it.
        lower_is_better: bool, whether the lowest score chooses, and not the highest.
    """

    model: keras.Model
    train: object
    dev: object
    metrics: list[Callable]
    loss: Callable
    lower_is_better: bool = False

    @property
    def monitor(self):
        """Return the name of the metric that chooses."""
        return self.metrics[0]().name


class Budget(keras.callbacks.Callback):
    """Ends training when the time for it is used up, within an epoch too.

    The epoch that it ends is evaluated like every other. The learning rate falls with the time that
    is gone, where this is further than the steps are, so that a short run ends at a low one, too.

    Args:
        minutes: float, or None for no end. Epochs before an interruption count.
        history: the list of epochs that `KeepHistory` keeps.
        schedule: function of the share of the training that is done -> learning rate.
        steps: int, batches of the whole training.
        spent: float, seconds that are gone already, as for reading the data.
    """

    def __init__(self, minutes, history, schedule=None, steps=1, spent=0.0):
        super().__init__()
        self.minutes, self.history, self.spent = minutes, history, spent
        self.schedule, self.steps = schedule, steps
        self.started = time.perf_counter()

    @property
    def used_up(self):
        """Return whether the time is over; there is always some for a first batch."""
        return self.minutes is not None and bool(self.history) and self.share_gone >= 1

    @property
    def share_gone(self):
        """Return how much of the time is gone: 1 is all."""
        return self.seconds / (60 * self.minutes) if self.minutes else 1.0

    @property
    def seconds(self):
        trained = sum(epoch["seconds"] for epoch in self.history)
        return self.spent + trained + time.perf_counter() - self.started

    def on_epoch_begin(self, epoch, logs=None):
        self.started = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        if self.minutes is not None and self.schedule is not None:
            done = float(self.model.optimizer.iterations.numpy()) / self.steps
            self.model.optimizer.learning_rate = self.schedule(max(done, self.share_gone))

    def on_train_batch_end(self, batch, logs=None):
        if self.minutes is not None and self.share_gone >= 1:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.started = time.perf_counter()  # the epoch is in the history now
        if self.used_up:
            self.model.stop_training = True


def train_model(job, recipe, folder, *, backup=True, callbacks=(), verbose=0, spent=0.0):
    """Trains `job.model` by `recipe`, or resumes an earlier run in `folder`.

    The state is kept after each epoch (`Backup`), so an interruption costs one epoch at most. At
    the end the model has the weights of the best epoch on the development set.

    Args:
        job: `Job`.
        recipe: `Recipe`.
        folder: `RunFolder`, started.
        backup: bool, whether the state of each epoch is kept.
        callbacks: more Keras callbacks, which run after those of this module.
        verbose: what Keras prints, as in `keras.Model.fit`.
        spent: float, seconds of the recipe's minutes that are gone already.

    Returns:
        (the best score, the epoch it was reached in), and the list of all epochs' numbers.
    """
    with parts_of(job.model, recipe):
        return _train(job, recipe, folder, backup, callbacks, verbose, spent)


def load_trained(job, recipe, folder):
    """Gives `job.model` the weights that `train_model` chose in another process, for `folder`.

    Returns:
        What `train_model` gave there.
    """
    best = KeepBest(folder.best, f"val_{job.monitor}", job.lower_is_better)
    with parts_of(job.model, recipe):
        load_weights(job.model, folder.best)
    return (best.score, best.epoch), read_history(folder.history)


@contextlib.contextmanager
def parts_of(model, recipe):
    """Inside, only the parts of a model that the recipe names are trained; after it, all are."""
    if recipe.freeze is not None:
        training.freeze(model, None if recipe.freeze == "all" else recipe.freeze)
    adapts = recipe.lora_rank is not None and recipe.freeze != "all"  # or there is nothing to adapt
    if adapts:
        targets = {} if recipe.lora_targets is None else {"targets": recipe.lora_targets}
        training.enable_lora(model, recipe.lora_rank, **targets)
    try:
        if not model.trainable_weights:
            raise ValueError(
                f"freeze={recipe.freeze!r} leaves nothing of {model.name} to train: its logits are "
                "products with the embeddings of tokens. Freeze fewer blocks, or use lora_rank."
            )
        yield
    finally:
        if adapts:
            training.merge_lora(model)
        if recipe.freeze is not None:
            training.unfreeze(model)


def _train(job, recipe, folder, backup, callbacks, verbose, spent):
    """`train_model`, of a model whose layers know whether they are trained."""
    model = job.model if len(job.model.outputs) == 1 else training.JointModel(job.model)
    schedule = compile_model(model, job, recipe)
    best = KeepBest(folder.best, f"val_{job.monitor}", job.lower_is_better)
    history = KeepHistory(folder.history)
    steps = recipe.epochs * len(job.train)
    budget = Budget(recipe.minutes, history.epochs, schedule, steps, spent)
    averages = [] if recipe.average is None else [keras.callbacks.SwapEMAWeights()]
    backups = [Backup(folder.backup)] if backup else []
    with folder.explain_full_disk():
        model.fit(
            job.train,
            validation_data=job.dev,
            epochs=0 if budget.used_up else recipe.epochs,
            callbacks=[*averages, best, *backups, history, budget, *callbacks],
            shuffle=False,  # the data set shuffles itself
            verbose=verbose,
        )
    load_weights(job.model, folder.best)
    return (best.score, best.epoch), history.epochs


def compile_model(model, job, recipe):
    """Compiles with AdamW, warm-up and a cosine, and the job's loss and metrics.

    Returns:
        A function of the share of the training that is done, from 0 to 1 -> the learning rate,
        where `Budget` is to set it as time goes by; None where it depends on the steps alone.
    """
    total = max(2, len(job.train) * recipe.epochs)
    warmup = int(total * recipe.warmup)
    if recipe.minutes is None:
        schedule, paced = training.warmup_cosine(recipe.learning_rate, warmup, total), None
    else:
        schedule, paced = recipe.learning_rate, _pace(recipe.learning_rate, recipe.warmup)
    averaging, layerwise = {}, {}
    if recipe.average is not None:
        looked_back = max(1.0, recipe.average * len(job.train))
        averaging = {"use_ema": True, "ema_momentum": 1 - 1 / looked_back}
    if recipe.layer_decay is not None:
        layerwise["rates"] = training.layer_rates(model, recipe.layer_decay)
    make = training.LayerwiseAdamW if layerwise else training.AdamW
    optimizer = make(
        schedule,
        weight_decay=recipe.weight_decay,
        global_clipnorm=recipe.clip_norm,
        **layerwise,
        **averaging,
    )
    # Biases and norms are not pulled towards zero.
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
    model.compile(
        optimizer,
        job.loss,
        metrics=[make() for make in job.metrics],
        # What a recipe says of XLA was measured with TensorFlow: JAX is slow without it.
        jit_compile=recipe.jit_compile if keras.backend.backend() == "tensorflow" else "auto",
    )
    # Inside the first step TensorFlow would create these variables in branches, and trace twice.
    optimizer.build(model.trainable_variables)
    return paced


def _pace(peak, warmup):
    """`training.warmup_cosine` as a function of the share of the training that is done."""

    def rate(done):
        if done < warmup:
            return peak * done / warmup
        rest = (min(done, 1.0) - warmup) / (1 - warmup) if warmup < 1 else 0.0
        return 0.5 * peak * (1 + math.cos(math.pi * rest))

    return rate
