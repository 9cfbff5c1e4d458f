"""`SpeechRecognizer`: training on tones as letters, and files of every format."""

import json

import numpy as np
import pytest
import soundfile

import keras_attention as ka

TONES = {"a": 300, "b": 1500, "c": 3000}
SIZE = dict(
    num_layers=1, num_heads=2, hidden_dim=32, kernel_size=3, dropout=0.0,
    embedding={"spec_augment": None, "num_mel_bins": 20},
)  # fmt: skip


def speak(text, generator):
    """Make a tone for each letter, with silence around them."""
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
    data = ka.data.Recording.collect(draw(96, 0), draw(16, 1), draw(16, 2), sampling_rate=8000)
    task = ka.tasks.SpeechRecognizer.from_data(data, **SIZE)
    task.fit(data, epochs=10, batch_size=8, learning_rate=0.01, verbose=False)
    return task, data


@pytest.mark.slow
def test_search_writes_only_the_given_words(trained, tmp_path):
    """Check that the search returns the spoken word, or the nearest of the given words."""
    task, data = trained
    texts, sounds = zip(*((one.text, one.sound) for one in data.test), strict=True)
    words = sorted({*texts})
    results = task.predict(sounds, words=words)
    assert len(words) > 5 and sum(map(str.__eq__, results, texts)) >= len(texts) - 1
    assert set(task.predict(sounds, words="ba ca")) <= {"ba", "ca", ""}
    task.save_to_preset(tmp_path / "preset")
    task.export(tmp_path / "preset" / "model.tflite")
    in_file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    assert in_file.predict(sounds, words=" ".join(words)) == results
    longest = 2 * max(map(len, sounds))
    task.export(tmp_path / "preset" / "model.tflite", batch_size=1, sequence_length=longest)
    in_file = ka.tasks.from_preset(tmp_path / "preset", "litert")  # pads, and removes the padding
    assert in_file.predict(sounds, words=" ".join(words)) == results


@pytest.mark.parametrize(
    "words, message",
    [
        ([], r"words=\[\]: expected one or several"),
        (["a b"], "'a b'.*without spaces"),
        (["a\tb"], "without spaces"),
        (["\n"], "without spaces"),
        ("a d", "words: .*'d' has 'd': expected"),
    ],
)
def test_predict_refuses_words_that_it_cannot_write(words, message):
    data = ka.data.Recording.collect(draw(8, 0), sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, **SIZE)
    with pytest.raises(ValueError, match=message):
        task.predict([data.train[0].sound], words=words)


def test_padding_yields_no_words():
    """Check with a model that predicts "a" everywhere that padding is ignored."""
    data = ka.data.Recording.collect(draw(8, 0), sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, **SIZE)
    task.model.get_layer("logits").bias.assign([0.0, 50.0, 0.0, 0.0])
    sound = np.ones(1600, "float32")
    assert task.predict([sound, sound[:80]], words=["a"]) == ["a", ""]


@pytest.mark.slow
def test_every_file_transcribes_like_the_model(trained, tmp_path):
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
    del in_file.runner
    in_file.preprocessor = ka.data.SpeechPreprocessor(("a", "b"), sampling_rate=8000)
    with pytest.raises(ValueError, match="has 2 characters, and model.int8.tflite beside it"):
        in_file.predict([data.test[0].sound])


@pytest.mark.slow
def test_attention_is_drawn(trained, tmp_path):
    task, data = trained
    maps = task.attention(data.test[0].sound, tmp_path / "attention.png")
    weights = list(maps.weights.values())[-1]
    assert weights.shape[2] == weights.shape[3] == len(maps.queries)
    assert (tmp_path / "attention.png").stat().st_size > 1000


def test_features_may_replace_samples():
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab")] * 8
    task = ka.tasks.SpeechRecognizer.from_data(recordings, **SIZE | {"hidden_dim": 8})
    assert task.settings == {"characters": ["a", "b"], "inputs": "features", "num_features": 5}
    (text,) = task.predict([np.ones((30, 5))])
    assert task.predict([np.ones((0, 5))]) == [""]
    with pytest.raises(ValueError, match="has NaN or infinity: expected finite"):
        task.predict([np.full((30, 5), np.nan)])
    assert set(text) <= {"a", "b"}


def test_filter_augmentation_applies_only_to_spectrograms():
    """Check that the recipe's filter augmentation is off for features unless requested."""
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab")] * 8
    chosen = {"filter_augment": dict(gain=13.0, band_gain=6.5)}  # as in the recipe
    for settings, expected in (({}, False), (chosen, True)):
        embedding = SIZE["embedding"] | settings
        task = ka.tasks.SpeechRecognizer.from_data(recordings, **SIZE | {"embedding": embedding})
        kinds = {type(layer) for layer in task.model.layers}
        assert (ka.blocks.FilterAugment in kinds) == expected


