"""Whisper on long recordings: windows, segments, words, silence and languages."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.tasks import speech_windows
from keras_attention.tasks.speech_windows import WindowReader, cut_at, measure_compression
from keras_attention.tasks.word_times import (
    align_words,
    choose_heads,
    cut_pauses,
    find_pauses,
    measure_loudness,
    rate_tokens,
    spell_words,
    split_words,
    time_words,
)
from tests.pretrained.make_checkpoints import FOLDER, HEARD, draw_sounds

pytestmark = pytest.mark.tensorflow
RATE, START = 16000, HEARD["<|0.00|>"]
THE, CAT = HEARD["Ġthe"], HEARD["Ġcat"]


@pytest.fixture(scope="module")
def task():
    """Open a model that reads a second, and has timestamps from 0 to 0.06 seconds."""
    return ka.tasks.SpeechToText.from_preset(FOLDER / "whisper-texts")


@pytest.fixture
def reader(task):
    return WindowReader(task.model, task.preprocessor, task.writing)


def at(seconds):
    return START + round(seconds / 0.02)


def test_pairs_of_timestamps_end_segments(reader):
    ids = [at(0), THE, at(0.5), at(0.5), CAT, at(0.8), at(0.8), THE]
    parts, end = reader.cut(ids, 1.0)
    assert [(list(part), *times) for part, *times in parts] == [
        (ids[:3], 0.0, 0.5),
        (ids[3:6], 0.5, 0.8),
    ]
    assert end == 0.8  # the third segment is read again in the next window


def test_one_timestamp_at_the_end_completes_the_window(reader):
    parts, end = reader.cut([at(0), THE, at(0.4), at(0.4), CAT, at(0.6)], 1.0)
    assert end is None and [times for _, *times in parts] == [[0.0, 0.4], [0.4, 0.6]]


@pytest.mark.parametrize(
    ("ids", "times"),
    [
        ([at(0), THE], [0.0, 0.7]),  # the end is that of the recording
        ([at(0.1), THE, at(0.5)], [0.1, 0.5]),
        ([THE], [0.0, 0.7]),
        ([], [0.0, 0.7]),
    ],
)
def test_text_without_pairs_is_one_segment(reader, ids, times):
    (part,), end = reader.cut(ids, 0.7)
    assert list(part[1:]) == pytest.approx(times) and end is None


def script(reader, windows):
    """Let the reader write the given ids, and record the lengths of its windows and its history."""
    seen, waiting = [], iter(windows)
    encode, reader.encode = reader.encode, lambda window: (seen.append([window]), encode(window))[1]

    def write(encoded, start, history):
        seen[-1].append(list(history))
        ids, score, silence = next(waiting)
        return ids, score, silence, 0.0

    reader.write = write
    return seen


def test_windows_begin_at_the_last_timestamp(reader):
    first = [at(0), THE, at(0.5), at(0.5), CAT, at(0.6), at(0.6), THE]
    windows = [(first, 0.0, 0.0), ([at(0), CAT, at(0.3)], 0.0, 0.0)]
    seen = script(reader, windows)
    sound = np.random.default_rng(0).normal(size=round(1.4 * RATE)).astype("float32")
    transcript = reader.transcribe(sound, words=False)
    assert [len(window) for window, _ in seen] == [RATE, round(0.8 * RATE)]
    np.testing.assert_array_equal(seen[1][0], sound[round(0.6 * RATE) :])
    assert seen[0][1] == [] and seen[1][1] == first
    expected = [("the", 0.0, 0.5), ("cat", 0.5, 0.6), ("cat", 0.6, 0.9)]
    for segment, (text, start, end) in zip(transcript.segments, expected, strict=True):
        assert segment.text == text and segment.words == []
        assert (segment.start, segment.end) == pytest.approx((start, end))
    assert transcript.text == "the cat cat" and transcript.language == "en"


def test_silence_has_no_text(reader):
    text = [at(0), THE, at(0.5)]
    windows = [(text, -1.2, 0.9), (text, -1.2, 0.1), (text, -0.2, 0.9)]
    seen = script(reader, windows)
    sound = np.ones(4 * RATE, "float32")
    sound[3 * RATE :] = 0  # digital silence
    segments = reader.transcribe(sound, words=False).segments
    assert [round(segment.start) for segment in segments] == [1, 2] and len(seen) == 3


@pytest.mark.slow
def test_recordings_of_any_length_are_transcribed(task, monkeypatch):
    """Check with random weights: times are in order, and `predict` writes the same text."""
    monkeypatch.setattr(speech_windows, "TEMPERATURES", (0.0,))
    sound = np.concatenate([*draw_sounds(), draw_sounds()[0]])
    (transcript,) = task.transcribe([sound])
    assert len(sound) > 2 * RATE and task.predict([sound[:RATE], sound])[1] == transcript.text
    times = [time for word in transcript.words for time in word[1:3]]
    assert transcript.words and times == sorted(times)
    assert 0 <= times[0] and times[-1] <= len(sound) / RATE
    assert all(0 <= word.probability <= 1 for word in transcript.words)
    assert " ".join(word.text for word in transcript.words) == transcript.text
    assert task.predict([sound], srt=True) == [transcript.format_srt()]


@pytest.mark.slow
def test_languages_are_detected(task, reader):
    sound = draw_sounds()[0]
    shares = reader.detect_language(sound)
    inputs = task.preprocessor([sound])
    start = np.array([[HEARD["<|startoftranscript|>"]]])
    logits = np.asarray(task.model({**inputs, "target_ids": start}))[0, 0]
    weights = np.exp([logits[HEARD["<|en|>"]], logits[HEARD["<|de|>"]]])
    expected = dict(zip(("en", "de"), weights / weights.sum(), strict=True))
    assert shares == pytest.approx(expected, abs=1e-5)
    best = max(shares, key=shares.get)
    (transcript,) = task.transcribe([sound], language="auto", words=False, temperatures=[0.0])
    assert transcript.language == best
    options = {"language": best, "words": False, "temperatures": [0.0]}
    assert task.transcribe([sound], **options) == [transcript]


def test_text_so_far_needs_its_token(reader):
    assert reader.previous_id is None and reader._list_previous([THE] * 9, 3) == []
    reader.previous_id = 5
    assert reader.writing.max_new_tokens == 8
    assert reader._list_previous([THE] * 9 + [CAT], 3) == [5, THE, THE, THE, CAT]
    assert reader._list_previous([], 3) == []


def test_words_begin_with_spaces_and_keep_their_punctuation(task):
    tokenizer = task.preprocessor.target
    ids = [THE, HEARD["."], CAT, HEARD["s"], HEARD["!"], HEARD["Ġ"], HEARD["a"]]
    assert split_words(tokenizer, ids) == [(" the.", 2), (" cats!", 3), (" a", 2)]
    assert split_words(tokenizer, [THE, CAT], "ja") == [(" the", 1), (" cat", 1)]
    assert split_words(tokenizer, []) == []


def test_words_are_spelled_in_the_shortest_pieces_that_fit(task):
    tokenizer = task.preprocessor.target
    ids = [THE, CAT, HEARD["s"]]
    words = split_words(tokenizer, ids)
    assert words == [(" the", 1), (" cats", 2)]

    def spell(room):
        pieces = spell_words(tokenizer, words, ids, room)
        return [[tokenizer.decode([[i]])[0] for i in word] for word in pieces]

    single, whole = spell(99), spell(2)
    assert ["".join(word) for word in single] == ["".join(word) for word in whole]
    assert all(len(piece.strip()) <= 1 for word in single for piece in word)
    assert spell(sum(map(len, single))) == single != spell(sum(map(len, single)) - 1)
    assert whole == [[" the"], [" cat", "s"]]  # nothing fits, so the ids of the text


def test_alignment_reads_the_spelled_words(task, reader):
    """Compare with the attention weights and logits of one call, by definition."""
    encoded = reader.encode(draw_sounds()[0])
    start, spelled = list(task.preprocessor.prompt.find()), [[THE, CAT], [HEARD["s"]], [THE]]
    ids, begin = [*start, THE, CAT, HEARD["s"], THE], len(start)
    with ka.visualization.record_attention(reader.writer) as maps:
        logits = reader.writer({"encoded": encoded, "target_ids": np.array([ids])})
    weights = [np.asarray(x)[0] for path, x in maps.items() if "cross_attention" in path][-1]
    weights = weights[1:2, begin - 1 :, :20]  # head 1 reads 20 vectors
    weights = weights / weights.sum(axis=-1, keepdims=True)
    firsts = ka.generation.align_attention(weights, filter_width=3)
    heads = [(len([path for path in maps if "cross_attention" in path]) - 1, 1)]
    bounds = align_words(reader.writer, encoded, start, spelled, 20, heads)
    assert bounds.tolist() == [firsts[0], firsts[2], firsts[3], firsts[4]]
    shares = np.exp(np.asarray(logits)[0]) / np.exp(np.asarray(logits)[0]).sum(-1, keepdims=True)
    expected = [shares[k - 1, ids[k]] for k in range(begin, len(ids))]
    np.testing.assert_allclose(
        rate_tokens(reader.writer, encoded, ids, begin), expected, rtol=1e-4, atol=1e-6
    )


def test_the_best_third_of_the_heads_is_chosen():
    sharp, even = np.repeat(np.eye(3), 2, axis=1) / 2, np.full((3, 6), 1 / 6)
    layers = [np.stack([even, sharp, even]), np.stack([even, even, sharp])]
    assert sorted(choose_heads(layers)) == [(0, 1), (1, 2)]
    assert choose_heads([sharp[None]]) == [(0, 0)]
    assert len(choose_heads([np.stack([sharp] * 48)])) == 10


def test_loudness_is_the_mean_during_each_vector():
    samples = np.array([1.0, -3.0, 0.5, 0.5, -2.0], "float32")
    np.testing.assert_allclose(measure_loudness(samples, 3), [2.0, 0.5, 1.0])


def test_pauses_are_found_in_noise():
    for noise in (0.0, 0.1):
        loudness = np.ones(20) + noise
        loudness[[0, 1, 7, 8, 9, 19]] = noise
        assert find_pauses(loudness).tolist() == [[0, 2], [7, 10], [19, 20]]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ((20, 50), (20, 50)),  # without a pause
        ((10, 50), (20, 50)),
        ((30, 65), (30, 60)),
        ((8, 50), (20, 50)),  # with some sound of the word before
        ((8, 64), (20, 60)),
        ((30, 75), (30, 60)),  # with some sound of the next word
        ((2, 50), (2, 50)),  # too much sound: the pause is inside the word
        ((12, 18), (12, 18)),  # nothing else
        ((60, 60), (60, 60)),
    ],
)
def test_words_lose_pauses_at_their_ends(word, expected):
    assert cut_pauses(*word, np.array([[10, 20], [60, 70]])) == expected
    assert cut_pauses(*word, np.zeros((0, 2), int)) == word


def test_words_have_the_times_of_their_bounds():
    words = time_words(
        [(" a", 1), (" bc", 2)], [(5, 10), (12, 16)], np.array([0.5, 0.25, 0.75]), 0.1, 3
    )
    assert words[0] == ("a", 3.5, 4.0, 0.5) and words[1][1:] == pytest.approx((4.2, 4.6, 0.5))


def test_repetition_and_ends():
    assert measure_compression("the cat " * 40) > 2.4 > measure_compression("A cat sat there.")
    assert cut_at(np.array([1, 2, 9, 3]), [9]) == [1, 2] and cut_at(np.array([1]), [9]) == [1]


def test_alignment_heads_are_read_and_saved(tmp_path):
    prompt = ka.data.SpeechPrompt(1, 8, alignment_heads=[[1, 0], [1, 1]])
    assert json.loads(json.dumps(prompt.config()))["alignment_heads"] == [[1, 0], [1, 1]]
    assert "alignment_heads" not in ka.data.SpeechPrompt(1, 8).config()
    with pytest.raises(ValueError, match="expected pairs of a layer and a head"):
        ka.data.SpeechPrompt(1, 8, alignment_heads=[[1, 0, 2]])


def test_only_whisper_transcribes_in_windows(task):
    characters = ka.data.Characters.build(["eins"])
    preprocessor = ka.data.SpeechTextPreprocessor(characters, sampling_rate=8000)
    other = ka.tasks.SpeechToText(task.model, preprocessor)
    with pytest.raises(ValueError, match="transcribe and srt= are for checkpoints of Whisper"):
        other.predict([np.zeros(8000)], srt=True)
    with pytest.raises(ValueError, match="language='klingon': expected one of de, en"):
        task.transcribe([draw_sounds()[0]], language="klingon")
