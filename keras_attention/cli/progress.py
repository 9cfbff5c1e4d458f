"""The lines that `train` prints during training: the progress, and a line for each epoch."""

import contextlib
import time

import keras

from keras_attention.cli.printing import format_seconds, keep_informed, say
from keras_attention.export.checks.formatting import format_score
from keras_attention.tasks.run_state import read_best


@contextlib.contextmanager
def show_epochs(job, recipe, folder):
    """Context manager that reports the progress of training.

    It yields an `EpochLines`, the Keras callback that prints a line for each epoch. `job` has the
    model and data, `recipe` the number of epochs, and `folder` is the `RunFolder` of the run.
    """
    names = [make().name for make in job.metrics]
    lines = EpochLines(folder.best, recipe.epochs, len(job.train), names)
    with keep_informed(lines.describe):
        yield lines


class EpochLines(keras.callbacks.Callback):
    """Prints a line for each epoch, and describes the progress within an epoch.

    Args:
        best: pathlib.Path of the weights that `KeepBest` saves.
        epochs: int, the number of epochs.
        steps: int, the number of batches in an epoch.
        metrics: list of str, the names of metrics. The first is printed for the training and the
            development split, and the others only for the development split.
    """

    def __init__(self, best, epochs, steps, metrics):
        super().__init__()
        self.best, self.epochs, self.steps = best, epochs, steps
        self.metric, *self.more_metrics = metrics
        self.on_epoch_begin(0)

    def describe(self):
        """Return a line of text: the epoch, the batches done, and the estimated remaining time."""
        gone = time.perf_counter() - self.started
        line = f"epoch {self.epoch + 1}/{self.epochs}: "
        if self.checking:
            return f"{line}scoring the development part, {format_seconds(gone)} elapsed"
        if self.seen < 2:
            return f"{line}preparing the first batches, {format_seconds(gone)} elapsed"
        seconds = (time.perf_counter() - self.first) / (self.seen - 1)
        left = seconds * (self.steps - self.seen)
        return (
            f"{line}batch {self.seen} of {self.steps}, {format_seconds(gone)} elapsed, about "
            f"{format_seconds(left)} left"
        )

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.seen, self.checking = epoch, 0, False
        self.started, self.first = time.perf_counter(), None

    def on_train_batch_end(self, batch, logs=None):
        self.seen = batch + 1
        self.first = self.first or time.perf_counter()  # the first batch, which is traced, is over

    def on_test_begin(self, logs=None):
        self.checking = True

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.started
        mark = "  best so far" if read_best(self.best).epoch == epoch + 1 else ""
        part = "" if self.seen == self.steps else f"  {self.seen} of {self.steps} batches"
        more = "".join(
            f", {name} {format_score(name, logs['val_' + name])}" for name in self.more_metrics
        )
        say(
            f"epoch {epoch + 1:>3}/{self.epochs}  loss {logs['loss']:.4f}  {self.metric}: "
            f"train {format_score(self.metric, logs[self.metric])}, "
            f"dev {format_score(self.metric, logs['val_' + self.metric])}{more}  "
            f"{seconds:5.1f} s{part}{mark}"
        )
