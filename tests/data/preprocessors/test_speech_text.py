"""Sounds and their target texts: ids, batches, translations, numbers."""

import dataclasses

import numpy as np
import pytest
import soundfile

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import make_number_namer

random = np.random.default_rng(0)


def make(target, **sounds):
    return ka.data.SpeechTextPreprocessor(ka.data.Characters.build(target), **sounds)


def record(length, text, translation=None):
    return ka.data.Recording(random.normal(size=length), text, None, translation)


def test_batches_have_translations_and_transcripts():
    recordings = [record(30, "one", "eins"), record(10, "two"), record(20, "a", "zwei")]
    preprocessor = make(["one two eins zwei a"], sampling_rate=100)
    seen = {}
    for inputs, labels in ka.data.batches(
        recordings, dataclasses.replace(preprocessor, ctc=True), 2
    ):
        assert inputs["waveform"].shape[1] == inputs["lengths"].numpy().max()
        for length, ids, following, heard in zip(
            inputs["lengths"].numpy(),
            inputs["target_ids"].numpy(),
            labels["logits"].numpy(),
            labels["ctc_logits"].numpy(),
            strict=True,
        ):
            assert ids[0] == preprocessor.start_token_id
            written = following[following >= 0]
            np.testing.assert_array_equal(ids[1 : len(written)], written[:-1])
            assert written[-1] == preprocessor.end_token_id
            seen[int(length)] = preprocessor.texts([written, heard[heard > 0]])
    assert seen == {30: ["eins", "one"], 10: ["two", "two"], 20: ["zwei", "a"]}
    inputs, labels = next(iter(ka.data.batches(recordings, preprocessor, 3)))
    assert labels.shape == inputs["target_ids"].shape


def test_tokenizer_is_written_and_read(tmp_path):
    preprocessor = make(["eins"], num_features=5)
    preprocessor.save(tmp_path)
    assert ka.data.SpeechTextPreprocessor.load(tmp_path, num_features=5) == preprocessor
    with pytest.raises(ValueError, match="SpeechTextPreprocessor: give either sampling_rate="):
        make(["eins"])


def test_a_table_has_translations_in_its_fourth_column(tmp_path):
    soundfile.write(tmp_path / "a.wav", random.normal(size=900, scale=0.1), 8000)
    table = tmp_path / "train.tsv"
    table.write_text("a.wav\tone\tanna\teins \na.wav\ttwo\t\tzwei\na.wav\tthree\n", "utf-8")
    rows = [recording[1:] for recording in ka.data.from_recordings(test=table).test]
    assert rows == [("one", "anna", "eins"), ("two", None, "zwei"), ("three", None, None)]


def test_digits_become_numbers_in_words():
    name = make_number_namer("de")
    assert name("seven two") == "zweiundsiebzig" and name("zero zero five") == "fünf"
    assert make_number_namer("fr")("eight zero") == "quatre-vingts"
    with pytest.raises(ValueError, match="language='xx': expected a language of num2words"):
        make_number_namer("xx")
