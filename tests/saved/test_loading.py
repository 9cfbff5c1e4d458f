"""What an earlier version saved loads, and answers what it answered then."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention  # noqa: F401 - registers the layers

HERE = pathlib.Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every_layer", "translator", "writer"])
def test_a_model_of_an_earlier_version_answers_as_it_did(name):
    model = keras.saving.load_model(HERE / f"{name}.keras")
    with np.load(HERE / f"{name}.npz") as recorded:
        given = {x.name: recorded[x.name] for x in model.inputs}
        found = model(given if len(given) > 1 else next(iter(given.values())))
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(found), recorded["answer"], rtol=1e-5, atol=1e-6
        )
