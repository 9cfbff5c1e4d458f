"""The state of a training on disk, so that an interruption costs one epoch at most."""

import contextlib
import io
import pathlib
import shutil
import time
import typing

from keras_attention.core.lazy import keras, keras_internals
from keras_attention.files.fields import MOST_EPOCHS, Fields
from keras_attention.files.io import (
    make_workplace,
    move_into_place,
    quote_value,
    read_json,
    write_json,
    write_whole,
)

WEIGHTS, METADATA = "latest.weights.h5", "training_metadata.json"


class Backup(keras.callbacks.BackupAndRestore):
    """`keras.callbacks.BackupAndRestore` that survives being interrupted while it writes.

    Keras's own writes over the state it would have to go back to; Ctrl-C in that moment leaves a
    file that opens but lacks weights. Here every finished epoch has a folder of its own, made
    under another name and renamed, and the one before goes when the new one is there.

    Args:
        folder: where the states are kept.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.work = self.folder / "work"
        super().__init__(str(self.work), delete_checkpoint=False)

    def on_train_begin(self, logs=None):
        shutil.rmtree(self.work, ignore_errors=True)
        states = self._states()
        if not states:
            return
        shutil.copytree(states[-1], self.work)
        try:
            super().on_train_begin(logs)
        except Exception as error:  # HDF5, JSON and Keras each have errors of their own
            raise _damaged(states[-1], error) from error
        epoch = keras_internals.first_epoch(self.model)
        if not isinstance(epoch, int):
            raise _damaged(states[-1], f"it says epoch {epoch!r}")
        shutil.rmtree(self.work)

    def on_epoch_end(self, epoch, logs=None):
        older = self._states()
        path = self.folder / f"epoch-{epoch + 1:05}"
        with make_workplace(path) as new:
            new.mkdir()
            save_weights(self.model, new / WEIGHTS)
            write_json(new / METADATA, {"epoch": epoch + 1, "batch": 0})
            move_into_place(new, path)
        for state in older:
            shutil.rmtree(state)

    def _states(self):
        return sorted(self.folder.glob("epoch-*"))


class _Buffer(io.BytesIO):
    """A file in memory that has a name, which Keras asks for."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __str__(self):
        return self.name


def save_weights(model, path):
    """`model.save_weights(path)` in one move; where there is no room for it, an OSError.

    HDF5 itself, when the disk is full, takes the process down with it: it writes into memory.
    """
    buffer = _Buffer(path.name)
    model.save_weights(buffer)
    write_whole(path, buffer.getbuffer())


def load_weights(model, path):
    """Reads the file of `save_weights`; a damaged one is a ValueError that names it."""
    try:
        model.load_weights(path)
    except Exception as error:  # HDF5 and Keras each have errors of their own
        raise _damaged(path, error) from error


def _damaged(path, reason):
    reason = next(iter(str(reason).strip().splitlines()), "")
    return ValueError(
        f"{path} is damaged, so that the training cannot go on from there ({reason[:200]}). "
        "Delete the folder that the run was to fill, and start anew."
    )


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
        self.score, self.loss, self.epoch = self.sign * float("-inf"), float("inf"), None
        if find_note(path).exists():
            self.score, self.loss, self.epoch = read_best(path)

    def on_epoch_end(self, epoch, logs=None):
        score, loss = float(logs[self.monitor]), float(logs["val_loss"])
        if (self.sign * score, -loss) <= (self.sign * self.score, -self.loss):
            return
        self.score, self.loss, self.epoch = score, loss, epoch + 1
        with averages_in_place(self.model):
            save_weights(self.model, self.path)
        write_json(find_note(self.path), {"score": score, "loss": loss, "epoch": self.epoch})


class Best(typing.NamedTuple):
    """What `KeepBest` noted: the best score, the loss beside it, and the epoch of both, from 1."""

    score: float
    loss: float
    epoch: int


def find_note(path):
    """Return the path of the note beside the weights of the best epoch."""
    return path.with_name("best.json")


def read_best(path):
    """Read the `Best` beside the weights that `KeepBest` keeps in `path`."""
    fields = Fields.read(find_note(path))
    score, loss = (fields.number(name, finite=False) for name in ("score", "loss"))
    return Best(score, loss, fields.whole("epoch", most=MOST_EPOCHS))


class KeepHistory(keras.callbacks.Callback):
    """Keeps the numbers of every epoch in a file, across interruptions.

    Args:
        path: pathlib.Path, the JSON file: a list with a dict for each epoch.

    Attributes:
        epochs: that list.
    """

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.epochs = read_history(path) if path.exists() else []

    def on_epoch_begin(self, epoch, logs=None):
        del self.epochs[epoch:]
        self.started = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.perf_counter() - self.started
        numbers = {name: round(float(value), 6) for name, value in logs.items()}
        self.epochs.append({"epoch": epoch + 1, **numbers, "seconds": round(seconds, 2)})
        write_json(self.path, self.epochs)


def read_history(path):
    """Return the list that `KeepHistory` wrote: a dict of numbers for each epoch."""
    history = read_json(path)
    if not isinstance(history, list):
        raise ValueError(f"{path} holds {quote_value(history)}: expected a list of epochs.")
    for k, epoch in enumerate(history):
        fields = Fields(path, epoch, f"[{k}]")
        for name in ("epoch", "seconds", *epoch):
            fields.number(name, finite=False)
    return history


@contextlib.contextmanager
def averages_in_place(model):
    """Inside, the model's weights are their running averages, where its optimizer keeps them."""
    if not getattr(getattr(model, "optimizer", None), "use_ema", False):
        yield
        return
    swap = keras.callbacks.SwapEMAWeights()
    swap.set_model(model)
    swap.on_test_begin()
    try:
        yield
    finally:
        swap.on_test_end()
