"""Tasks trained by their recipes on one device and on eight. It runs as a program."""

import contextlib
import pathlib
import re
import sys
import tempfile

import keras
import numpy as np

import keras_attention as ka
from keras_attention.cli.mesh import make_layout
from keras_attention.cli.sources import Source
from keras_attention.cli.train import train

MESH = {"data": 4, "model": 2}


class Interrupt(keras.callbacks.Callback):
    """Ctrl-C in the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def make_task():
    """Train a classifier with averaged weights, buckets of lengths, and a smaller last batch."""
    random = np.random.default_rng(0)
    words = ["good", "fine", "bad", "poor", "so", "it", "was"]
    texts = [" ".join(random.choice(words, size=n)) for n in random.integers(1, 12, 61)]
    texts = [ka.data.Text(text, "yes" if "good" in text else "no") for text in texts]
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, min_count=1)
    task = ka.tasks.TextClassifier.from_data(texts[:45], **size)
    return task, texts[:45], texts[45:]


def fit(task, texts, dev, *, folder=None, callbacks=()):
    return task.fit(
        texts,
        dev,
        epochs=3,
        batch_size=8,
        average=1.0,
        backup_dir=folder,
        callbacks=callbacks,
        verbose=False,
    )


def train_task(layout, folder=None):
    """(numbers of each epoch, the best one, predictions), with a stop in between or without."""
    with layout:
        task, texts, dev = make_task()
        if folder is not None:
            try:
                fit(task, texts, dev, folder=folder, callbacks=[Interrupt()])
            except KeyboardInterrupt:
                task, texts, dev = make_task()
            else:
                raise AssertionError("nothing was interrupted")
        history = fit(task, texts, dev, folder=folder)
        split = sum(not w.value.sharding.is_fully_replicated for w in task.model.weights)
        weights = task.model.get_weights()
    losses = [history.history["loss"], history.history["val_loss"]]
    return losses, task.scores["best_epoch"], weights, split


def check_recipes_give_the_same():
    for stopped in (False, True):
        runs = []
        for layout in (contextlib.nullcontext(), make_layout(MESH, True).scope()):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(train_task(layout, f"{folder}/run" if stopped else None))
        (losses, best, weights, _), (again, best_again, weights_again, split) = runs
        assert split > 8 and best == best_again and len(losses[0]) == 3
        np.testing.assert_allclose(again, losses, rtol=1e-5, atol=2e-6)  # kept with six digits
        for ours, theirs in zip(weights_again, weights, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-3)  # Adam's, of tiny gradients


def check_the_command():
    """Check that a preset trained on eight devices with JAX is exported by TensorFlow on one."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "preset")
        options = dict(epochs=1, num_layers=1, num_heads=2, hidden_dim=16)
        source = Source(dataset="digits", files=dict.fromkeys(("train", "dev", "test")))
        train("vision_transformer", path, source, options, mesh=MESH, fully_sharded=True)
        assert keras.distribution.distribution() is None
        names = {file.name for file in path.iterdir()}
        assert {"model.keras", "model.tflite", "saved_model", "scores.json"} <= names, names
        task = ka.tasks.from_preset(path)
        assert all(len(w.value.devices()) == 1 for w in task.model.weights)
        assert '"keras"' in (path / "scores.json").read_text()


def check_too_few_devices_are_refused():
    try:
        make_layout({"data": 16})
    except ValueError as error:
        assert re.search("needs 16 devices, and .* is 8 .*device_count=16", str(error)), error
    else:
        raise AssertionError("16 devices")
    assert make_layout({"data": 2, "model": 2}).device_mesh.shape == (2, 2)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            print(name, file=sys.stderr, flush=True)
            check()
