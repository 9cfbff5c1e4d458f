"""Unique names of inputs and outputs."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keras_attention as ka
from keras_attention.core.paths import unique_names

NAMES = st.sampled_from(["dense", "dense_1", "dense_2", "dense_1_1", "dense-1", "out"])


@given(st.lists(NAMES, max_size=9))
def test_names_become_unique_and_valid_ones_stay(names):
    actual = unique_names(names)
    assert len(set(actual)) == len(actual) == len(names)
    plain = [name.replace("-", "_") for name in names]
    for k, name in enumerate(plain):
        if names[k] == name:  # a valid name stays
            assert (actual[k] == name) == (name not in names[:k])
        elif name not in names and name not in plain[:k]:
            assert actual[k] == name


@pytest.mark.slow
@pytest.mark.tensorflow
def test_inputs_and_outputs_with_equal_names_are_exported(tmp_path):
    inputs = [keras.Input((2,), name="x") for _ in range(1)]
    inner = [keras.layers.Dense(size, name="dense") for size in (1, 2)]
    outputs = [layer(inputs[0]) for layer in inner]
    outputs.append(keras.layers.Dense(3, name="dense_1")(inputs[0]))
    model = keras.Model(inputs[0], [keras.Model(inputs[0], y)(inputs[0]) for y in outputs[:2]]
                        + outputs[2:])  # fmt: skip
    x = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")
    expected = [keras.ops.convert_to_numpy(y) for y in model(x)]
    ka.export.to_saved_model(model, tmp_path / "saved")
    ka.export.to_litert(model, tmp_path / "model.tflite")
    for path in (tmp_path / "saved", tmp_path / "model.tflite"):
        actual = ka.export.load(path)({model.inputs[0].name: x})
        assert len(actual) == 3
        by_width = {value.shape[-1]: value for value in actual.values()}
        for y in expected:
            np.testing.assert_allclose(by_width[y.shape[-1]], y, atol=1e-5)
