import math

import keras
import numpy as np
import pytest

import keras_attention as ka


def cosine_by_definition(step, peak, warmup, total, final):
    if step < warmup:
        return peak * step / warmup
    done = min((step - warmup) / (total - warmup), 1.0)
    return peak * (final + (1 - final) * (1 + math.cos(math.pi * done)) / 2)


@pytest.mark.parametrize("warmup, final", [(0, 0.0), (7, 0.0), (7, 0.1)])
def test_warmup_cosine_equals_the_definition(warmup, final):
    schedule = ka.training.warmup_cosine(0.3, warmup, 31, final)
    for step in (0, 1, 6, 7, 8, 19, 30, 31, 32, 1000):
        expected = cosine_by_definition(step, 0.3, warmup, 31, final)
        np.testing.assert_allclose(schedule(step), expected, atol=1e-7)


def test_warmup_cosine_returns_a_keras_schedule():
    schedule = ka.training.warmup_cosine(0.3, 7, 31)
    assert type(schedule) is keras.optimizers.schedules.CosineDecay


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_noam_equals_the_definition(scale):
    schedule = ka.training.Noam(hidden_dim=64, warmup_steps=11, scale=scale)
    for iteration in (0, 1, 9, 10, 11, 12, 5000):
        step = iteration + 1  # the paper counts steps from 1
        expected = scale * 64**-0.5 * min(step**-0.5, step * 11**-1.5)
        np.testing.assert_allclose(schedule(iteration), expected, rtol=1e-5)


def test_noam_drives_an_optimizer():
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(ka.training.Noam(4, 3)), "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), batch_size=2, verbose=0)
    expected = 4**-0.5 * 3 * 3**-1.5  # the third step follows two updates
    np.testing.assert_allclose(model.optimizer.learning_rate, expected, rtol=1e-5)


def test_round_trip():
    schedule = ka.training.Noam(64, 11, scale=2.0)
    config = keras.optimizers.schedules.serialize(schedule)
    assert config["registered_name"] == "keras_attention>Noam"
    revived = keras.optimizers.schedules.deserialize(config)
    assert revived.get_config() == {"hidden_dim": 64, "warmup_steps": 11, "scale": 2.0}


def test_errors():
    with pytest.raises(ValueError, match="warmup_steps=10, total_steps=10.*no steps are left"):
        ka.training.warmup_cosine(0.1, 10, 10)
    with pytest.raises(ValueError, match=r"total_steps=1.5.*whole number"):
        ka.training.warmup_cosine(0.1, 0, 1.5)
    with pytest.raises(ValueError, match=r"Noam\(warmup_steps=0\).*at least 1"):
        ka.training.Noam(64, 0)
