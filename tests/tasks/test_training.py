"""Interrupted and resumed training, full disks, damaged files, and time limits."""

import contextlib
import dataclasses
import json
import resource
import shutil

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import training
from keras_attention.tasks import training as training_module
from keras_attention.tasks.folders import RunFolder
from keras_attention.tasks.recipes import Recipe
from keras_attention.tasks.run_state import Backup, KeepBest, KeepHistory
from keras_attention.tasks.training import Job, train_model

RECIPE = Recipe(model={}, epochs=4, batch_size=8, learning_rate=0.05)


def make_job():
    """Make a job for a linear classifier of fixed data, without randomness."""
    keras.utils.set_random_seed(1)
    generator = np.random.default_rng(0)
    x = generator.normal(size=(48, 5)).astype("float32")
    y = np.argmax(x[:, :3] + generator.normal(size=(48, 3)), axis=-1).astype("int32")
    inputs = keras.Input((5,), name="features")
    model = keras.Model(inputs, keras.layers.Dense(3, name="logits")(inputs))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    accuracy = training.MaskedSparseCategoricalAccuracy
    return Job(
        model=model,
        train=data,
        dev=data,
        metrics=[lambda: accuracy(name="accuracy")],
        loss=training.MaskedSparseCategoricalCrossentropy(label_smoothing=RECIPE.label_smoothing),
    )


class BothWrong(keras.losses.Loss):
    """Return the greater of two cross-entropies, so that neither output has its own loss."""

    def call(self, y_true, y_pred):
        entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        return keras.ops.maximum(
            entropy(y_true, y_pred["first"]), entropy(y_true, y_pred["second"])
        )


class BothRight(keras.metrics.Mean):
    """Share of examples for which both outputs are right."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        right = [keras.ops.equal(keras.ops.argmax(x, -1), y_true) for x in y_pred.values()]
        super().update_state(keras.ops.logical_and(*right), sample_weight)


def make_joint_job():
    """Make a job for the same data and a model of two outputs."""
    job = make_job()
    inputs = job.model.inputs[0]
    outputs = {name: keras.layers.Dense(3, name=name)(inputs) for name in ("first", "second")}
    return dataclasses.replace(
        job,
        model=keras.Model(inputs, outputs),
        train=job.train.map(lambda x, y: (x, tf.cast(y, "int64"))),
        dev=job.dev.map(lambda x, y: (x, tf.cast(y, "int64"))),
        metrics=[lambda: BothRight(name="both")],
        loss=BothWrong(),
    )


def start(path):
    folder = RunFolder(path, {"epochs": 4})
    folder.start()
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return weights, best epoch and history of a run without interruption."""
    job = make_job()
    best, history = train_model(job, RECIPE, start(tmp_path_factory.mktemp("whole")))
    return job.model.get_weights(), best, history


def numbers(history):
    return [{k: v for k, v in epoch.items() if k != "seconds"} for epoch in history]


