"""Windows of a CTC model join without a gap, and its peaks are words with times."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.tasks import speech_recognizer
from keras_attention.tasks.overlapping_windows import collapse, cut_windows, find_words

random = np.random.default_rng(0)


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 16, 17, 40, 101])
@pytest.mark.parametrize("overlap", [0, 3, 4])
def test_kept_parts_join_and_lie_inside_their_windows(count, overlap):
    windows = cut_windows(count, 10, overlap)
    vectors = [k for one in windows for k in range(one.first, one.last)]
    assert vectors == list(range(count))
    for k, one in enumerate(windows):
        assert one.end - one.start <= 10 and one.end <= count
        assert k == 0 or one.first - one.start == overlap // 2
        assert k == len(windows) - 1 or one.end - one.last == overlap - overlap // 2


def write_logits(labels, size):
    return np.eye(size)[labels] * 9.0


def test_words_begin_and_end_with_their_labels():
    """Tokens "a", "b" and space, in vectors of half a second."""
    logits = write_logits([0, 1, 1, 0, 1, 2, 0, 3, 3, 0, 2, 2], 4)
    first, second = find_words(logits, ["a", "b", " "], " ", 0.5)
    assert first[:3] == ("aab", 0.5, 3.0) and second[:3] == ("b", 5.0, 6.0)
    assert 0.99 < first.probability < 1
    assert collapse(logits) == [0, 1, 0, 1, 2, 0, 3, 0, 2]


def test_each_token_of_a_word_vocabulary_is_a_word():
    words = find_words(write_logits([1, 0, 1, 2], 3), ["go", "stop"], None, 1.0)
    assert [word[:3] for word in words] == [("go", 0, 1), ("go", 2, 3), ("stop", 3, 4)]
    assert find_words(write_logits([0, 0], 3), ["go", "stop"], None, 1.0) == []


@pytest.fixture
def local(monkeypatch):
    """Make a recognizer whose vectors depend on few neighbors, with windows of two seconds."""
    monkeypatch.setattr(speech_recognizer, "SECONDS", 2.0)
    monkeypatch.setattr(speech_recognizer, "OVERLAP", 1.0)
    encoder = ka.models.TransformerEncoder.of_size(
        1, 2, 16, 32, mask=ka.masks.Window(3), position="rotary"
    )
    sound = ka.models.SpeechEmbedding(num_mel_bins=12, subsampling=2, spec_augment=None)
    model = ka.models.speech_recognizer(4, hidden_dim=16, encoder=encoder, embedding=sound)
    preprocessor = ka.data.SpeechPreprocessor(("a", "b", " "), num_features=12)
    return ka.tasks.SpeechRecognizer(model, preprocessor)


@pytest.mark.slow
def test_windows_of_a_local_model_equal_the_whole_recording(local):
    features = random.normal(size=(731, 12)).astype("float32")
    whole = np.asarray(local.model({"features": features[None], "lengths": np.array([731])}))[0]
    np.testing.assert_allclose(local._compute_logits(features), whole, atol=1e-4)
    text = local.preprocessor.decode(collapse(whole))
    short = features[:50]
    assert local.predict([features, short])[0] == text
    (transcript,) = local.transcribe([features])
    assert transcript.text.split() == text.split()
    assert 0 <= transcript.words[0].start < transcript.words[-1].end <= 7.32
    (subtitles,) = local.predict([features], srt=True)
    assert subtitles == transcript.format_srt()
    with pytest.raises(ValueError, match="srt=True and words= were both given"):
        local.predict([short], words="ab", srt=True)
