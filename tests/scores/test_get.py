"""Names, configs and errors of `scores.get`."""

import keras
import numpy as np
import pytest

from keras_attention import scores
from tests.scores import definition
from tests.tables import assert_lists

EXAMPLES = [
    scores.Dot(),
    scores.ScaledDot(),
    scores.Cosine(scale=3.0, learned=False, max_scale=50.0, epsilon=0.01),
    scores.Bilinear(kernel_initializer="ones"),
    scores.Concat(units=5, activation="relu", kernel_initializer="ones"),
    scores.Additive(units=5, kernel_initializer="ones"),
    scores.SquaredDistance(0.25),
]


def test_there_is_an_example_of_every_score():
    assert_lists("EXAMPLES of tests/scores/test_get.py", map(type, EXAMPLES), scores.NAMES.values())


@pytest.mark.parametrize("score", EXAMPLES, ids=lambda score: type(score).__name__)
def test_get_by_object_and_config(score):
    assert scores.get(score) is score
    config = score.get_config()
    for written in (
        keras.saving.serialize_keras_object(score),
        {"class_name": type(score).__name__, "config": config},
    ):
        again = scores.get(written)
        assert type(again) is type(score) and again.get_config() == config


@pytest.mark.parametrize("score", EXAMPLES, ids=lambda score: type(score).__name__)
def test_a_model_is_loaded_with_its_weights(score, tmp_path):
    query, key = definition.tensors()
    definition.with_weights(score, query, key)
    inputs = [keras.Input((None, *x.shape[2:])) for x in (query, key)]
    model = keras.Model(inputs, score(*inputs))
    assert model.output_shape == (None, 3, None, None)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again([query, key]), score(query, key), atol=1e-6)


@pytest.mark.parametrize("name, cls", scores.NAMES.items())
def test_get_by_name(name, cls):
    assert type(scores.get(name)) is cls
    assert type(scores.get(cls.__name__)) is cls


def test_get_passes_the_policy_to_a_score_by_name():
    assert scores.get("additive", dtype="mixed_bfloat16").compute_dtype == "bfloat16"


def test_get_none():
    assert scores.get(None) is None


def test_unknown_names_and_keys_are_errors():
    with pytest.raises(ValueError, match="'scaled_cot'.*dot, scaled_dot, cosine"):
        scores.get("scaled_cot")
    with pytest.raises(ValueError, match="class_name='Cot'.*dot, scaled_dot"):
        scores.get({"class_name": "Cot", "config": {}})
    with pytest.raises(ValueError, match="SquaredDistance has no argument sale.*scale"):
        scores.get({"class_name": "SquaredDistance", "config": {"sale": 1.0}})
    with pytest.raises(ValueError, match="Cosine has no argument sale.*scale, learned"):
        scores.get({"class_name": "Cosine", "config": {"sale": 1.0}})
    with pytest.raises(ValueError, match="Concat has no argument unit.*units, activation"):
        scores.Concat.from_config({"unit": 3})
    with pytest.raises(ValueError, match="score=3"):
        scores.get(3)
