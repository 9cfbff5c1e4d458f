import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import flatbuffer, precision
from tests.export.conftest import make_labeler


@pytest.fixture
def mixed():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield make_labeler()
    keras.config.set_dtype_policy(policy)


def test_reduced_models_are_exported_in_float32(mixed, tmp_path):
    report = export.to_litert(mixed, tmp_path / "m.tflite")
    assert {tensor.dtype for tensor in flatbuffer.read(tmp_path / "m.tflite").tensors} <= {
        "float32", "int32", "bool"
    }  # fmt: skip
    assert report.signatures[0].outputs[0].dtype == "float32"
    assert report.max_abs_error < 1e-4
    assert "exported in float32; the model computes in mixed_bfloat16" in report.warnings[0]
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    exact = export.load(tmp_path / "m.tflite")({"token_ids": [[3, 4, 0]]})["logits"]
    near = np.asarray(keras.ops.cast(mixed(np.array([[3, 4, 0]])), "float32"))
    assert 0 < np.abs(exact - near).max() < 0.05


def test_models_in_float32_are_taken_as_they_are(labeler):
    assert precision.in_float32(labeler) is labeler


def test_a_model_that_cannot_be_rebuilt_says_what_to_do(mixed, monkeypatch):
    monkeypatch.setattr(type(mixed), "from_config", lambda config: 1 / 0)
    with pytest.raises(export.ExportError, match="computes in mixed_bfloat16 and could not be"):
        precision.in_float32(mixed)
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