@pytest.mark.slow
def test_model_of_words_writes_whole_words(tmp_path):
    """Check a recognizer of words: saved, with new words, and as LiteRT."""
    texts = [one.text for one in draw(8, 0)]
    train = [one._replace(text=" ".join(one.text)) for one in draw(8, 0)]
    data = ka.data.Recording.collect(train, sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, tokens="words", **SIZE)
    preprocessor = task.preprocessor
    assert preprocessor.words == ("a", "b", "c") and preprocessor.characters == ()
    assert task.settings["words"] == ["a", "b", "c"] and "characters" not in task.settings
    speech = " ".join(texts[0])
    assert preprocessor.decode([0, *preprocessor.encode(f" {speech} "), 0]) == speech
    task.model.get_layer("logits").bias.assign([0.0, 0.0, 50.0, 0.0])
    sounds = [one.sound for one in train[:2]]
    assert task.predict(sounds) == task.predict(sounds, words=["b", "c"]) == ["b", "b"]
    task.save_to_preset(tmp_path / "preset")
    task.export(tmp_path / "preset" / "model.tflite")
    for kind in ("keras", "litert"):
        opened = ka.tasks.from_preset(tmp_path / "preset", kind)
        assert opened.preprocessor == preprocessor and opened.predict(sounds) == ["b", "b"]
    with pytest.raises(ValueError, match="'a d' has 'd': expected 'a b c'"):
        preprocessor.encode("a d")
    task.adapt(ka.data.Recording.collect([train[0]._replace(text="away b")] * 4))
    assert task.preprocessor.words == ("away", "b") and task.predict(sounds) == ["b", "b"]


@pytest.mark.slow
def test_search_without_spaces_returns_one_word():
    texts = ["ab", "cab"] * 4
    train = [ka.data.Recording(np.ones(4000, "float32"), text) for text in texts]
    data = ka.data.Recording.collect(train, sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, **SIZE)
    kernel = task.model.get_layer("logits").kernel
    kernel.assign(np.zeros(kernel.shape))  # uniform logits, where most paths have several words
    assert task.predict([train[0].sound], words="ab cab") in (["ab"], ["cab"])
    spaced = [one._replace(text=f"{one.text} ab") for one in train]
    data = ka.data.Recording.collect(spaced, sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, tokens="words", **SIZE)
    kernel = task.model.get_layer("logits").kernel
    kernel.assign(np.zeros(kernel.shape))
    (results,) = task.predict([train[0].sound], words="ab cab")
    assert len(results.split()) > 1 and {*results.split()} <= {"ab", "cab"}


@pytest.mark.slow
def test_vocabulary_includes_words_of_the_development_part():
    train = [ka.data.Recording(np.ones(4000, "float32"), text) for text in ("go on", "stop")]
    dev = [train[0]._replace(text="go left")]
    data = ka.data.Recording.collect(train * 4, dev, sampling_rate=8000)
    task = ka.tasks.SpeechRecognizer.from_data(data, tokens="words", **SIZE | {"hidden_dim": 8})
    assert task.preprocessor.words == ("go", "left", "on", "stop")
    task.fit(data, epochs=1, batch_size=4, verbose=False)
    other_data = ka.data.Recording.collect(train * 4, [dev[0]._replace(text="up")])
    task.adapt(other_data)
    assert task.preprocessor.words == ("go", "on", "stop", "up")


def test_manifest_must_have_either_characters_or_words(tmp_path):
    data = ka.data.Recording.collect(draw(8, 0), sampling_rate=8000, dev_fraction=0)
    ka.tasks.SpeechRecognizer.from_data(data, **SIZE).save_to_preset(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"words": ["a", "b", "c"]}))
    with pytest.raises(ValueError, match="manifest.json: words .*as there are characters"):
        ka.tasks.from_preset(tmp_path)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("characters", ["a", "b"], "has 2 characters, and model.keras beside it was made with 3"),
        ("num_features", 7, "has 7 features in a frame, and model.keras beside it .* with 5"),
        ("inputs", "waveform", "model.keras takes 'waveform', and it takes features"),
    ],
)
def test_a_manifest_of_another_model_is_refused(tmp_path, entry, value, message):
    recordings = [ka.data.Recording(np.ones((30, 5), "float32"), "abc")] * 8
    task = ka.tasks.SpeechRecognizer.from_data(recordings, **SIZE | {"hidden_dim": 8})
    task.save_to_preset(tmp_path)
    path = tmp_path / "manifest.json"
    more = {"sampling_rate": 8000} if value == "waveform" else {}
    path.write_text(json.dumps(json.loads(path.read_text()) | {entry: value, **more}))
    opened = ka.tasks.from_preset(tmp_path)
    with pytest.raises(ValueError, match=message):
        opened.predict([np.ones((30, *opened.preprocessor.sound_shape))])


