"""Commands that train, use and export checkpoints of texts, pictures and speech."""

import json

import numpy as np
import pytest

from tests.pretrained.make_checkpoints import FOLDER, draw_sounds
from tests.tasks.checkpoint_files import (
    TEXT,
    make_bart,
    make_bert,
    make_gpt2,
    make_pictures,
)
from tests.tasks.test_checkpoint_images import draw_pictures

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


@pytest.mark.sweep
def test_commands_for_a_language_model(run, tmp_path):
    folder, out = make_gpt2(tmp_path / "gpt2"), tmp_path / "out"
    (tmp_path / "train.txt").write_text(TEXT * 20)
    files = ["--train", tmp_path / "train.txt", "--test", tmp_path / "train.txt"]
    options = ["--epochs", 2, "--steps", 6, "--batch-size", 4, "--max-length", 8, "--lora-rank", 2]
    command = ["train", "causal_language_model", "--from", folder, "--output", out, *files]
    code, _, error = run(*command, *options)
    assert code == 0, error
    assert f"Fine-tuned from {folder}" in (out / "README.md").read_text()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["pretrained"] and manifest["maximum_length"] == 8
    scores = json.loads((out / "scores.json").read_text())["test"]
    code, printed, _ = run("evaluate", out, "--file", tmp_path / "train.txt")
    assert code == 0 and f"{scores['keras']['perplexity']:.2f}" in printed
    words = ["the cat", "--temperature", "0", "--max-new-tokens", "4"]
    written = {kind: run("predict", out, *words, "--with", kind) for kind in ("keras", "litert")}
    assert written["keras"][0] == 0 and written["keras"] == written["litert"]
    assert run("export", out, "--quantization", "float16")[0] == 0
    code, _, error = run(*command, "--num-layers", 3, "--output", tmp_path / "x")
    assert code == 2 and "--num-layers is fixed by the model of --from" in error
    code, _, error = run(*command, "--freeze", "all", "--output", tmp_path / "y")
    assert code == 2 and "leaves nothing of causal_language_model to train" in error


@pytest.mark.sweep
def test_commands_for_an_encoder_decoder(run, tmp_path):
    folder, out = make_bart(tmp_path / "bart"), tmp_path / "out"
    pairs = "source\ttarget\n" + "the cat\ta dog\na dog\tthe cat\n" * 12
    (tmp_path / "train.tsv").write_text(pairs)
    files = ["--train", tmp_path / "train.tsv", "--test", tmp_path / "train.tsv"]
    options = ["--epochs", 30, "--max-length", 12, "--beam", 2, "--prefix", "on "]
    options += ["--learning-rate", 0.02, "--layer-decay", 0.95]
    command = ["train", "seq2seq_transformer", "--from", folder, "--output", out, *files]
    code, _, error = run(*command, *options)
    assert code == 0, error
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["preprocessing"]["prefix"] == "on " and manifest["writing"]["beam"] == 2
    for kind in ("keras", "litert", "litert-int8"):
        code, printed, _ = run("predict", out, "the cat", "a dog", "--with", kind)
        assert code == 0 and printed.splitlines() == ["a dog", "the cat"]
    code, printed, _ = run("evaluate", out, "--file", tmp_path / "train.tsv")
    assert code == 0 and "bleu" in printed
    assert run("export", out, "--batch-size", 1, "--sequence-length", 12)[0] == 0


def test_commands_for_a_masked_language_model(run, tmp_path):
    folder, out = make_bert(tmp_path / "bert"), tmp_path / "out"
    (tmp_path / "train.txt").write_text(TEXT * 20)
    files = ["--train", tmp_path / "train.txt"]
    options = ["--epochs", 2, "--steps", 4, "--freeze", 1, "--max-length", 10]
    command = ["train", "masked_language_model", "--from", folder, "--output", out, *files]
    code, _, error = run(*command, *options)
    assert code == 0, error
    for kind in ("keras", "litert"):
        code, printed, _ = run("predict", out, "the [MASK] sat", "--top", 2, "--with", kind)
        assert code == 0 and len(printed.splitlines()) == 2
    code, printed, _ = run("evaluate", out, "--file", tmp_path / "train.txt")
    assert code == 0 and "perplexity" in printed


