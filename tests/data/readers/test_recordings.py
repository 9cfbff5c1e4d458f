"""Recordings from files and of joined digits, their preprocessor, and batches."""

import types

import numpy as np
import pytest
import soundfile

import keras_attention as ka
from keras_attention.data.made_up import spoken_digits
from keras_attention.data.readers.sounds import resample

random = np.random.default_rng(0)
SOUND = random.uniform(-0.5, 0.5, 800).astype("float32")


def write(path, samples=SOUND, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)
    return path


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_reads_sound(suffix, tmp_path):
    path = write(tmp_path / f"a.{suffix}", np.stack([SOUND, -SOUND / 2], axis=1))
    samples, rate = ka.data.read_sound(path)
    assert rate == 8000 and samples.dtype == np.float32
    np.testing.assert_allclose(samples, SOUND / 4, atol=1e-4)


def test_a_table_of_paths_and_transcripts(tmp_path):
    write(tmp_path / "sounds/a.wav"), write(tmp_path / "sounds/b.flac", -SOUND[:300])
    table = tmp_path / "train.tsv"
    table.write_text("sounds/a.wav\tone two\tanna\n\nsounds/b.flac\tthree\n", "utf-8")
    data = ka.data.from_recordings(test=table)
    assert data.about["sampling_rate"] == 8000 and not data.train and not data.dev
    assert [(r.text, r.speaker) for r in data.test] == [("one two", "anna"), ("three", None)]
    np.testing.assert_allclose(data.test[1].sound, -SOUND[:300], atol=1e-4)
    table.rename(tmp_path / "transcripts.tsv")
    assert [r.text for r in ka.data.from_recordings(test=tmp_path).test] == ["one two", "three"]


def test_a_folder_as_librispeech_has_it(tmp_path):
    folder = tmp_path / "test-clean" / "84" / "121"
    write(folder / "84-121-0000.flac"), write(folder / "84-121-0001.wav")
    (folder / "84-121.trans.txt").write_text("84-121-0000 GO DO\n84-121-0001 SO\n", "utf-8")
    data = ka.data.from_recordings(test=tmp_path)
    assert [(r.text, r.speaker) for r in data.test] == [("GO DO", "84"), ("SO", "84")]


def test_a_tenth_of_train_becomes_dev(tmp_path):
    write(tmp_path / "a.wav")
    (tmp_path / "all.tsv").write_text("a.wav\tone\n" * 20, "utf-8")
    data = ka.data.from_recordings(tmp_path / "all.tsv")
    assert (len(data.train), len(data.dev), len(data.test)) == (18, 2, 0)


@pytest.mark.parametrize(
    "line, message",
    [
        ("a.wav", r"train.tsv, line 1: 1 columns: expected a path, a"),
        ("b.wav\tone", r"train.tsv, line 1: The file .*b.wav is missing"),
        ("train.tsv\tone", r"line 1: .*train.tsv is not a readable WAV or FLAC file"),
        ("quick.wav\tone", r"quick.wav has 500 samples a second: expected 1,000 to"),
        ("no.wav\tone", r"train.tsv, line 1: .*no.wav has no samples: record it again"),
    ],
)
def test_refuses_tables_that_name_the_line(line, message, tmp_path):
    write(tmp_path / "no.wav", SOUND[:0]), write(tmp_path / "quick.wav", rate=500)
    table = tmp_path / "train.tsv"
    table.write_text(line + "\n", "utf-8")
    with pytest.raises(ValueError, match=message):
        ka.data.from_recordings(table, sampling_rate=8000)


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", 'path,text\na.wav,"one, two"\n'),
        ("a.csv", 'Text,Speaker,Path,Extra\n"one, two",anna,a.wav,x\n'),
        ("a.csv", 'a.wav,"one, two",anna,"eins, zwei"\n'),
        ("a.tsv", "text\tpath\ttranslation\none, two\ta.wav\teins, zwei\n"),
        ("a.jsonl", '{"path": "a.wav", "text": "one, two", "speaker": "anna"}\n'),
    ],
)
def test_tables_name_their_columns_as_for_other_readers(name, content, tmp_path):
    write(tmp_path / "a.wav")
    (tmp_path / name).write_text(content, "utf-8")
    (recording,) = ka.data.from_recordings(test=tmp_path / name).test
    assert recording.text == "one, two" and len(recording.sound) == len(SOUND)
    assert recording.speaker == ("anna" if "anna" in content else None)
    assert recording.translation == ("eins, zwei" if "eins" in content else None)