class Epochs(keras.callbacks.Callback):
    """Records the trained epochs, counted from 1."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch + 1)


def interrupt_at(monkeypatch, cls, method, call):
    """Raise Ctrl-C at the beginning of the `call`-th call of a method."""
    original, calls = getattr(cls, method), []

    def interrupted(self, *arguments, **keywords):
        calls.append(arguments)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(cls, method, interrupted)


@pytest.mark.slow
def test_resumed_training_equals_uninterrupted_training(finished, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, KeepHistory, "on_epoch_begin", 3)
        with pytest.raises(KeyboardInterrupt):
            train_model(make_job(), RECIPE, start(tmp_path / "broken"))

    folder = start(tmp_path / "broken")
    assert folder.resumed
    job, trained = make_job(), Epochs()
    best, history = train_model(job, RECIPE, folder, callbacks=[trained])
    assert trained.epochs == [3, 4]
    weights, finished_best, finished_history = finished
    assert best == finished_best and numbers(history) == numbers(finished_history)
    for ours, theirs in zip(job.model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_ctrl_c_while_the_state_is_written_loses_that_epoch_only(finished, tmp_path, monkeypatch):
    whole = keras.Model.save_weights

    def half(model, filepath, **keywords):
        """Write an incomplete second state, as HDF5 leaves it."""
        if "latest" not in str(filepath) or not list((tmp_path / "broken").rglob("backup/epoch-*")):
            return whole(model, filepath, **keywords)
        h5py.File(filepath, "w").close()
        raise KeyboardInterrupt

    trained = Epochs()
    with monkeypatch.context() as patch:
        patch.setattr(keras.Model, "save_weights", half)
        with pytest.raises(KeyboardInterrupt):
            train_model(make_job(), RECIPE, start(tmp_path / "broken"), callbacks=[trained])
    assert trained.epochs == [1]
    job = make_job()
    train_model(job, RECIPE, start(tmp_path / "broken"))
    for ours, theirs in zip(job.model.get_weights(), finished[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_a_finished_training_is_not_repeated(tmp_path):
    best, history = train_model(make_job(), RECIPE, start(tmp_path / "run"))
    job, trained, folder = make_job(), Epochs(), start(tmp_path / "run")
    assert train_model(job, RECIPE, folder, callbacks=[trained]) == (best, history)
    assert trained.epochs == []


@pytest.mark.slow
def test_only_the_newest_state_is_kept(tmp_path):
    folder = start(tmp_path / "run")
    train_model(make_job(), RECIPE, folder)
    assert [path.name for path in folder.backup.glob("epoch-*")] == ["epoch-00004"]


def test_the_best_weights_survive_a_later_worse_epoch_and_a_restart(tmp_path):
    model = make_job().model
    path = tmp_path / "best.weights.h5"

    def end(epoch, score, value):
        keep = KeepBest(path, "val_accuracy")  # as after a restart
        keep.set_model(model)
        model.set_weights([np.full_like(w, value) for w in model.get_weights()])
        keep.on_epoch_end(epoch, {"val_accuracy": score, "val_loss": 1.0})
        return keep

    end(0, 0.5, 1.0)
    end(1, 0.7, 2.0)
    keep = end(2, 0.6, 3.0)
    assert (keep.score, keep.epoch) == (0.7, 2)
    model.load_weights(path)
    assert all((w == 2.0).all() for w in model.get_weights())


def test_lowest_loss_wins_among_equal_scores(tmp_path):
    keep = KeepBest(tmp_path / "best.weights.h5", "val_accuracy")
    keep.set_model(make_job().model)
    for epoch, loss in enumerate([0.9, 0.7, 0.8]):
        keep.on_epoch_end(epoch, {"val_accuracy": 0.5, "val_loss": loss})
    assert keep.epoch == 2


def test_the_optimizer_has_its_variables_before_the_first_step():
    """Check this because TensorFlow would otherwise trace the step twice."""
    job = make_job()
    training_module.compile_model(job.model, job, RECIPE)
    optimizer = job.model.optimizer
    assert optimizer.built
    before = [variable.path for variable in optimizer.variables]
    optimizer.apply(job.model.trainable_variables)  # any labels of these shapes
    assert [variable.path for variable in optimizer.variables] == before


def test_biases_and_norms_do_not_decay():
    job = make_job()
    training_module.compile_model(job.model, job, RECIPE)
    kernel, bias = job.model.trainable_variables
    assert job.model.optimizer._use_weight_decay(kernel)
    assert not job.model.optimizer._use_weight_decay(bias)


def test_backup_ignores_a_state_that_was_not_finished(tmp_path):
    unfinished = tmp_path / ".epoch-00001.01234567.unfinished" / "epoch-00001"
    unfinished.mkdir(parents=True)
    (unfinished / "latest.weights.h5").write_bytes(b"half")
    backup = Backup(tmp_path)
    job = make_job()
    backup.set_model(job.model)
    backup.on_train_begin()
    assert not job.model._initial_epoch


@pytest.mark.slow
def test_running_average_is_evaluated_and_saved(tmp_path):
    recipe = dataclasses.replace(RECIPE, average=2.0)
    job, folder = make_job(), start(tmp_path / "run")
    after, original = [], KeepBest.on_epoch_end

    class Spy(KeepBest):
        def on_epoch_end(self, epoch, logs=None):
            after.append([w.numpy() for w in self.model.trainable_variables])
            original(self, epoch, logs)
            assert all(
                (w.numpy() == now).all()
                for w, now in zip(self.model.trainable_variables, after[-1], strict=True)
            )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_module, "KeepBest", Spy)
        (score, epoch), history = train_model(job, recipe, folder)
    optimizer = job.model.optimizer
    assert optimizer.ema_momentum == 1 - 1 / (2 * len(job.train))
    assert any(
        (w.numpy() != now).any()
        for w, now in zip(job.model.trainable_variables, after[epoch - 1], strict=True)
    )
    results = job.model.evaluate(job.dev, verbose=0, return_dict=True)
    assert results["accuracy"] == pytest.approx(score) == history[epoch - 1]["val_accuracy"]
    assert results["loss"] == pytest.approx(history[epoch - 1]["val_loss"], abs=1e-6)


@pytest.mark.slow
def test_training_ends_when_its_time_is_over_and_is_not_resumed(tmp_path):
    recipe, trained = dataclasses.replace(RECIPE, minutes=0.0), Epochs()
    options = {"callbacks": [trained]}
    best, history = train_model(make_job(), recipe, start(tmp_path / "run"), **options)
    assert len(history) == 1 and trained.epochs == [1]
    assert train_model(make_job(), recipe, start(tmp_path / "run"), **options) == (best, history)
    assert trained.epochs == [1]


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that each call of `clock(seconds)` moves forward."""
    now = [0.0]
    monkeypatch.setattr(training_module.time, "perf_counter", lambda: now[0])

    def pass_by(seconds):
        now[0] += seconds

    return pass_by


