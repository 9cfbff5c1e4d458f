"""The state of a training run on disk, for resuming it after an interruption."""

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
    """A `keras.callbacks.BackupAndRestore` that can safely be interrupted while it writes.

    Keras overwrites its only backup. An interruption at this moment destroys the backup. This
    callback writes the state after each epoch to a new folder with a temporary name, renames the
    folder, and only then deletes the previous folder.

    Args:
        folder: path of the folder for the states.
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
        except Exception as error:  # HDF5, JSON and Keras raise errors of different classes
            raise _report_damage(states[-1], error) from error
        epoch = keras_internals.first_epoch(self.model)
        if not isinstance(epoch, int):
            raise _report_damage(states[-1], f"it has the epoch {epoch!r}")
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
    """A file in memory with a name. `str` returns the name, because Keras gets it in this way."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def __str__(self):
        return self.name


def save_weights(model, path):
    """Save weights like `model.save_weights(path)`, but never leave an incomplete file.

    HDF5 writes to memory first, because HDF5 would abort the process if the disk is full. In that
    case an OSError is raised.
    """
    buffer = _Buffer(path.name)
    model.save_weights(buffer)
    write_whole(path, buffer.getbuffer())


def load_weights(model, path):
    """Load the weights of `model` from the file `path`, which `save_weights` wrote.

    Raise a ValueError if the file is damaged.
    """
    try:
        model.load_weights(path)
    except Exception as error:  # HDF5 and Keras raise errors of different classes
        raise _report_damage(path, error) from error


def _report_damage(path, reason):
    reason = next(iter(str(reason).strip().splitlines()), "")
    return ValueError(
        f"{path} is damaged, so that the training cannot resume ({reason[:200]}). Delete the "
        "folder of the run, and start again."
    )


class KeepBest(keras.callbacks.Callback):
    """Saves the weights of the epoch with the best score, also if training is interrupted.

    `keras.callbacks.ModelCheckpoint` forgets the best score when training resumes, and would then
    replace the best weights by the weights of the next epoch.

    If several epochs have the same score, the epoch with the lowest loss is the best. Equal scores
    are common on a small development set, and the first of these epochs rarely generalizes best.

    Args:
        path: pathlib.Path of the weights file. The score is saved in the same folder as JSON.
        monitor: str, the name of a metric on the development set.
        lower_is_better: bool, whether lower values are better, as for perplexity.
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
    """The best score of a training run, and the loss and number (from 1) of its epoch."""

    score: float
    loss: float
    epoch: int


def find_note(path):
    """Return the path of the JSON file with the score of the best epoch, next to its weights."""
    return path.with_name("best.json")


def read_best(path):
    """Return the `Best` of a run: the score of the weights that `KeepBest` saved at `path`."""
    fields = Fields.read(find_note(path))
    score, loss = (fields.number(name, finite=False) for name in ("score", "loss"))
    return Best(score, loss, fields.whole("epoch", most=MOST_EPOCHS))


class KeepHistory(keras.callbacks.Callback):
    """Saves the metrics of every epoch in a JSON file, also if training is interrupted.

    Args:
        path: `pathlib.Path` of the JSON file. If it exists, new epochs are appended.

    Attributes:
        epochs: list with a dict of metrics for each epoch.
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
    """Read the metrics that `KeepHistory` wrote to `path`, a list with a dict for each epoch."""
    history = read_json(path)
    if not isinstance(history, list):
        raise ValueError(f"{path} contains {quote_value(history)}: expected a list of epochs.")
    for k, epoch in enumerate(history):
        fields = Fields(path, epoch, f"[{k}]")
        for name in ("epoch", "seconds", *epoch):
            fields.number(name, finite=False)
    return history


@contextlib.contextmanager
def averages_in_place(model):
    """Context manager: inside, the weights of `model` are their moving averages over training.

    Without moving averages in the optimizer, nothing changes.
    """
    if not (model.compiled and model.optimizer.use_ema):
        yield
        return
    swap = keras.callbacks.SwapEMAWeights()
    swap.set_model(model)
    swap.on_test_begin()
    try:
        yield
    finally:
        swap.on_test_end()
