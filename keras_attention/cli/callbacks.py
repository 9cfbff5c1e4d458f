"""What happens at the end of an epoch: the best weights are kept, a line is printed and noted."""

import contextlib
import json
import os
import sys
import time

import keras

from keras_attention.cli.console import say, shown
from keras_attention.cli.folder import write_json


class KeepBest(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the best `monitor`, across interruptions.

    Of epochs with the same score, the one with the lowest loss is the best: on a small development
    set scores are coarse, and the first to reach one is seldom the best to generalise.

    `keras.callbacks.ModelCheckpoint` forgets its best score when training is resumed, and would
    replace the best weights by those of the first epoch after the interruption.

    Args:
        path: pathlib.Path, the weights file; the score lies beside it as JSON.
        monitor: str, the name of a metric on the development set.
        lower_is_better: bool, whether the best is the lowest, as of perplexity.
    """

    def __init__(self, path, monitor, lower_is_better=False):
        super().__init__()
        self.path, self.monitor = path, monitor
        self.sign = -1.0 if lower_is_better else 1.0
        self.note = path.with_name("best.json")
        known = read_json(self.note, {})
        self.score = known.get("score", self.sign * float("-inf"))
        self.loss, self.epoch = known.get("loss", float("inf")), known.get("epoch")

    def on_epoch_end(self, epoch, logs=None):
        score, loss = float(logs[self.monitor]), float(logs["val_loss"])
        if (self.sign * score, -loss) <= (self.sign * self.score, -self.loss):
            return
        self.score, self.loss, self.epoch = score, loss, epoch + 1
        unfinished = self.path.with_name("unfinished.weights.h5")
        with averages_in_place(self.model):
            self.model.save_weights(unfinished, overwrite=True)
        os.replace(unfinished, self.path)
        write_json(self.note, {"score": score, "loss": loss, "epoch": self.epoch})


@contextlib.contextmanager
def averages_in_place(model):
    """Inside, the model's weights are their running averages, where its optimizer keeps them."""
    if not getattr(getattr(model, "optimizer", None), "use_ema", False):
        yield
        return
    swap = keras.callbacks.SwapEMAWeights()
    swap.set_model(model)
    swap.on_test_begin()
    yield
    swap.on_test_end()


class Budget(keras.callbacks.Callback):
    """Ends training after the epoch in which the time for it is used up.

    Args:
        minutes: float, or None for no end. Epochs before an interruption count.
        history: the list of epochs that `Progress` keeps.
    """

    def __init__(self, minutes, history):
        super().__init__()
        self.minutes, self.history = minutes, history

    @property
    def used_up(self):
        """Whether the time is over; there is always some for a first epoch."""
        if self.minutes is None or not self.history:
            return False
        return sum(epoch["seconds"] for epoch in self.history) >= 60 * self.minutes

    def on_epoch_end(self, epoch, logs=None):
        if self.used_up:
            self.model.stop_training = True


class Progress(keras.callbacks.Callback):
    """One line per epoch, and on a terminal a bar within it; the numbers are noted in a file.

    Args:
        path: pathlib.Path, the JSON file: a list with a dict for each epoch.
        epochs: int.
        best: the `KeepBest` that runs before it.
        metrics: list of str, their names in the logs. The first is printed of both parts of the
            data, the others of the development set.
    """

    def __init__(self, path, epochs, best, metrics):
        super().__init__()
        self.path, self.epochs, self.best = path, epochs, best
        self.metric, *self.others = metrics
        self.bar, self.steps = None, None
        self.history = read_json(path, [])

    def on_epoch_begin(self, epoch, logs=None):
        del self.history[epoch:]
        self.started, self.seen = time.perf_counter(), 0
        if sys.stderr.isatty():
            self._open_bar(epoch)

    def _open_bar(self, epoch):
        from rich.console import Console
        from rich.progress import Progress as Bar

        self.bar = Bar(console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(f"epoch {epoch + 1}/{self.epochs}", total=self.steps)
        self.bar.start()

    def on_train_batch_end(self, batch, logs=None):
        self.seen = batch + 1
        if self.bar is not None:
            self.bar.update(self.task, completed=self.seen)

    def on_epoch_end(self, epoch, logs=None):
        self.close()
        self.steps = self.seen
        seconds = time.perf_counter() - self.started
        numbers = {name: round(float(value), 6) for name, value in logs.items()}
        self.history.append({"epoch": epoch + 1, **numbers, "seconds": round(seconds, 2)})
        write_json(self.path, self.history)
        mark = "  best so far" if self.best.epoch == epoch + 1 else ""
        others = "".join(f", {name} {shown(name, logs['val_' + name])}" for name in self.others)
        say(
            f"epoch {epoch + 1:>3}/{self.epochs}  loss {logs['loss']:.4f}  "
            f"train {shown(self.metric, logs[self.metric])}  "
            f"dev {shown(self.metric, logs['val_' + self.metric])}{others}  "
            f"{seconds:5.1f} s{mark}"
        )

    def close(self):
        """Takes the bar away; also after an interruption."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def read_json(path, default):
    return json.loads(path.read_text("utf-8")) if path.exists() else default
