"""Layers of Keras that turn strings into ids: kept in a SavedModel, refused in a LiteRT file."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention.export as export
from keras_attention.export import saved_model

WORDS = ["cat", "dog", "fish"]
LOOKUPS = {
    "text": (
        lambda: keras.layers.TextVectorization(
            output_sequence_length=4, vocabulary=WORDS, name="lookup"
        ),
        keras.Input((), dtype="string", name="text"),
        np.array(["cat dog", "a fish", "dog dog fish cat", ""]),
    ),
    "words": (
        lambda: keras.layers.StringLookup(vocabulary=WORDS, name="lookup"),
        keras.Input((2,), dtype="string", name="words"),
        np.array([["cat", "dog"], ["fish", "zebra"]]),
    ),
    "numbers": (
        lambda: keras.layers.IntegerLookup(vocabulary=[10, 20, 30], name="lookup"),
        keras.Input((2,), dtype="int32", name="numbers"),
        np.array([[10, 20], [30, 7]], "int32"),
    ),
    "hashed words": (
        lambda: keras.layers.Hashing(8, name="lookup"),
        keras.Input((2,), dtype="string", name="words"),
        np.array([["cat", "dog"], ["fish", "zebra"]]),
    ),
    "hashed numbers": (
        lambda: keras.layers.Hashing(8, name="lookup"),
        keras.Input((2,), dtype="int32", name="numbers"),
        np.array([[10, 20], [30, 7]], "int32"),
    ),
}


def make_model(name):
    make, inputs, examples = LOOKUPS[name]
    x = keras.layers.Embedding(9, 4)(make()(inputs))
    x = keras.layers.GlobalAveragePooling1D(data_format="channels_last")(x)
    return keras.Model(inputs, keras.layers.Dense(2, name="logits")(x)), examples


def run_eagerly(model, examples):
    """Run the model on strings as tensors, because a Keras call does not accept NumPy strings."""
    return model(tf.convert_to_tensor(examples))


def make_namer():
    """Return a model from scores to words."""
    inputs = keras.Input((3,), name="scores")
    ids = keras.layers.Lambda(lambda x: keras.ops.argmax(x, axis=-1) + 1, name="best")(inputs)
    layer = keras.layers.StringLookup(vocabulary=WORDS, invert=True, name="lookup")
    return keras.Model(inputs, layer(ids))


@pytest.fixture
def reload_here(monkeypatch):
    def run(folder, calls):
        return [export.load(folder, signature)(batch) for signature, batch in calls]

    monkeypatch.setattr(saved_model, "run_without_keras", run)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKUPS)
def test_saved_models_hold_the_vocabulary(name, tmp_path, reload_here):
    model, examples = make_model(name)
    report = export.to_saved_model(model, tmp_path / "model", examples=examples)
    assert report.max_abs_error < 1e-6
    result = export.load(tmp_path / "model")({model.inputs[0].name: examples})["logits"]
    np.testing.assert_allclose(result, run_eagerly(model, examples), atol=1e-6)


@pytest.mark.slow
def test_saved_models_hold_counted_vocabularies_and_give_words(tmp_path, reload_here):
    layer = keras.layers.TextVectorization(output_mode="tf_idf")
    texts = np.array(["a cat", "a dog and a cat", "fish"])
    layer.adapt(texts)
    inputs = keras.Input((), dtype="string", name="text")
    model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(layer(inputs)))
    assert export.to_saved_model(model, tmp_path / "a", examples=texts).max_abs_error < 1e-6
    scores = np.eye(3, dtype="float32")
    export.to_saved_model(make_namer(), tmp_path / "b", examples=scores)
    assert export.load(tmp_path / "b")({"scores": scores})["lookup"].tolist() == [
        word.encode() for word in WORDS
    ]


@pytest.mark.parametrize("name", LOOKUPS)
def test_litert_refuses_lookups_of_inputs(name, tmp_path):
    model, _ = make_model(name)
    part = r"keras\.Model\(model\.get_layer\('lookup'\)\.output, model\.output\)"
    with pytest.raises(export.ExportError, match=f"'lookup'.*no vocabulary. Split.*{part}"):
        export.to_litert(model, tmp_path / "model.tflite")
    assert not list(tmp_path.iterdir())


def test_litert_refuses_lookups_of_outputs(tmp_path):
    part = r"keras\.Model\(model\.input, model\.get_layer\('lookup'\)\.input\)"
    with pytest.raises(export.ExportError, match=part):
        export.to_litert(make_namer(), tmp_path / "model.tflite")


def test_litert_refuses_inputs_of_strings(tmp_path):
    inputs = keras.Input((2,), dtype="string", name="words")
    model = keras.Model(inputs, keras.layers.Lambda(lambda x: x)(inputs))
    with pytest.raises(export.ExportError, match="'words' takes strings.*starts at ids"):
        export.to_litert(model, tmp_path / "model.tflite")


@pytest.mark.slow
def test_the_part_without_the_lookup_is_exported(tmp_path):
    model, examples = make_model("text")
    lookup = model.get_layer("lookup")
    part = keras.Model(lookup.output, model.output)
    export.to_litert(part, tmp_path / "model.tflite")
    run = export.load(tmp_path / "model.tflite")
    ids = np.asarray(run_eagerly(lookup, examples), "int32")
    np.testing.assert_allclose(
        list(run({part.inputs[0].name: ids}).values())[0],
        run_eagerly(model, examples),
        atol=1e-5,
    )