class Tick(keras.callbacks.Callback):
    """Lets every batch take `seconds`, and records the learning rates."""

    def __init__(self, clock, seconds):
        super().__init__()
        self.clock, self.seconds, self.rates = clock, seconds, []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate.numpy()))
        self.clock(self.seconds)


@pytest.mark.slow
def test_epoch_that_the_time_limit_ends_is_evaluated(tmp_path, clock):
    """Train with 6 batches of 20 seconds: 3 minutes end in the second epoch."""
    recipe = dataclasses.replace(RECIPE, minutes=3.0, epochs=100)
    tick = Tick(clock, 20.0)
    best, history = train_model(make_job(), recipe, start(tmp_path / "run"), callbacks=[tick])
    assert len(history) == 2 and len(tick.rates) == 9 and "val_accuracy" in history[1]
    assert [epoch["seconds"] for epoch in history] == [120.0, 60.0]
    # A tenth of the time is warm-up, and the rate ends near zero after few steps.
    assert max(tick.rates) == pytest.approx(0.05, rel=0.02) and tick.rates[-1] < 0.005
    again = train_model(make_job(), recipe, start(tmp_path / "run"))
    assert again == (best, history)


def test_time_spent_reading_data_counts_toward_the_limit(tmp_path, clock):
    recipe = dataclasses.replace(RECIPE, minutes=3.0, epochs=100)
    tick = Tick(clock, 20.0)
    folder = start(tmp_path / "run")
    _, history = train_model(make_job(), recipe, folder, callbacks=[tick], spent=100.0)
    assert len(history) == 1 and len(tick.rates) == 4


