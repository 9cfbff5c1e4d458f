"""`SpeechToText`: transcripts and translations of tones, with every format."""

import numpy as np
import pytest
import soundfile

import keras_attention as ka
from tests.tasks.test_speech_recognizer import SIZE, draw

NAMES = {"a": "uno ", "b": "due ", "c": "tre "}


def translate(recordings):
    """Translate to reversed Italian, which needs a decoder."""
    return [
        one._replace(translation="".join(NAMES[letter] for letter in reversed(one.text)).strip())
        for one in recordings
    ]


@pytest.fixture(scope="module")
def trained():
    parts = [translate(draw(count, seed)) for seed, count in enumerate((256, 16, 16))]
    data = ka.data.Recording.collect(*parts, sampling_rate=8000)
    task = ka.tasks.SpeechToText.from_data(data, **SIZE, max_length=20)
    task.fit(data, epochs=14, batch_size=8, learning_rate=5e-3, verbose=False)
    return task, data


@pytest.mark.sweep
def test_every_file_translates_like_the_model(trained, tmp_path):
    task, data = trained
    scores = task.evaluate(data)
    assert scores["chrf"] > 80 and scores["exact_match"] > 0.6
    sounds = [recording.sound for recording in data.test]
    expected = task.predict(sounds)
    assert len(task.predict(sounds[:2], beam=2)) == 2
    path = tmp_path / "said.wav"
    soundfile.write(path, sounds[0], 8000, subtype="FLOAT")
    assert task.predict([str(path)]) == expected[:1]
    task.save_to_preset(tmp_path / "preset")
    opened = ka.tasks.from_preset(tmp_path / "preset")
    assert isinstance(opened, ka.tasks.SpeechToText) and opened.score == "translation"
    assert opened.predict(sounds) == expected
    report = opened.export(tmp_path / "preset" / "model.tflite")
    assert "RFFT2D" in report.ops and "built-in" in str(report)
    assert ka.tasks.from_preset(tmp_path / "preset", "litert").predict(sounds) == expected


@pytest.mark.sweep
def test_a_file_of_int8_weights_translates_nearly_the_same(trained, tmp_path):
    task, data = trained
    task.save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "model.int8.tflite"
    report = task.export(path, quantization="int8_weights")
    assert "RFFT2D" in report.ops and "built-in" in str(report)
    in_file = ka.tasks.from_preset(tmp_path / "preset", "litert-int8")
    assert abs(in_file.evaluate(data)["chrf"] - task.evaluate(data)["chrf"]) < 2


@pytest.mark.sweep
def test_attention_is_drawn_over_time(trained, tmp_path):
    task, data = trained
    maps = task.attention(data.test[0].sound, tmp_path / "attention.png")
    _, weights = list(maps.weights.items())[-1]
    assert weights.shape[-1] == len(maps.keys) and maps.queries[-1] == "<end>"
    assert float(maps.keys[1]) == 0.04
    assert (tmp_path / "attention.png").stat().st_size > 1000


@pytest.mark.slow
def test_data_without_translations_are_transcribed():
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab cd")] * 8
    task = ka.tasks.SpeechToText.from_data(
        recordings, **SIZE | {"hidden_dim": 8}, max_length=6, ctc_weight=0.0
    )
    assert task.score == "error_rates" and not isinstance(task.model.output, dict)
    writing = {"beam": 1, "length_penalty": 1.0, "max_new_tokens": 6, "start_token_id": 2}
    settings = {"inputs": "features", "num_features": 5, "score": "error_rates"}
    assert task.settings == settings | {"writing": writing | {"end_token_id": 3, "padding_id": 0}}
    (text,) = task.predict([np.ones((30, 5))])
    assert set(text) <= set("abcd \ufffd")
    assert set(task.evaluate(recordings[:2])) == {"word_error_rate", "character_error_rate"}


def test_data_that_cannot_be_learned_are_refused():
    with pytest.raises(ValueError, match="without a sampling rate.*sampling_rate="):
        ka.tasks.SpeechToText.from_data(draw(4, 0), **SIZE)
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab cd")] * 8
    task = ka.tasks.SpeechToText.from_data(recordings, **SIZE | {"hidden_dim": 8}, max_length=4)
    with pytest.raises(ValueError, match="The train part has no .*than 4 tokens.*max_length=\\.$"):
        task.fit(recordings, epochs=1, verbose=False)
    short = recordings[0]._replace(text="ab")
    data = ka.data.Recording.collect([*recordings, short], dev=recordings)
    assert task.describe_data(data) == (
        "recordings of more than 4 tokens to write are left out: 8 of train",
    )
    (inputs, _), *more = task.make_training_batches(data.train, task.recipe)
    assert inputs["lengths"].shape == (1,) and not more
    with pytest.raises(ValueError, match="score='bleu'.*expected one of error_rates"):
        ka.tasks.SpeechToText(task.model, task.preprocessor, score="bleu")
