"""Training runs with a time limit, which can be interrupted and resumed after every epoch."""

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
    """The model, data, loss and metrics of a training run.

    Attributes:
        model: `keras.Model`.
        train, dev: `tf.data.Dataset`s of (inputs, labels) batches. `train` is shuffled. Padding has
            the label -1.
        metrics: list of functions that make Keras metrics. The first metric on `dev` selects the
            best epoch.
        loss: a Keras loss. If the model has several outputs, the loss and the metrics receive all
            of them, as in `ka.training.JointModel`.
        lower_is_better: bool, whether lower values of the first metric are better.
    """

    model: keras.Model
    train: object
    dev: object
    metrics: list[Callable]
    loss: Callable
    lower_is_better: bool = False

    @property
    def monitor(self):
        """str, the name of the metric that selects the best epoch, as in a Keras history."""
        return self.metrics[0]().name


class Budget(keras.callbacks.Callback):
    """Stops training when the time limit is reached, even in the middle of an epoch.

    The last epoch is evaluated like every other epoch. The learning rate follows either the share
    of the steps or the share of the time that has passed, whichever is larger. So a run that is
    stopped early also ends with a low rate.

    Args:
        minutes: float, the time limit, including epochs before an interruption. None for no limit.
        history: list of dicts, the metrics of the epochs so far (`KeepHistory.epochs`).
        schedule: function from the elapsed share of the run (0 to 1) to the learning rate. None
            does not set the learning rate.
        steps: int, the number of batches of the whole run.
        spent: float, seconds that have passed before, for example for reading the data.
    """

    def __init__(self, minutes, history, schedule=None, steps=1, spent=0.0):
        super().__init__()
        self.minutes, self.history, self.spent = minutes, history, spent
        self.schedule, self.steps = schedule, steps
        self.started = time.perf_counter()

    @property
    def used_up(self):
        """bool, whether the time is over. The first epoch is always completed."""
        return self.minutes is not None and bool(self.history) and self.elapsed_share >= 1

    @property
    def elapsed_share(self):
        """float, the share of the time limit that has passed. It may exceed 1."""
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
            self.model.optimizer.learning_rate = self.schedule(max(done, self.elapsed_share))

    def on_train_batch_end(self, batch, logs=None):
        if self.minutes is not None and self.elapsed_share >= 1:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.started = time.perf_counter()  # the history now contains the time before
        if self.used_up:
            self.model.stop_training = True


def train_model(job, recipe, folder, *, backup=True, callbacks=(), verbose=0, spent=0.0):
    """Train `job.model`, or resume an earlier run in `folder`.

    The state is saved after each epoch (`Backup`), so that an interruption loses at most one epoch.
    At the end the model has the weights of the best epoch on the development set.

    Args:
        job: `Job`, the model with its batches, loss and metrics.
        recipe: `Recipe`, with the epochs, the learning rate and the time limit.
        folder: `RunFolder`, where the state of an interrupted run is kept.
        backup: bool, whether to save the state after each epoch.
        callbacks: additional Keras callbacks, which run after the callbacks of this module.
        verbose: as in `keras.Model.fit`.
        spent: float, how many seconds of the time limit have already passed.

    Returns:
        A tuple (best score, its epoch from 1), and a list of dicts with the metrics of all epochs.
    """
    with train_parts(job.model, recipe):
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
                shuffle=False,  # because the dataset is already shuffled
                verbose=verbose,
            )
        load_weights(job.model, folder.best)
    return (best.score, best.epoch), history.epochs


def load_trained(job, recipe, folder):
    """Load the best weights of a finished run of `train_model`, and return the run's results.

    `train_model` explains the arguments and the results. A process that exports the model calls
    this function, if another process trained the model.
    """
    best = KeepBest(folder.best, f"val_{job.monitor}", job.lower_is_better)
    with train_parts(job.model, recipe):
        load_weights(job.model, folder.best)
    return (best.score, best.epoch), read_history(folder.history)


@contextlib.contextmanager
def train_parts(model, recipe):
    """Context manager around the training of `model`: freeze blocks or enable LoRA.

    The fields `freeze` and `lora_rank` of the recipe decide this. At the end, LoRA updates are
    merged into the weights, and all blocks are trainable again.
    """
    if recipe.freeze is not None:
        training.freeze(model, None if recipe.freeze == "all" else recipe.freeze)
    adapts = recipe.lora_rank is not None and recipe.freeze != "all"  # else there are no targets
    if adapts:
        targets = {} if recipe.lora_targets is None else {"targets": recipe.lora_targets}
        training.enable_lora(model, recipe.lora_rank, **targets)
    try:
        if not model.trainable_weights:
            raise ValueError(
                f"freeze={recipe.freeze!r} leaves no weights of {model.name} to train, because "
                "its logits are products with the embeddings of tokens. Freeze fewer blocks, or "
                "use lora_rank."
            )
        yield
    finally:
        if adapts:
            training.merge_lora(model)
        if recipe.freeze is not None:
            training.unfreeze(model)


def compile_model(model, job, recipe):
    """Compile the model with AdamW, warm-up, cosine decay, and the loss and metrics of the job.

    Returns:
        If the recipe has a time limit, the learning rate schedule for `Budget`: a function from the
        elapsed share of the run to the learning rate. None if the rate depends only on the steps.
    """
    total = max(2, len(job.train) * recipe.epochs)
    warmup = int(total * recipe.warmup)
    if recipe.minutes is None:
        schedule, paced = training.warmup_cosine(recipe.learning_rate, warmup, total), None
    else:
        schedule, paced = recipe.learning_rate, _pace(recipe.learning_rate, recipe.warmup)
    averaging, layerwise = {}, {}
    if recipe.average is not None:
        steps = max(1.0, recipe.average * len(job.train))
        averaging = {"use_ema": True, "ema_momentum": 1 - 1 / steps}
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
    # No weight decay for biases and norms.
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
    model.compile(
        optimizer,
        job.loss,
        metrics=[make() for make in job.metrics],
        # `jit_compile` in the recipes was chosen for TensorFlow. JAX is slow without it.
        jit_compile=recipe.jit_compile if keras.backend.backend() == "tensorflow" else "auto",
    )
    # Otherwise TensorFlow creates the variables during the first step, and traces it twice.
    optimizer.build(model.trainable_variables)
    return paced


def _pace(peak, warmup):
    """Return a function from the elapsed share of a run (0 to 1) to the learning rate.

    The rate rises to `peak` during the share `warmup`. A cosine decay follows.
    """

    def rate(done):
        if done < warmup:
            return peak * done / warmup
        remaining = (min(done, 1.0) - warmup) / (1 - warmup) if warmup < 1 else 0.0
        return 0.5 * peak * (1 + math.cos(math.pi * remaining))

    return rate