@pytest.mark.sweep
def test_commands_for_a_picture_classifier(run, tmp_path):
    processing = {"size": {"height": 14, "width": 14}, "do_center_crop": True, "crop_size": 12}
    folder, out = make_pictures("vit", tmp_path / "vit", processing=processing), tmp_path / "out"
    pictures = draw_pictures(tmp_path / "pictures", count=20)
    command = ["train", "vision_transformer", "--from", folder, "--train", pictures]
    options = ["--epochs", 12, "--batch-size", 8, "--learning-rate", 0.01, "--layer-decay", 0.9]
    code, printed, error = run(*command, "--output", out, *options)
    assert code == 0, error
    assert "the last layer is new, for 2 labels instead of 5" in printed
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["resizing"] == {"interpolation": "bilinear", "size": [14, 14]}
    assert manifest["labels"] == ["lying", "standing"] and manifest["pretrained"]
    assert np.prod(manifest["image_size"]) == 144
    path = pictures / "standing" / "0.png"
    for kind in ("keras", "litert-int8"):
        code, printed, _ = run("predict", out, path, "--top", 1, "--with", kind)
        assert code == 0 and "standing" in printed
    code, printed, error = run("evaluate", out, "--file", pictures)
    assert code == 0 and "accuracy" in printed, error
    for options in (["--lora-rank", 2], ["--freeze", "all"], ["--freeze", 1]):
        words = [*command, "--output", tmp_path / "-".join(map(str, options)), "--epochs", 1]
        assert run(*words, *options)[0] == 0


@pytest.mark.sweep
def test_commands_for_whisper(run, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    texts = ["the cat.", "cat the", "the."]
    for k, sound in enumerate(draw_sounds()):
        soundfile.write(tmp_path / f"{k}.wav", sound, 16000, subtype="FLOAT")
    lines = [f"{k}.wav\t{text}\n" for k, text in enumerate(texts)]
    for part, count in {"train": 8, "test": 1}.items():
        (tmp_path / f"{part}.tsv").write_text("".join(lines * count))
    out, folder = tmp_path / "out", FOLDER / "whisper-texts"
    files = ["--train", tmp_path / "train.tsv", "--dev", tmp_path / "test.tsv"]
    files += ["--test", tmp_path / "test.tsv"]
    command = ["train", "speech_to_text", "--from", folder, "--output", out, *files]
    options = ["--language", "german", "--epochs", 2, "--batch-size", 6, "--learning-rate", 0.01]
    code, _, error = run(*command, *options)
    assert code == 0, error
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["preprocessing"]["language"] == "de" and manifest["pretrained"]
    sounds = [tmp_path / f"{k}.wav" for k in range(3)]
    written = []
    for kind in ("keras", "saved_model", "litert"):
        code, printed, error = run("predict", out, *sounds, "--with", kind, "--json")
        assert code == 0, error
        written.append([json.loads(line)["prediction"] for line in printed.splitlines()])
    assert len(written[0]) == 3 and written[1:] == written[:1] * 2
    code, printed, _ = run("predict", out, sounds[0], "--task", "translate", "--language", "en")
    assert code == 0
    code, _, error = run("predict", out, sounds[0], "--task", "translate", "--with", "litert")
    assert code == 2 and "are fixed in an exported file" in error
    code, _, error = run("train", "speech_to_text", "--from", out, "--language", "de", *files,
                         "--output", tmp_path / "x")  # fmt: skip
    assert code == 2 and "--language is fixed by the model of --from" in error
    code, _, error = run("train", "speech_to_text", "--task", "translate", *files,
                         "--output", tmp_path / "y")  # fmt: skip
    assert code == 2 and "task" in error
