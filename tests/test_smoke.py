"""What must run on the oldest versions that are supported, as on the newest: `make test-oldest`."""

import json

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.pretrained.test_parity import FOLDER, read_expected
from tests.pretrained.test_saving import make_sentence_transformer
from tests.stacks import make_writer

# On the newest versions other slow tests say the same.
pytestmark = pytest.mark.sweep

random = np.random.default_rng(0)
IDS = random.integers(1, 50, (6, 8)).astype("int32")


def fit_briefly(model, x, y):
    """Train a model for ten epochs, and check that its loss is finite and fell."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    losses = model.fit(x, y, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0] < 10


def save_and_load(model, path):
    model.save(path)
    return keras.saving.load_model(path)


def test_a_language_model_trains_writes_and_is_exported(tmp_path):
    model = make_writer(50, num_key_value_heads=1)
    fit_briefly(model, IDS[:, :-1], IDS[:, 1:])
    loaded = save_and_load(model, tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(IDS), model(IDS), atol=1e-6)
    written = ka.generation.generate(model, IDS[:2, :3], 4)
    np.testing.assert_array_equal(ka.generation.generate(loaded, IDS[:2, :3], 4), written)
    generate = ka.export.Generation(max_length=12)
    report = ka.export.to_litert(model, tmp_path / "model.tflite", generate=generate)
    generator = ka.export.LiteRTGenerator(report.path)
    np.testing.assert_array_equal(generator.generate(IDS[:2, :3], max_new_tokens=4), written)


@pytest.mark.parametrize("quantization", [None, "int8_weights"])
def test_a_classifier_trains_and_is_exported(quantization, tmp_path):
    model = ka.models.text_classifier(50, 3, num_layers=1, hidden_dim=16, pooling="attention")
    fit_briefly(model, IDS, np.arange(6) % 3)
    loaded = save_and_load(model, tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(IDS), model(IDS), atol=1e-6)
    ka.export.to_litert(model, tmp_path / "model.tflite", quantization=quantization)
    (probabilities,) = ka.export.load(tmp_path / "model.tflite")({"token_ids": IDS}).values()
    np.testing.assert_allclose(probabilities, model(IDS), atol=0.1 if quantization else 1e-5)


def test_a_recurrent_translator_keeps_all_its_weights(tmp_path):
    model = ka.models.seq2seq_recurrent(50, 50, hidden_dim=8, attention="luong")
    fit_briefly(model, {"source_ids": IDS, "target_ids": IDS[:, :-1]}, IDS[:, 1:])
    loaded = save_and_load(model, tmp_path / "model.keras")
    for ours, theirs in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=ours.path)
    written = ka.generation.generate(model, source=IDS, max_new_tokens=4, start_token_id=1)
    again = ka.generation.generate(loaded, source=IDS, max_new_tokens=4, start_token_id=1)
    np.testing.assert_array_equal(again, written)


def test_a_task_is_trained_saved_and_opened(tmp_path):
    texts = [("a good film", "up"), ("a bad film", "down")] * 20
    task = ka.tasks.TextClassifier.from_data(texts, hidden_dim=16, num_heads=2, max_length=8)
    task.fit(texts, epochs=2, verbose=False)
    task.save_to_preset(tmp_path / "preset", weights_dtype="float16")
    opened = ka.tasks.from_preset(tmp_path / "preset")
    (ours,), (theirs,) = task.predict(["a bad film"]), opened.predict(["a bad film"])
    assert ours.label == theirs.label
    assert ours.probability == pytest.approx(theirs.probability, abs=1e-3)


def test_a_checkpoint_of_mini_lm_is_read(tmp_path):
    """Return the mean over tokens, with length 1, as Sentence Transformers does."""
    inputs, hidden = read_expected(FOLDER / "bert")
    model = ka.pretrained.load(make_sentence_transformer(tmp_path / "encoder"))
    padding = json.loads((FOLDER / "bert" / "config.json").read_text())["pad_token_id"]
    tokens = (inputs["token_ids"] != padding)[:, :, None]
    mean = (hidden * tokens).sum(axis=1) / tokens.sum(axis=1)
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_allclose(model(inputs), expected, atol=1e-5)


def draw_cells():
    """Draw three red cells and a white one, (240, 320, 3)."""
    rows, columns = np.mgrid[:240, :320]
    picture = np.full((240, 320, 3), (228, 205, 200), "uint8")
    for row, column, radius in [(60, 70, 22), (190, 90, 22), (60, 270, 22), (120, 200, 45)]:
        inside = (rows - row) ** 2 + (columns - column) ** 2 < radius**2
        picture[inside] = (205, 150, 150) if radius < 30 else (120, 70, 150)
    return picture


def make_tone():
    """Make a second of 440 Hz that grows and fades, at 8 kHz. The model answers `four`."""
    seconds = np.arange(8000) / 8000
    return (0.3 * np.sin(880 * np.pi * seconds) * np.sin(np.pi * seconds)).astype("float32")


def load_zero():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    return (digits.images[0, :, :, None] * 255 / 16).round().astype("uint8")


# For each shipped preset an input, and the answer of the newest versions.
PRESETS = {
    "blood-cells": (draw_cells, "RBC 0.875, RBC 0.865, RBC 0.852, WBC 0.843"),
    "dates": (lambda: "2035. gada 24. augusts", "2035-08-24"),
    "digits-speech": (make_tone, "four"),
    "digits-vit": (load_zero, "0 0.908"),
    "emotions": (lambda: "Thank you so much, that made my day!", "gratitude 0.999"),
    "multi30k-de-en": (lambda: "Ein Hund rennt durch den Schnee.", "A dog runs through the snow."),
    "pos-tagger-en-ewt": (
        lambda: "The cat sat.",
        "DET 0.937, NOUN 0.934, VERB 0.938, PUNCT 0.935",
    ),
    "shakespeare": (lambda: "ROMEO:\nWhat light", " the seem of"),
}


def answer(task, example):
    """Return the answer of a task as text, with probabilities to three digits."""
    if isinstance(task, ka.tasks.CausalLM):
        tokenizer = task.preprocessor.target
        (ids,) = tokenizer.encode([example])
        (written,) = tokenizer.decode(ka.generation.generate(task.model, np.array([ids]), 12))
        return written
    (prediction,) = task.predict([example])
    if isinstance(prediction, str):
        return prediction
    return ", ".join(
        map(print_answer, prediction if isinstance(prediction, list) else [prediction])
    )


def print_answer(prediction):
    """`label 0.123` of the namedtuple that a task answers with."""
    values = prediction._asdict()
    label = next(values[name] for name in ("tag", "label") if name in values)
    probability = next(values[name] for name in ("probability", "score") if name in values)
    return f"{label} {probability:.3f}"


def test_every_shipped_preset_is_listed():
    assert {preset.name for preset in ka.tasks.list_presets()} >= PRESETS.keys()


@pytest.mark.parametrize("name", PRESETS)
def test_a_shipped_preset_answers_as_on_the_newest_versions(name):
    make, expected = PRESETS[name]
    assert answer(ka.tasks.from_preset(name), make()) == expected
