"""Smaller files: how small, how near to the model, and what is refused."""

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import compare, flatbuffer, weights


@pytest.fixture(scope="module")
def classifier():
    """Wide enough that its weights are what counts; trained, so that its answers mean something."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(500, 128)(ids)
    x = keras.layers.Dense(256, "relu")(x)
    model = keras.Model(ids, keras.layers.Dense(4, name="logits")(x))
    x, y = data()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    model.fit(x, y, epochs=8, batch_size=32, verbose=0)
    return model


def data():
    x = np.random.default_rng(0).integers(1, 500, (256, 9))
    return x, x % 4


@pytest.mark.parametrize(
    "quantization, ratio", [("float16", 0.5), ("int8_weights", 0.25), ("int8", 0.25)]
)
def test_files_shrink_and_still_decide_alike(classifier, quantization, ratio, tmp_path):
    x, _ = data()
    report = export.to_litert(
        classifier,
        tmp_path / "m.tflite",
        quantization=quantization,
        calibration=[x[:64]] if quantization == "int8" else None,
        examples=x[:32],
    )
    assert report.size < 1.1 * ratio * report.weights_bytes + 16_000
    assert report.argmax_agreement > 0.95 and not report.warnings
    assert report.max_abs_error < (1e-2 if quantization == "float16" else 2.0)
    assert report.signatures[0].inputs[0].dtype == "int32"
    assert report.signatures[0].outputs[0].dtype == "float32"
    kinds = {tensor.dtype for tensor in flatbuffer.read(tmp_path / "m.tflite").constants}
    assert ("float16" if quantization == "float16" else "int8") in kinds


def test_float_inputs_stay_float_in_int8(tmp_path):
    inputs = keras.Input((8, 8, 1), name="images")
    x = keras.layers.Flatten()(keras.layers.Conv2D(4, 3)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(3, name="logits")(x))
    images = np.random.default_rng(0).random((8, 8, 8, 1))
    report = export.to_litert(
        model,
        tmp_path / "m.tflite",
        quantization="int8",
        calibration=[images],
        batch_size=1,
    )
    assert report.signatures[0].inputs[0] == export.Tensor("images", (1, 8, 8, 1), "float32")
    assert report.signatures[0].outputs[0].dtype == "float32"
    assert report.ops["QUANTIZE"] >= 1


def test_an_int8_file_that_decides_otherwise_on_real_inputs_is_refused(
    classifier, tmp_path, monkeypatch
):
    monkeypatch.setitem(compare.AGREEMENT, "int8", 1.01)
    x, _ = data()
    settings = {"quantization": "int8", "calibration": [x[:8]]}
    with pytest.raises(export.ExportError, match="decides differently from the model"):
        export.to_litert(classifier, tmp_path / "m.tflite", examples=x[:8], **settings)
    report = export.to_litert(classifier, tmp_path / "m.tflite", **settings)
    assert any("pass examples= to see" in warning for warning in report.warnings)


def constant(elements, size, buffer):
    return flatbuffer.Stored("w", (elements,), "float32", size, buffer)


def graph(*constants):
    return flatbuffer.Flatbuffer((), constants, ())


def test_weights_stored_twice_are_refused(classifier):
    once = [
        constant(w.shape.num_elements(), 4 * w.shape.num_elements(), i)
        for i, w in enumerate(w.value for w in classifier.weights)
    ]
    table = constant(999_983, 4 * 999_983, 99)  # computed in advance, as long as no weight
    assert weights.check(graph(*once, table), classifier, None) == []
    twice = [constant(t.elements, t.constant, t.buffer + 50) for t in once]
    with pytest.raises(export.ExportError, match="some are stored more than once"):
        weights.check(graph(*once, *twice), classifier, None)
    shared = [constant(t.elements, t.constant, t.buffer) for t in once]
    assert weights.check(graph(*once, *shared), classifier, None) == []
    (warning,) = weights.check(graph(*once), classifier, "int8")
    assert "quantized in part only" in warning
