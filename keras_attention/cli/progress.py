"""The lines that `train` prints while a model is trained: one for each epoch, and what goes on."""

import contextlib
import time

import keras

from keras_attention.cli.printing import format_seconds, keep_informed, say
from keras_attention.export.checks.formatting import format_score
from keras_attention.tasks.run_state import read_best


@contextlib.contextmanager
def show_epochs(job, recipe, folder):
    """Give a callback for `train_model` that prints; inside, no work is silent for long."""
    names = [make().name for make in job.metrics]
    lines = EpochLines(folder.best, recipe.epochs, len(job.train), names)
    with keep_informed(lines.describe):
        yield lines


class EpochLines(keras.callbacks.Callback):
    """Prints a line for each epoch, and describes what goes on within it.

    Args:
        best: pathlib.Path, the file of the weights that `KeepBest` keeps.
        epochs: int.
        steps: int, the batches of an epoch.
        metrics: list of str, their names in the logs. The first is printed of both parts of the
            data, the others of the development set.
    """

    def __init__(self, best, epochs, steps, metrics):
        super().__init__()
        self.best, self.epochs, self.steps = best, epochs, steps
        self.metric, *self.others = metrics
        self.on_epoch_begin(0)

    def describe(self):
        """Return what goes on: the epoch, how far it is, and about how long it takes yet."""
        gone = time.perf_counter() - self.started
        line = f"epoch {self.epoch + 1}/{self.epochs}: "
        if self.checking:
            return f"{line}scoring the development part, {format_seconds(gone)} gone"
        if self.seen < 2:
            return f"{line}preparing the first batches, {format_seconds(gone)} gone"
        seconds = (time.perf_counter() - self.first) / (self.seen - 1)
        left = seconds * (self.steps - self.seen)
        return (
            f"{line}batch {self.seen} of {self.steps}, {format_seconds(gone)} gone, about "
            f"{format_seconds(left)} left"
        )

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.seen, self.checking = epoch, 0, False
        self.started, self.first = time.perf_counter(), None

    def on_train_batch_end(self, batch, logs=None):
        self.seen = batch + 1
        self.first = self.first or time.perf_counter()  # the first one is traced as well

    def on_test_begin(self, logs=None):
        self.checking = True

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.started
        mark = "  best so far" if read_best(self.best).epoch == epoch + 1 else ""
        part = "" if self.seen == self.steps else f"  {self.seen} of {self.steps} batches"
        others = "".join(
            f", {name} {format_score(name, logs['val_' + name])}" for name in self.others
        )
        say(
            f"epoch {epoch + 1:>3}/{self.epochs}  loss {logs['loss']:.4f}  {self.metric}: "
            f"train {format_score(self.metric, logs[self.metric])}, "
            f"dev {format_score(self.metric, logs['val_' + self.metric])}{others}  "
            f"{seconds:5.1f} s{part}{mark}"
        )
