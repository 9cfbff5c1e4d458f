import math

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.training.scheduled_sampling import get_teacher_forcing

SCHEDULES = {
    "constant": (ka.training.ConstantForcing(0.7), lambda i: 0.7),
    "linear": (ka.training.LinearForcing(0.03, 0.9, 0.25), lambda i: max(0.25, 0.9 - 0.03 * i)),
    "exponential": (ka.training.ExponentialForcing(0.9), lambda i: 0.9**i),
    "inverse_sigmoid": (ka.training.InverseSigmoidForcing(7), lambda i: 7 / (7 + math.exp(i / 7))),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_equal_the_paper(name):
    schedule, rule = SCHEDULES[name]
    for i in range(0, 60, 7):
        assert schedule(i) == pytest.approx(rule(i), abs=1e-12)
    assert 0 <= schedule(10**7) <= schedule(0) <= 1  # and no overflow


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_round_trip(name):
    schedule, _ = SCHEDULES[name]
    config = keras.saving.serialize_keras_object(schedule)
    assert get_teacher_forcing(config) == schedule
    plain = {"class_name": name, "config": schedule.get_config()}
    assert get_teacher_forcing(plain) == schedule


def test_a_number_is_a_constant_schedule():
    assert get_teacher_forcing(0.25) == ka.training.ConstantForcing(0.25)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.training.ConstantForcing(1.5), r"probability=1.5\).*of at most 1"),
        (lambda: ka.training.LinearForcing(-0.1), r"slope=-0.1\).*above 0"),
        (lambda: ka.training.LinearForcing(0.1, least=2), r"least=2\).*of at most 1"),
        (lambda: ka.training.ExponentialForcing(1.01), r"base=1.01\).*of at most 1"),
        (lambda: ka.training.InverseSigmoidForcing(0.5), r"k=0.5\).*at least 1"),
        (lambda: get_teacher_forcing("linear"), "LinearForcing needs slope"),
        (lambda: get_teacher_forcing(None), "schedule=None.*LinearForcing"),
    ],
)
def test_a_wrong_schedule_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


V = 11


@keras.saving.register_keras_serializable(package="tests")
class After(keras.layers.Layer):
    """A layer that predicts the next id with certainty, and 1 after the last id."""

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def call(self, ids):
        return 50 * self.scale * ops.one_hot(ids % (V - 1) + 1, V)


def certain(**kwargs):
    ids = keras.Input((None,), dtype="int32", name="target_ids")
    model = keras.Model({"target_ids": ids}, After()(ids))
    fitted = ka.training.with_two_passes(model, **kwargs)
    return fitted, fitted.get_layer("two_passes")


def targets(batch=2, length=5):
    ids = np.random.default_rng(0).integers(1, V, (batch, length)).astype("int32")
    ids[1, length - 2 :] = 0
    return ids


def after(ids):
    return ids % (V - 1) + 1


def fed(layer, ids):
    """Return the tokens that the second pass read, except the last, from its predictions."""
    logits = np.asarray(layer({"target_ids": ids}, training=True))
    return (np.argmax(logits, axis=-1) - 2) % (V - 1) + 1


@pytest.mark.parametrize("feedback", ["argmax", "sample"])
def test_the_second_pass_reads_the_predictions_of_the_first(feedback):
    _, layer = certain(feedback=feedback)
    ids = targets()
    layer.teacher_forcing.assign(0.0)
    seen = fed(layer, ids)
    tokens = ids > 0
    np.testing.assert_array_equal(seen[:, 0], ids[:, 0])
    np.testing.assert_array_equal(seen[:, 1:][tokens[:, 1:]], after(ids[:, :-1])[tokens[:, 1:]])
    layer.teacher_forcing.assign(1.0)
    np.testing.assert_array_equal(fed(layer, ids)[tokens], ids[tokens])


def test_more_passes_go_further():
    _, layer = certain(passes=4)
    layer.teacher_forcing.assign(0.0)
    ids = targets()[:1]
    assert fed(layer, ids)[0].tolist() == [(ids[0, 0] + i - 1) % (V - 1) + 1 for i in range(5)]


def test_half_of_the_tokens_are_given():
    _, layer = certain(seed=1)
    layer.teacher_forcing.assign(0.5)
    ids = np.full((40, 26), 3)
    seen = fed(layer, ids)
    assert set(np.unique(seen)) == {3, 4} and 400 < (seen[:, 1:] == 3).sum() < 600


def test_outside_training_there_is_one_pass():
    model, layer = certain()
    layer.teacher_forcing.assign(0.0)
    ids = targets()
    np.testing.assert_array_equal(
        np.argmax(model({"target_ids": ids}), axis=-1)[ids > 0], after(ids)[ids > 0]
    )


class Watch(keras.callbacks.Callback):
    """Records `teacher_forcing` at each update."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.seen = layer, []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(float(self.layer.teacher_forcing))


@pytest.mark.slow
def test_the_callback_counts_updates_and_epochs():
    model, layer = certain()
    model.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0))
    watch = Watch(layer)
    x, y = {"target_ids": targets(4)}, targets(4)
    fit = dict(batch_size=2, epochs=2, verbose=0)
    steps = ka.training.ScheduledSampling(ka.training.LinearForcing(0.1))
    history = model.fit(x, y, callbacks=[steps, watch], **fit)
    assert watch.seen == pytest.approx([1.0, 0.9, 0.8, 0.7])
    assert history.history["teacher_forcing"] == pytest.approx([0.9, 0.7])
    epochs = ka.training.ScheduledSampling(ka.training.ExponentialForcing(0.5), per="epoch")
    model.fit(x, y, callbacks=[epochs, watch], **fit)
    assert watch.seen[4:] == [1.0, 1.0, 0.5, 0.5]
    model.fit(x, y, callbacks=[steps, watch], **{**fit, "epochs": 1})
    assert watch.seen[8:] == pytest.approx([0.2, 0.1])  # the optimizer continues to count


@pytest.mark.slow
def test_scheduled_sampling_trains_a_transformer():
    model = ka.models.seq2seq_transformer(
        V, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, dropout=0.0
    )
    fitted = ka.training.with_two_passes(model)
    ids = {"source_ids": targets(), "target_ids": targets()}
    np.testing.assert_allclose(fitted(ids), model(ids), atol=1e-6)
    layer = fitted.get_layer("two_passes")
    np.testing.assert_allclose(layer(ids, training=True), model(ids), atol=1e-5)
    layer.teacher_forcing.assign(0.0)
    assert not np.allclose(layer(ids, training=True), model(ids), atol=1e-3)
    assert {id(w) for w in model.weights} < {id(w) for w in fitted.weights}


def test_scheduled_sampling_refuses_wrong_models_and_options():
    ids = keras.Input((3,), name="token_ids")
    with pytest.raises(ValueError, match="whose inputs are .*'target_ids'"):
        ka.training.with_two_passes(keras.Model(ids, keras.layers.Dense(3)(ids)))
    with pytest.raises(ValueError, match="feedback=None"):
        certain(feedback=None)
    with pytest.raises(ValueError, match="per='batch'"):
        ka.training.ScheduledSampling(0.5, per="batch")
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    with pytest.raises(ValueError, match="nothing to schedule.*with_two_passes"):
        model.fit(
            np.ones((2, 3)),
            np.ones((2, 1)),
            callbacks=[ka.training.ScheduledSampling(0.5)],
            verbose=0,
        )
