"""The schedules of Bengio et al. (2015), section 2.4."""

import math

import keras
import pytest

import keras_attention as ka
from keras_attention.training.teacher_forcing import get_teacher_forcing

SCHEDULES = {
    "constant": (ka.training.ConstantForcing(0.7), lambda i: 0.7),
    "linear": (ka.training.LinearForcing(0.03, 0.9, 0.25), lambda i: max(0.25, 0.9 - 0.03 * i)),
    "exponential": (ka.training.ExponentialForcing(0.9), lambda i: 0.9**i),
    "inverse_sigmoid": (ka.training.InverseSigmoidForcing(7), lambda i: 7 / (7 + math.exp(i / 7))),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_it_is_the_paper(name):
    schedule, rule = SCHEDULES[name]
    for i in range(0, 60, 7):
        assert schedule(i) == pytest.approx(rule(i), abs=1e-12)
    assert 0 <= schedule(10**7) <= schedule(0) <= 1  # and no overflow


@pytest.mark.parametrize("name", SCHEDULES)
def test_it_is_data(name):
    schedule, _ = SCHEDULES[name]
    config = keras.saving.serialize_keras_object(schedule)
    assert get_teacher_forcing(config) == schedule
    plain = {"class_name": name, "config": schedule.get_config()}
    assert get_teacher_forcing(plain) == schedule


def test_a_number_stays():
    assert get_teacher_forcing(0.25) == ka.training.ConstantForcing(0.25)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ka.training.ConstantForcing(1.5), r"probability=1.5\).*from 0 to 1"),
        (lambda: ka.training.LinearForcing(-0.1), r"slope=-0.1\).*above 0"),
        (lambda: ka.training.LinearForcing(0.1, least=2), r"least=2\).*from 0 to 1"),
        (lambda: ka.training.ExponentialForcing(1.01), r"base=1.01\).*from 0 to 1"),
        (lambda: ka.training.InverseSigmoidForcing(0.5), r"k=0.5\).*at least 1"),
        (lambda: get_teacher_forcing("linear"), "LinearForcing needs slope"),
        (lambda: get_teacher_forcing(None), "schedule=None.*LinearForcing"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()
