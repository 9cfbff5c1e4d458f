"""Files with a signature for each of several models."""

import keras
import numpy as np
import pytest

import keras_attention as ka

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def towers():
    """Return a model of ids of any length, and a model of features of a fixed size."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = keras.layers.Embedding(20, 8)(ids)
    x = keras.layers.GlobalAveragePooling1D()(x)
    texts = keras.Model(ids, keras.layers.Dense(3, name="text_vector")(x))
    features = keras.Input((5,), name="features")
    vectors = keras.layers.Dense(3, name="feature_vector")(features)
    return {"embed_texts": texts, "embed_features": keras.Model(features, vectors)}


BATCH = {"token_ids": np.array([[3, 5, 7], [2, 4, 6]]), "features": np.ones((2, 5), "float32")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.tflite", "saved_model"])
def test_each_signature_returns_the_outputs_of_its_model(towers, name, tmp_path):
    export = ka.export.to_litert if name.endswith("tflite") else ka.export.to_saved_model
    report = export(towers, tmp_path / name, examples=BATCH, sequence_length=4)
    assert [signature.name for signature in report.signatures] == [*towers]
    assert report.signatures[0].inputs[0].shape == (None, 4)
    assert report.signatures[1].inputs[0].shape == (None, 5)
    assert report.max_abs_error < 1e-6
    run = ka.export.load(tmp_path / name, "embed_features")
    features = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    (outputs,) = run({"features": features}).values()
    np.testing.assert_allclose(outputs, towers["embed_features"](features), atol=1e-6)
    run = ka.export.load(tmp_path / name, "embed_texts")
    ids = np.array([[1, 2, 3, 4]], "int32")
    (outputs,) = run({"token_ids": ids}).values()
    np.testing.assert_allclose(outputs, towers["embed_texts"](ids), atol=1e-6)
    with pytest.raises(ValueError, match="has no signature 'serving_default'. It has: embed"):
        ka.export.load(tmp_path / name)


def test_wrong_arguments_are_refused(towers, tmp_path):
    cases = [
        ({"quantization": "int8", "calibration": [BATCH]}, "is for a file with one signature"),
        ({"generate": "greedy"}, "generate= is for one model, but the file has the signatures"),
        (
            {"compatible_with": "web", "batch_size": 1},
            r"token_ids .* is free. Pass sequence_length",
        ),
        (
            {"examples": {"features": BATCH["features"]}},
            "a batch with features, but embed_texts takes token_ids. Pass token_ids, too",
        ),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            ka.export.to_litert(towers, tmp_path / "x.tflite", **options)
    fixed = {"a": towers["embed_features"]}
    with pytest.raises(ValueError, match="sequence_length=4, but no input has a free axis"):
        ka.export.to_litert(fixed, tmp_path / "x.tflite", sequence_length=4)
    assert not list(tmp_path.iterdir())