def test_columns_have_other_names_or_numbers(tmp_path):
    write(tmp_path / "a.wav")
    table = tmp_path / "a.csv"
    table.write_text("file,sentence\na.wav,one\n", "utf-8")
    with pytest.raises(ValueError, match="a.csv:1: no column 'path', the first row names file"):
        ka.data.from_recordings(test=table)
    with pytest.raises(ValueError, match="no column 'text', .* with text_column= a name, or a nu"):
        ka.data.from_recordings(test=table, sound_column="file")
    options = {"sound_column": "file", "text_column": "sentence"}
    assert ka.data.from_recordings(test=table, **options).test[0].text == "one"
    table.write_text("one,a.wav\n", "utf-8")
    options = {"sound_column": 1, "text_column": 0}
    assert ka.data.from_recordings(test=table, **options).test[0].text == "one"


def test_recordings_of_other_rates_are_resampled(tmp_path):
    tone = np.sin(2 * np.pi * 440 * np.arange(4410) / 44100)
    write(tmp_path / "a.wav", np.stack([tone, tone], axis=1), 44100)
    write(tmp_path / "b.wav", tone[:800], 8000)
    (tmp_path / "a.csv").write_text("path,text\na.wav,one\nb.wav,two\n", "utf-8")
    data = ka.data.from_recordings(test=tmp_path / "a.csv")
    assert data.about["sampling_rate"] == 16000 and [len(x.sound) for x in data.test] == [
        1600,
        1600,
    ]
    data = ka.data.from_recordings(test=tmp_path / "a.csv", sampling_rate=8000)
    assert data.about["sampling_rate"] == 8000 and [len(x.sound) for x in data.test] == [800, 800]
    same = ka.data.SpeechPreprocessor("ab", 8000)([tmp_path / "a.wav"])["waveform"]
    np.testing.assert_array_equal(same[0], data.test[0].sound)


@pytest.mark.parametrize("rate, new_rate", [(44100, 16000), (48000, 16000), (8000, 16000)])
def test_resampling_keeps_audible_tones_and_removes_others(rate, new_rate):
    def tone(frequency, rate):
        return np.sin(2 * np.pi * frequency * np.arange(rate) / rate)

    middle = slice(new_rate // 10, -new_rate // 10)
    for frequency in (50, 1000, 3500):
        resampled = resample(tone(frequency, rate).astype("float32"), rate, new_rate)
        assert len(resampled) == new_rate and resampled.dtype == np.float32
        assert np.abs(resampled - tone(frequency, new_rate))[middle].max() < 1e-4  # -80 dB
    if rate > 2 * 9000:  # which 16,000 samples a second cannot have: it must not come back as 7,000
        resampled = resample(tone(9000, rate).astype("float32"), rate, new_rate)
        assert np.abs(resampled)[middle].max() < 1e-4


def test_rates_without_a_common_divisor_are_resampled():
    resampled = resample(np.ones(44101, "float32"), 44101, 16000)
    assert abs(len(resampled) - 16000) <= 1
    np.testing.assert_allclose(resampled[1000:-1000], 1.0, atol=1e-4)


def test_transcripts_may_be_empty(tmp_path):
    write(tmp_path / "a.wav")
    (tmp_path / "train.tsv").write_text("a.wav\t\na.wav\tone\n", "utf-8")
    assert [r.text for r in ka.data.from_recordings(test=tmp_path / "train.tsv").test] == [
        "",
        "one",
    ]


def test_refuses_a_folder_without_transcripts(tmp_path):
    with pytest.raises(ValueError, match=r"transcripts.tsv.*\*.trans.txt"):
        ka.data.from_recordings(tmp_path)


def test_preprocessor_encodes_and_decodes(tmp_path):
    preprocessor = ka.data.SpeechPreprocessor.build(["one two", "three"], sampling_rate=8000)
    assert preprocessor.characters == tuple(sorted(set("one two three")))
    assert preprocessor.vocabulary_size == len(preprocessor.characters) + 1
    ids = preprocessor.encode("two one")
    assert 0 not in ids and preprocessor.decode([*ids, 0, 0]) == "two one"
    inputs = preprocessor([write(tmp_path / "a.wav"), SOUND[:100]])
    np.testing.assert_allclose(inputs["waveform"][0], SOUND, atol=1e-4)
    assert not inputs["waveform"][1, 100:].any() and list(inputs["lengths"]) == [800, 100]


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda p: p.encode("four"), "'four' has 'f'"),
        (lambda p: p([np.zeros((3, 4))]), r"shape \(3, 4\) .*a path, or an array of samples"),
        (lambda p: ka.data.SpeechPreprocessor(("ab",), 8000), "'ab': expected one character"),
        (lambda p: ka.data.SpeechPreprocessor("aa", 8000), "all different"),
        (lambda p: ka.data.SpeechPreprocessor("ab"), "give either"),
    ],
)
def test_the_preprocessor_refuses(use, message):
    with pytest.raises(ValueError, match=message):
        use(ka.data.SpeechPreprocessor.build(["one"], sampling_rate=8000))