def test_too_long_transcripts_of_words_are_counted():
    """Check that two equal words need one vector between them."""
    sound = np.zeros(900, "float32")  # three vectors
    train = [ka.data.Recording(sound, text) for text in ("abc abc", "a b a a")]
    data = ka.data.Recording.collect(train, sampling_rate=8000, dev_fraction=0)
    task = ka.tasks.SpeechRecognizer.from_data(data, tokens="words", **SIZE)
    (speech,) = task.describe_data(data)
    assert speech.startswith("1 transcripts have more words than")


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "characters=.*: expected some"),
        ({"words": ("a b",)}, "words has 'a b': expected words without spaces"),
        ({"words": ("",)}, "words has '': expected words"),
        ({"words": ("a", "a")}, "words=.*all different"),
        ({"words": "stop"}, "words='stop': expected a list of str"),
        ({"words": (1,)}, r"words=\(1,\): expected a list of str"),
        ({"words": ("a",), "characters": ("a",)}, "characters= or words=, not both"),
    ],
)
def test_preprocessor_has_either_characters_or_words(options, message):
    with pytest.raises(ValueError, match=message):
        ka.data.SpeechPreprocessor(sampling_rate=8000, **options)
    with pytest.raises(ValueError, match="tokens='subwords': expected 'characters' or 'words'"):
        ka.data.SpeechPreprocessor.build(["a"], 8000, tokens="subwords")
    with pytest.raises(ValueError, match="The transcripts have no words"):
        ka.data.SpeechPreprocessor.build([" "], 8000, tokens="words")


def test_samples_without_a_sampling_rate_are_refused():
    with pytest.raises(ValueError, match="without a sampling rate.*sampling_rate="):
        ka.tasks.SpeechRecognizer.from_data(draw(4, 0), **SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keras", "litert-int8"])
def test_recording_shorter_than_a_frame_has_an_empty_transcript(kind):
    task = ka.tasks.from_preset("digits-speech", kind)
    for samples in (0, 1, 80):
        sounds = [np.ones(samples, "float32")]
        assert task.predict(sounds) == task.predict(sounds, words="one two") == [""]


def test_integer_samples_are_scaled_like_files():
    preprocessor = ka.data.SpeechPreprocessor.build(["ab"], sampling_rate=8000)
    sound = speak("ab", np.random.default_rng(0))
    rounded = np.round(32768 * sound).astype("int16")
    floats, integers = (preprocessor([one])["waveform"] for one in (sound, rounded))
    np.testing.assert_allclose(integers, floats, atol=1 / 32768)


@pytest.mark.parametrize(
    "sound, message",
    [
        ((8000, np.zeros(400)), r"tuple of int, ndarray: expected a path, or .*Do not pass a samp"),
        (np.zeros(400, "uint8"), r"dtype uint8: expected .*int16 or int32.* by their largest"),
        (np.zeros((400, 2)), r"shape \(400, 2\) .*samples \(T,\).* Pass one channel"),
        (0.5, r"shape \(\) and the dtype float64"),
    ],
)
def test_predict_refuses_inputs_that_are_not_sounds(sound, message):
    task = ka.tasks.from_preset("digits-speech")
    with pytest.raises(ValueError, match=message):
        task.predict([sound])


def test_recordings_with_another_sampling_rate_are_refused():
    task = ka.tasks.from_preset("digits-speech")
    sounds = [ka.data.Recording(np.zeros(16000, "float32"), "one")] * 4
    data = ka.data.Recording.collect(sounds, test=sounds, sampling_rate=16000)
    for work in (task.evaluate, task.fit):
        with pytest.raises(ValueError, match="have 16000 samples a second, and the model takes 80"):
            work(data)


def test_new_characters_get_a_new_last_layer_with_the_old_weights():
    task = ka.tasks.from_preset("digits-speech")
    generator = np.random.default_rng(0)
    speech = [ka.data.Recording(speak("ab", generator), text) for text in ("go left", "one")] * 4
    before = np.asarray(task.model(task.preprocessor([speech[0].sound])))
    old = task.preprocessor.characters
    task.adapt(ka.data.Recording.collect(speech, speech[:2], sampling_rate=8000))
    new = task.preprocessor.characters
    assert new == tuple(" efglnot")
    after = np.asarray(task.model(task.preprocessor([speech[0].sound])))
    for character in (None, *" efgnot"):
        positions = [0 if character is None else 1 + names.index(character) for names in (old, new)]
        np.testing.assert_allclose(after[..., positions[1]], before[..., positions[0]], atol=1e-5)
    assert set(task.predict([speech[0].sound])[0]) <= set(new)


def test_too_long_transcripts_are_counted():
    """Check a second, which has 25 vectors. Equal characters need a blank between them."""
    task = ka.tasks.from_preset("digits-speech")
    texts = ["one", "e" * 13, "e" * 14, "on" * 13]
    speech = [ka.data.Recording(np.zeros(8000, "float32"), text) for text in texts]
    data = ka.data.Recording.collect(speech, dev_fraction=0, sampling_rate=8000)
    (sentence,) = task.describe_data(data)
    assert sentence.startswith("2 transcripts have more characters than their recordings have vec")
    with pytest.raises(ValueError, match="Every transcript has more characters than its recording"):
        task.fit(
            ka.data.Recording.collect(speech[2:], speech[:1], sampling_rate=8000), verbose=False
        )
