"""Files of an earlier version load, and give the outputs that they gave then."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention  # noqa: F401 - registers the layers

HERE = pathlib.Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every_layer", "translator", "writer"])
def test_models_of_an_earlier_version_give_the_same_outputs(name):
    model = keras.saving.load_model(HERE / f"{name}.keras")
    with np.load(HERE / f"{name}.npz") as recorded:
        inputs = {x.name: recorded[x.name] for x in model.inputs}
        outputs = model(inputs if len(inputs) > 1 else next(iter(inputs.values())))
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(outputs), recorded["answer"], rtol=1e-5, atol=1e-6
        )
