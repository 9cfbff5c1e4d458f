"""`SpeechRecognizer`: learns tones as letters, writes them from files of every format."""

import numpy as np
import pytest
import soundfile

import keras_attention as ka

TONES = {"a": 300, "b": 1500, "c": 3000}
SIZE = dict(
    num_layers=1, num_heads=2, hidden_dim=32, kernel_size=3, dropout=0.0, spec_augment={},
    num_mel_bins=20,
)  # fmt: skip


def speak(text, generator):
    """A tone for each letter, with silence around."""
    pieces = [np.zeros(generator.integers(100, 400))]
    for letter in text:
        time = np.arange(generator.integers(900, 1300)) / 8000
        pieces += [0.3 * np.sin(2 * np.pi * TONES[letter] * time), np.zeros(600)]
    sound = np.concatenate(pieces)
    return (sound + generator.normal(size=len(sound), scale=0.003)).astype("float32")


def draw(count, seed):
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice(list("abc"), generator.integers(1, 4))) for _ in range(count)]
    return [ka.data.Recording(speak(text, generator), text) for text in texts]


@pytest.fixture(scope="module")
def trained():
    data = ka.data.Recordings.from_lists(draw(96, 0), draw(16, 1), draw(16, 2), sampling_rate=8000)
    task = ka.tasks.SpeechRecognizer.from_data(data, **SIZE)
    task.fit(data, epochs=10, batch_size=8, learning_rate=0.01, verbose=False)
    return task, data


@pytest.mark.slow
def test_writes_what_is_said_from_every_file(trained, tmp_path):
    task, data = trained
    scores = task.evaluate(data)
    assert scores["character_error_rate"] < 0.1
    expected = task.predict([recording.sound for recording in data.test])
    path = tmp_path / "said.wav"
    soundfile.write(path, data.test[0].sound, 8000, subtype="FLOAT")
    assert task.predict([str(path)]) == expected[:1]
    task.save_to_preset(tmp_path / "preset")
    opened = ka.tasks.from_preset(tmp_path / "preset")
    assert isinstance(opened, ka.tasks.SpeechRecognizer)
    assert opened.predict([recording.sound for recording in data.test]) == expected
    for name, quantization in (("model.tflite", None), ("model.int8.tflite", "int8_weights")):
        report = opened.export(tmp_path / "preset" / name, quantization=quantization)
        assert "RFFT2D" in report.ops
        kind = "litert" if quantization is None else "litert-int8"
        in_file = ka.tasks.from_preset(tmp_path / "preset", kind)
        rate = in_file.evaluate(data)["character_error_rate"]
        assert abs(rate - scores["character_error_rate"]) < (1e-6 if quantization is None else 0.01)


@pytest.mark.slow
def test_shows_what_it_looked_at(trained, tmp_path):
    task, data = trained
    maps = task.attention(data.test[0].sound, tmp_path / "attention.png")
    weights = list(maps.weights.values())[-1]
    assert weights.shape[2] == weights.shape[3] == len(maps.queries)
    assert (tmp_path / "attention.png").stat().st_size > 1000


def test_features_are_recordings_too():
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab")] * 8
    task = ka.tasks.SpeechRecognizer.from_data(recordings, **SIZE | {"hidden_dim": 8})
    assert task.settings == {"characters": ["a", "b"], "inputs": "features", "num_features": 5}
    (text,) = task.predict([np.ones((30, 5))])
    assert set(text) <= {"a", "b"}


def test_refuses_samples_of_no_known_rate():
    with pytest.raises(ValueError, match="how many a second.*sampling_rate="):
        ka.tasks.SpeechRecognizer.from_data(draw(4, 0), **SIZE)


@pytest.mark.parametrize("kind", ["keras", "litert-int8"])
def test_a_recording_shorter_than_a_frame_says_nothing(kind):
    task = ka.tasks.from_preset("digits-speech", kind)
    for samples in (0, 1, 80):
        assert task.predict([np.ones(samples, "float32")]) == [""]


def test_integers_are_samples_of_files():
    preprocessor = ka.data.SpeechPreprocessor.build(["ab"], sampling_rate=8000)
    sound = speak("ab", np.random.default_rng(0))
    rounded = np.round(32768 * sound).astype("int16")
    floats, integers = (preprocessor([one])["waveform"] for one in (sound, rounded))
    np.testing.assert_allclose(integers, floats, atol=1 / 32768)