@pytest.mark.parametrize("features", [None, 3])
def test_batches_hold_every_recording_once(features):
    shape = () if features is None else (features,)
    every = [
        ka.data.Recording(np.full((n, *shape), n, "float32"), "ab" * (n % 3)) for n in range(1, 24)
    ]
    rate = 8000 if features is None else None
    preprocessor = ka.data.SpeechPreprocessor("ab", rate, features)
    options = dict(batch_size=4, shuffle=True, seed=1)
    batches = ka.data.batches(every, preprocessor, **options)
    assert len(batches) == 6
    epochs = []
    for _ in range(2):
        lengths_read = []
        for inputs, labels in batches.as_numpy_iterator():
            sound = inputs[preprocessor.input_name]
            for row, length, ids in zip(sound, inputs["lengths"], labels, strict=True):
                assert (row[:length] == length).all() and not row[length:].any()
                assert preprocessor.decode(ids) == "ab" * (length % 3)
                lengths_read.append(int(length))
        assert sorted(lengths_read) == list(range(1, 24))
        epochs.append(lengths_read)
    assert epochs[0] != epochs[1]


class Builder:
    """Builder of TFDS's `spoken_digit` with two recordings of each digit in each part."""

    info = types.SimpleNamespace(splits={"train": None})

    def as_dataset(self, split):
        for speaker in spoken_digits.SPEAKERS:
            for digit in range(10):
                for number in (0, 4, 5, 9, 10, 49):
                    value = 1000 * digit + number
                    name = f"{digit}_{speaker}_{number}.wav".encode()
                    yield {"audio": np.full(400, value), "audio/filename": name}


def read_from(monkeypatch, builder):
    tfds = types.SimpleNamespace(as_numpy=list)
    monkeypatch.setattr(spoken_digits, "import_tfds", lambda name: tfds)
    monkeypatch.setattr(spoken_digits, "find_tfds_builder", lambda *args: builder)
    monkeypatch.setattr(spoken_digits, "prepare_builder", lambda tfds, builder, name: builder)


