"""Saving and loading `JointModel`, compiled or not."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

IDS = np.array([[3, 5, 7, 2], [2, 9, 4, 1]])
SEGMENTS = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])


@pytest.fixture
def joint():
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
    model = ka.models.question_answerer(12, **size)
    joint = ka.training.JointModel(model)
    joint.compile(
        keras.optimizers.Adam(0.01),
        ka.training.SpanCrossentropy(),
        [ka.training.SpanF1(maximum_answer=3)],
        jit_compile=False,
    )
    return joint


def inputs(model):
    inputs = {"token_ids": IDS, "segment_ids": SEGMENTS}
    return {name: inputs[name] for name in model.input}


@pytest.mark.slow
@pytest.mark.tensorflow
def test_training_continues_from_a_checkpoint(joint, tmp_path):
    path, truth = tmp_path / "best.keras", np.array([[2, 3], [1, 1]])
    keep = keras.callbacks.ModelCheckpoint(path)
    joint.fit(inputs(joint), truth, epochs=2, verbose=0, callbacks=[keep])
    loaded = keras.saving.load_model(path)
    assert type(loaded) is ka.training.JointModel
    for name, value in joint(inputs(joint)).items():
        np.testing.assert_allclose(loaded(inputs(joint))[name], value, atol=1e-6)
    expected = joint.evaluate(inputs(joint), truth, verbose=0, return_dict=True)
    assert loaded.evaluate(inputs(joint), truth, verbose=0, return_dict=True) == expected
    for model in (joint, loaded):
        model.fit(inputs(joint), truth, verbose=0)
    for ours, theirs in zip(loaded.weights, joint.weights, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs), atol=1e-6
        )


def test_an_uncompiled_model_is_saved(joint, tmp_path):
    joint.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert not loaded.compiled
    again = keras.models.clone_model(joint)
    assert again.output_names == joint.output_names
