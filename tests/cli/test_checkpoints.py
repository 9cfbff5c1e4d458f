"""`predict` and `evaluate` with checkpoints of Hugging Face, without a saved preset."""

import json
import re
import sys
import types

import numpy as np
import pytest
from PIL import Image

import keras_attention as ka
from keras_attention.tasks import speech_windows
from tests.pretrained.make_checkpoints import FOLDER, HEARD, draw_sounds
from tests.tasks import checkpoint_files
from tests.tasks.checkpoint_files import copy_checkpoint, make_bert, make_gpt2, make_pictures

pytestmark = pytest.mark.tensorflow
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "who", "?"]


def make_reader(name, folder):
    """Copy a BERT with a head, and write its vocabulary."""
    copy_checkpoint(name, folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    return folder


def ask(run, *words):
    """Return the predictions of `predict --json`, a list."""
    code, printed, error = run("predict", *words, "--json")
    assert code == 0, error
    return [json.loads(line)["prediction"] for line in printed.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, inputs", [("bert-texts", "the cat"), ("bert-tokens", "the cat sat")]
)
def test_predict_with_heads_of_texts_and_tokens(name, inputs, run, tmp_path):
    folder = make_reader(name, tmp_path / name)
    (answers,) = ask(run, folder, inputs)
    (expected,) = ka.tasks.from_preset(folder).predict([inputs])
    if name == "bert-texts":
        assert answers == expected._asdict()
    else:
        assert len(answers) == 3 and answers == [one._asdict() for one in expected]


def test_predict_fills_in_a_mask(run, tmp_path):
    folder = make_bert(tmp_path / "bert")
    ((answers,),) = ask(run, folder, "the [MASK] sat", "--top", 2)
    ((expected,),) = ka.tasks.from_preset(folder).predict(["the [MASK] sat"], top=2)
    assert len(answers) == 2 and answers == [one._asdict() for one in expected]


def test_predict_answers_a_question(run, tmp_path):
    folder = make_reader("bert-answers", tmp_path / "bert")
    (tmp_path / "text.txt").write_text("the cat sat")
    words = ["--question", "who ?", "--context", tmp_path / "text.txt"]
    (answers,) = ask(run, folder, *words)
    (expected,) = ka.tasks.from_preset(folder).predict([("who ?", "the cat sat")])
    assert answers == expected._asdict()


def test_predict_classifies_a_picture(run, tmp_path):
    folder = make_pictures("vit", tmp_path / "vit")
    pixels = np.random.default_rng(0).integers(0, 255, (12, 12, 3)).astype("uint8")
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    (answers,) = ask(run, folder, tmp_path / "picture.png")
    (expected,) = ka.tasks.from_preset(folder).predict([str(tmp_path / "picture.png")])
    assert answers == expected._asdict()


@pytest.mark.slow
def test_predict_continues_a_text(run, tmp_path):
    folder = make_gpt2(tmp_path / "gpt2")
    options = ["--max-new-tokens", 3, "--temperature", 0]
    (answers,) = ask(run, folder, "the cat", *options)
    task = ka.tasks.from_preset(folder)
    assert [answers] == task.predict(["the cat"], max_new_tokens=3, temperature=0)


@pytest.mark.slow
def test_predict_transcribes_a_recording(run, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "said.wav", draw_sounds()[0], 16000, subtype="FLOAT")
    options = ["--language", "german", "--task", "translate"]
    (answers,) = ask(run, FOLDER / "whisper-texts", tmp_path / "said.wav", *options)
    with np.load(FOLDER / "whisper-texts" / "written.npz") as file:
        written = file["ids"][1, :1]
    assert HEARD["<|endoftext|>"] not in written  # the most tokens that the task writes
    assert [answers] == ka.tasks.from_preset(FOLDER / "whisper-texts").preprocessor.texts(written)
    code, _, error = run("predict", FOLDER / "whisper-texts", "a.wav", "--language", "latin")
    assert code == 2 and "--language latin: expected one of de, en" in error


@pytest.mark.slow
def test_predict_prints_subtitles(run, tmp_path, monkeypatch):
    """Check a recording that is longer than the model reads at once."""
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setattr(speech_windows, "TEMPERATURES", (0.0,))
    sound = np.tile(draw_sounds()[0], 2)[:24000]
    soundfile.write(tmp_path / "said.wav", sound, 16000, subtype="FLOAT")
    code, printed, error = run("predict", FOLDER / "whisper-texts", tmp_path / "said.wav", "--srt")
    assert code == 0, error
    first, *others = printed.removesuffix("\n").split("\n\n")
    number, times, text = first.split("\n")
    assert number == "1" and re.fullmatch(r"00:00:0\d,\d{3} --> 00:00:0\d,\d{3}", times) and text
    assert [block.split("\n")[0] for block in others] == [str(k + 2) for k in range(len(others))]
    code, _, error = run("predict", make_gpt2(tmp_path / "gpt2"), "the cat", "--srt")
    assert code == 2 and "--srt does not apply to causal_language_model" in error


@pytest.mark.slow
def test_predict_downloads_an_id_and_adds_a_prefix(run, tmp_path, monkeypatch):
    folder, asked = checkpoint_files.make_t5(tmp_path / "t5"), []

    def snapshot_download(name, **options):
        asked.append(name)
        return folder

    hub = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    (answers,) = ask(run, "hf://me/tiny", "a cat", "--prefix", "the mat: ")
    assert set(asked) == {"me/tiny"}
    task = ka.tasks.Seq2SeqLM.from_preset(folder, prefix="the mat: ")
    assert [answers] == task.predict(["a cat"])


@pytest.mark.slow
def test_evaluate_scores_a_checkpoint_on_a_file(run, tmp_path):
    folder = make_reader("bert-texts", tmp_path / "bert")
    (tmp_path / "test.tsv").write_text("text\tlabel\nthe cat\tLABEL_0\nthe sat\tLABEL_1\n")
    code, printed, error = run("evaluate", folder, "--file", tmp_path / "test.tsv")
    assert code == 0, error
    task = ka.tasks.from_preset(folder)
    labels = [one.label for one in task.predict(["the cat", "the sat"])]
    right = sum(a == b for a, b in zip(labels, ["LABEL_0", "LABEL_1"], strict=True))
    assert "accuracy" in printed and f"{50 * right:.2f}" in printed


def test_commands_refuse_options_that_checkpoints_do_not_support(run, tmp_path):
    code, _, error = run("predict", FOLDER / "bert-texts", "a", "--prefix", "b")
    assert code == 2 and "--prefix does not apply to text_classifier: leave it out" in error
    code, _, error = run("predict", tmp_path, "a", "--prefix", "b")
    assert code == 2 and "--prefix is for Hugging Face checkpoints, and" in error
    code, _, error = run("predict", FOLDER / "bert-texts", "a", "--with", "litert")
    assert code == 2 and "is a checkpoint, which has no file of kind litert" in error
    code, _, error = run("predict", tmp_path / "none" / "here", "a")
    assert code == 2 and "There is no file or folder" in error
    code, _, error = run("export", "hf://me/tiny")
    assert (
        code == 2 and "hf://me/tiny is a checkpoint, and this command needs a preset: make" in error
    )
    code, _, error = run("predict", FOLDER / "bert", "a")
    assert code == 2 and "has no head that labels text or tokens" in error
