"""Advice after a training that could have been better."""

import types

import pytest

from keras_attention.tasks.fitting import advise
from keras_attention.tasks.recipes import Recipe

RECIPE = dict(model={"dropout": 0.5}, epochs=8, batch_size=8, learning_rate=0.01)
RISING = [0.3, 0.5, 0.6, 0.65, 0.7, 0.72, 0.75, 0.79]
FLAT = [0.7, 0.8, 0.8, 0.81, 0.81, 0.81, 0.812, 0.811]


def ask(train, dev, lower_is_better=False, **options):
    job = types.SimpleNamespace(monitor="accuracy", lower_is_better=lower_is_better)
    history = [{"accuracy": train, "val_accuracy": score} for score in dev]
    return advise(job, Recipe(**RECIPE | options), history)


@pytest.mark.parametrize(
    ("train", "dev", "options", "named"),
    [
        (0.54, RISING[:3], {"minutes": 3.0}, "minutes="),
        (0.54, RISING[:1], {"minutes": 3.0}, "minutes="),
        (0.54, RISING, {"minutes": 3.0}, "dropout="),
        (0.54, FLAT, {}, "dropout="),
        (0.78, RISING, {}, "epochs="),
        (0.54, RISING, {"model": {}}, "epochs="),
        (0.82, FLAT, {}, None),
        (0.54, FLAT, {"model": {}}, None),
        (0.99, RISING, {}, None),
        (0.82, FLAT[:6], {"minutes": 3.0}, None),
        (0.7, [0.8], {}, "dropout="),
        (0.7, [0.8, 1.0], {"epochs": 2}, None),
    ],
)
def test_advice_names_the_option_that_helps(train, dev, options, named):
    advice = ask(train, dev, **options)
    assert (advice is None) if named is None else advice.split(named)[0] and named in advice


def test_falling_score_gets_advice_only_about_minutes():
    falling = [9.0, 7.0, 5.0]
    assert "minutes=" in ask(8.0, falling, lower_is_better=True, minutes=1.0)
    assert ask(8.0, falling, lower_is_better=True, epochs=3) is None
    assert ask(8.0, falling[::-1], lower_is_better=True, minutes=1.0) is None


def test_no_advice_without_an_epoch():
    assert ask(0.5, []) is None
