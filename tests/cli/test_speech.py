"""The commands on recordings, trained from a folder, with every format."""

import json

import pytest
import soundfile

from tests.tasks.test_speech_recognizer import draw

KINDS = ("keras", "saved_model", "litert", "litert-int8")


def write(folder, count, seed):
    """Write a folder of WAV files with a table of transcripts, and return the transcripts."""
    folder.mkdir()
    recordings = draw(count, seed)
    for k, recording in enumerate(recordings):
        soundfile.write(folder / f"{k}.wav", recording.sound, 8000)
    lines = [f"{k}.wav\t{recording.text}\n" for k, recording in enumerate(recordings)]
    (folder / "transcripts.tsv").write_text("".join(lines), "utf-8")
    return [recording.text for recording in recordings]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_recognizer_is_trained_on_a_folder_and_transcribes_files(tmp_path, run):
    write(tmp_path / "train", 64, 0)
    texts = write(tmp_path / "test", 8, 1)
    words = ["speech_recognizer", "--train", tmp_path / "train", "--test", tmp_path / "test"]
    sizes = ["--num-layers", 1, "--num-heads", 2, "--hidden-dim", 32, "--dropout", 0]
    steps = ["--epochs", 6, "--batch-size", 8, "--learning-rate", 0.01]
    status, _, error = run("train", *words, *sizes, *steps, "--output", tmp_path / "run")
    assert status == 0, error
    scores = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
    assert scores["test"]["keras"]["character_error_rate"] < 0.2
    assert scores["test"]["litert"] == scores["test"]["keras"]
    transcripts = set()
    for kind in KINDS:
        sounds = [str(tmp_path / "test" / f"{k}.wav") for k in range(len(texts))]
        status, out, _ = run("predict", tmp_path / "run", *sounds, "--with", kind, "--json")
        assert status == 0
        transcripts.add(tuple(json.loads(line)["prediction"] for line in out.splitlines()))
    assert len(transcripts) == 1
    status, out, error = run("predict", tmp_path / "run", tmp_path / "missing.wav")
    assert status == 2 and not out and "expected a WAV or FLAC file" in error


@pytest.mark.slow
@pytest.mark.tensorflow
def test_tokens_words_trains_a_recognizer_of_words(tmp_path, run):
    texts = write(tmp_path / "train", 16, 0)
    rows = [f"{k}.wav\t{' '.join(2 * c for c in text)}\n" for k, text in enumerate(texts)]
    (tmp_path / "train" / "transcripts.tsv").write_text("".join(rows), "utf-8")
    words = ["train", "speech_recognizer", "--train", tmp_path / "train", "--epochs", 1]
    sizes = ["--num-layers", 1, "--num-heads", 2, "--hidden-dim", 16]
    status, _, error = run(*words, *sizes, "--tokens", "words", "--output", tmp_path / "run")
    assert status == 0, error
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
    assert manifest["words"] == ["aa", "bb", "cc"]
    status, _, error = run(*words, *sizes, "--tokens", "subwords", "--output", tmp_path / "other")
    assert status == 2 and "expected 'characters' or 'words'" in error


@pytest.mark.sweep
@pytest.mark.tensorflow
def test_encoder_decoder_learns_the_translations_of_a_table(tmp_path, run):
    """Check that the files of the preset write the fourth column of the table."""
    for part, count, seed in (("train", 64, 0), ("test", 4, 1)):
        texts = write(tmp_path / part, count, seed)
        names = {"a": "uno", "b": "due", "c": "tre"}
        rows = [f"{k}.wav\t{t}\t\t{' '.join(names[c] for c in t)}\n" for k, t in enumerate(texts)]
        (tmp_path / part / "transcripts.tsv").write_text("".join(rows), "utf-8")
    words = ["speech_to_text", "--train", tmp_path / "train", "--test", tmp_path / "test"]
    sizes = ["--num-layers", 1, "--num-heads", 2, "--hidden-dim", 16, "--max-length", 16]
    steps = ["--epochs", 1, "--batch-size", 16]
    status, _, error = run("train", *words, *sizes, *steps, "--output", tmp_path / "run")
    assert status == 0, error
    scores = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
    assert set(scores["test"]["keras"]) == {"exact_match", "chrf"}
    assert scores["test"]["litert"] == scores["test"]["keras"]
    sound = str(tmp_path / "test" / "0.wav")
    status, out, _ = run("predict", tmp_path / "run", sound, "--with", "litert", "--json")
    assert status == 0 and isinstance(json.loads(out)["prediction"], str)