@contextlib.contextmanager
def files_of(size):
    """Limit the size of files inside, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_full_disk_is_one_sentence_and_training_can_resume(tmp_path):
    """Check this because HDF5 would abort the process on a full disk."""
    folder = start(tmp_path / "run")
    with pytest.raises(
        OSError, match="run: File too large. The training so far is saved there"
    ) as error:
        with files_of(1000):
            train_model(make_job(), RECIPE, folder)
    assert "unfinished" not in str(error.value) and names(tmp_path) == ["settings.json"]
    best, history = train_model(make_job(), RECIPE, start(tmp_path / "run"))
    expected = train_model(make_job(), RECIPE, start(tmp_path / "other"))
    assert best == expected[0] and numbers(history) == numbers(expected[1])


@pytest.mark.slow
def test_full_disk_loses_no_finished_epoch(tmp_path, monkeypatch):
    first, second = Epochs(), Epochs()
    with monkeypatch.context() as patch:
        interrupt_at(patch, keras.callbacks.Callback, "on_epoch_begin", 10**9)
        whole, calls = keras.Model.save_weights, []

        def save(model, filepath, **keywords):
            calls.append(filepath)
            if len(calls) > 4:
                raise OSError(28, "No space left on device")
            return whole(model, filepath, **keywords)

        patch.setattr(keras.Model, "save_weights", save)
        with pytest.raises(OSError, match="No space left on device. The training so far is saved"):
            train_model(make_job(), RECIPE, start(tmp_path / "run"), callbacks=[first])
    assert first.epochs == [1, 2]
    job = make_job()
    best, history = train_model(job, RECIPE, start(tmp_path / "run"), callbacks=[second])
    assert second.epochs == [3, 4]
    other = make_job()
    expected = train_model(other, RECIPE, start(tmp_path / "other"))
    assert best == expected[0] and numbers(history) == numbers(expected[1])
    for ours, theirs in zip(job.model.get_weights(), other.model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def copy(stopped, folder):
    """Damage the weights of a best epoch, which are needed at the end."""
    shutil.copytree(stopped, folder)
    (path,) = folder.rglob("best.json")
    path.write_text('{"score": 1.0, "loss": 0.0, "epoch": 2}')
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Interrupt a run after two epochs, and return its folder."""
    path = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_at(patch, KeepHistory, "on_epoch_begin", 3)
        with pytest.raises(KeyboardInterrupt):
            train_model(make_job(), RECIPE, start(path))
    return path


DEEP = b"[" * 10**5
DAMAGED = [
    *[("settings.json", content) for content in (b"", b"[]", b"null", b'"x"', b"\xff", DEEP)],
    *[
        ("best.json", content)
        for content in (b"[]", DEEP, b'{"score": 1, "loss": 1, "epoch": 1e9}')
    ],
    *[("history.json", content) for content in (b"null", b"[1]", b'[{"epoch": 1, "seconds": []}]')],
    *[("training_metadata.json", content) for content in (b"[]", b"{}", b'{"epoch": "two"}')],
    *[("latest.weights.h5", content) for content in (b"", b"\x89HDF\r\n\x1a\n")],
    ("best.weights.h5", b""),
]


@pytest.mark.parametrize(("name", "content"), DAMAGED)
def test_error_names_the_damaged_state(stopped, tmp_path, name, content):
    folder = copy(stopped, tmp_path / "run")
    (path,) = folder.rglob(name)
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        train_model(make_job(), RECIPE, start(folder))
    # Each epoch has one folder.
    assert (path.parent.name if path.parent.name.startswith("epoch-") else name) in str(error.value)


@pytest.mark.parametrize("name", ["best.weights.h5", "latest.weights.h5"])
def test_incomplete_weights_are_refused(stopped, tmp_path, name):
    folder = copy(stopped, tmp_path / "run")
    (path,) = folder.rglob(name)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ValueError, match=f"({name}|epoch-00002) is damaged.*Delete the folder"):
        train_model(make_job(), RECIPE, start(folder))


@pytest.mark.slow
def test_nan_score_can_be_saved_and_read(stopped, tmp_path):
    folder = copy(stopped, tmp_path / "run")
    (path,) = folder.rglob("best.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"loss": float("nan")}))
    train_model(make_job(), RECIPE, start(folder))


@pytest.mark.slow
def test_outputs_are_trained_together(tmp_path):
    """Check that the model of the job has the weights of the best epoch."""
    job = make_joint_job()
    best, history = train_model(job, RECIPE, start(tmp_path / "whole"))
    scores = [epoch["val_both"] for epoch in history]
    assert best[0] == pytest.approx(max(scores), abs=1e-5) and scores[-1] > scores[0]
    assert history[-1]["loss"] < history[0]["loss"]
    (x, y), right = next(iter(job.dev.unbatch().batch(48))), BothRight()
    right.update_state(y, job.model(x))
    assert float(right.result()) == pytest.approx(best[0], abs=1e-6)


@pytest.mark.slow
def test_resumed_training_of_several_outputs_equals_uninterrupted_training(tmp_path):
    whole = make_joint_job()
    train_model(whole, RECIPE, start(tmp_path / "whole"))

    class Interrupt(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_model(make_joint_job(), RECIPE, start(tmp_path / "cut"), callbacks=[Interrupt()])
    again = make_joint_job()
    train_model(again, RECIPE, start(tmp_path / "cut"))
    for ours, theirs in zip(again.model.get_weights(), whole.model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