def test_texts_of_connected_digits_match_their_recordings(monkeypatch):
    read_from(monkeypatch, Builder())
    data = ka.data.connected_digits(40, 10, 20, speakers=["theo"], max_digits=3)
    assert data.about["sampling_rate"] == 8000
    numbers = {"train": {10, 49}, "dev": {5, 9}, "test": {0, 4}}
    for part, count in (("train", 40), ("dev", 10), ("test", 20)):
        strings, heard = getattr(data, part), set()
        assert len(strings) == count
        for sound, text, speaker, _ in strings:
            values = np.round(sound * 32768).astype(int)
            runs = values[np.flatnonzero(np.diff(values, prepend=0) != 0)]
            runs = [value for value in runs if value > 0]
            words = text.split()
            assert speaker == "theo" and 1 <= len(words) <= 3
            if len(runs) == len(words):  # no silence of 0 samples, no zero of value 0
                assert [spoken_digits.WORDS[value // 1000] for value in runs] == words
            heard |= {value % 1000 for value in runs}
        assert heard - {0} <= numbers[part] and heard
    assert ka.data.connected_digits(5, 0, 0).train[0].text == (
        ka.data.connected_digits(5, 0, 0).train[0].text
    )
    with pytest.raises(ValueError, match="speakers has 'bob': expected some of george"):
        ka.data.connected_digits(speakers=["bob"])
    with pytest.raises(ValueError, match="speeds=.*from 0.5 to 2"):
        ka.data.connected_digits(speeds=[1.0, 3.0])
    faster = ka.data.connected_digits(9, 9, 0, max_digits=1, speeds=[2.0])
    assert {np.count_nonzero(one.sound) for one in faster.train} == {200}
    assert {np.count_nonzero(one.sound) for one in faster.dev} == {400}
    assert "at one of the speeds 2" in faster.notes[1]


class SoftEnds(Builder):
    """The same recordings, each followed by as many samples that are softer by 54 decibels."""

    def as_dataset(self, split):
        for example in super().as_dataset(split):
            loud = np.full_like(example["audio"], 500)
            yield example | {"audio": np.concatenate([loud, loud // 500])}


def test_digits_of_training_lose_their_soft_ends(monkeypatch):
    read_from(monkeypatch, SoftEnds())
    for top_db, count in ((None, 800), ((60, 70), 800), ((8, 40), 480)):  # half a frame is loud
        data = ka.data.connected_digits(9, 9, 9, max_digits=1, top_db=top_db)
        assert {np.count_nonzero(one.sound) for one in data.train} == {count}
        assert {np.count_nonzero(one.sound) for one in (*data.dev, *data.test)} == {800}
        assert (top_db is None) == (len(data.notes) == 1)
    assert "by more than 8 to 40 decibels" in data.notes[1]
    for wrong in ((40, 8), (0, 8), (8,), 8):
        with pytest.raises(ValueError, match=r"top_db=.*expected .lowest, highest. in decibels"):
            ka.data.connected_digits(top_db=wrong)


@pytest.mark.parametrize("top_db", [3.0, 12.0, 30.0])
def test_trims_at_the_first_and_the_last_loud_frame(top_db):
    random = np.random.default_rng(3)
    level = 10.0 ** -np.abs(np.linspace(-3, 2, 1234))  # the loudest at 740
    samples = (random.normal(size=1234) * level).astype("float32")
    powers = [
        np.mean(np.square(np.pad(samples, (0, 159))[k : k + 160])) for k in range(0, 1234, 80)
    ]
    loud = [k for k, one in enumerate(powers) if 10 * np.log10(max(powers) / one) <= top_db]
    trimmed = spoken_digits.trim(samples, top_db)
    np.testing.assert_array_equal(trimmed, samples[80 * loud[0] : 80 * loud[-1] + 160])
    assert len(trimmed) < 1234
    np.testing.assert_array_equal(spoken_digits.trim(samples, 200.0), samples)
    silence = np.zeros(300, "float32")
    np.testing.assert_array_equal(spoken_digits.trim(silence, top_db), silence)


@pytest.mark.parametrize("speed", [0.8, 1.0, 1.25])
def test_faster_playback_shortens_recordings_and_raises_pitch(speed):
    tone = np.sin(2 * np.pi * 500 * np.arange(8000) / 8000)
    changed = spoken_digits.change_speed(tone, speed)
    assert len(changed) == 8000 / speed
    expected = np.sin(2 * np.pi * 500 * speed * np.arange(len(changed)) / 8000)
    np.testing.assert_allclose(changed, expected, atol=1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_sounds_that_are_not_finite_are_named(number, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    sound = np.zeros(800, "float32")
    sound[5] = number
    path = tmp_path / "broken.wav"
    soundfile.write(path, sound, 8000, subtype="FLOAT")
    with pytest.raises(ValueError, match="broken.wav has NaN or infinity.*Leave it out"):
        ka.data.read_sound(path)
    preprocessor = ka.data.SpeechPreprocessor.build(["one"], sampling_rate=8000)
    with pytest.raises(ValueError, match="broken.wav has NaN or infinity"):
        preprocessor([path])
    with pytest.raises(ValueError, match="sound of 'one' has NaN or infinity"):
        ka.data.Recording.collect([ka.data.Recording(sound, "one")], sampling_rate=8000)


def test_lists_of_recordings_and_absolute_paths(tmp_path):
    """Tables may name any file, but LibriSpeech's lists only files beside them."""
    sound = tmp_path / "sounds" / "a.wav"
    sound.parent.mkdir()
    soundfile.write(sound, np.zeros(800, "float32"), 8000)
    table = tmp_path / "tables" / "train.tsv"
    table.parent.mkdir()
    table.write_text(f"{sound}\tone\n../sounds/a.wav\ttwo\n")
    recordings = ka.data.from_recordings(test=table).test
    assert [recording.text for recording in recordings] == ["one", "two"]
    (table.parent / "1.trans.txt").write_text("../sounds/a ONE\n")
    with pytest.raises(ValueError, match=r"'../sounds/a': expected the name of a sound"):
        ka.data.from_recordings(test=table.parent)
