"""The `export` and `inspect` commands."""

import json
import shutil

import pytest

import keras_attention as ka
from keras_attention.tasks.exporting import choose_name, name_shape


@pytest.fixture
def folder(tagger, tmp_path):
    return shutil.copytree(tagger, tmp_path / "tagger")


@pytest.mark.slow
def test_fixed_shape_file_is_exported_and_used(run, folder):
    words = ["--quantization", "int8_weights", "--batch-size", 1, "--sequence-length", 6]
    code, out, _ = run("export", folder, *words, "--compatible-with", "web")
    path = folder / "model.int8.1x6.tflite"
    assert code == 0 and "checks passed" in out and path.is_file()
    assert "- CompiledModel: ran on the CPU" in out and "- browser: not run. It fulfils" in out
    assert ka.export.inspect(path).signatures[0].inputs[0].shape[:2] == (1, 6)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert (
        manifest["labels"]
        and "model.tflite" in manifest["files"]
        and path.name in manifest["files"]
    )
    code, out, _ = run("predict", path, "the cat sat.")
    tags = [line.split()[1] for line in out.splitlines()]
    assert code == 0 and tags == ["DET", "NOUN", "VERB", "PUNCT"]
    code, _, err = run("predict", path, "the cat sat on a big red tree")
    assert code == 2 and "at most 6" in err


def test_full_int8_is_calibrated_on_real_sentences(run, folder, corpus):
    words = ["--quantization", "int8", "--file", corpus / "dev.conllu"]
    code, _, err = run("export", folder, *words, "--output", folder / "full.tflite")
    assert (code, err) == (0, "") and (folder / "full.tflite").is_file()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("litert", None, (None, None, True)), "model.tflite"),
        (("litert", "int8", (1, 128, True)), "model.full_int8.1x128.tflite"),
        (("litert", "float16", (None, 64, True)), "model.float16.nx64.tflite"),
        (("litert", "int8_weights", (1, None, False)), "model.int8.1.tflite"),
        (("litert", "int4_weights", (1, 64, True)), "model.int4.1x64.tflite"),
        (("saved_model", None, (None, None, False)), "saved_model"),
        (("saved_model", None, (1, None, True)), "saved_model_1xn"),
    ],
)
def test_default_names_of_exports(arguments, name):
    format, quantization, shape = arguments
    assert choose_name(format, quantization, name_shape(*shape)) == name


def test_bad_input_is_one_sentence(run, tagger, folder, tmp_path):
    before = sorted(folder.iterdir())
    (folder / "no.keras").write_text("no model")
    cases = [
        ((folder, "--quantization", "int8"), "pass labelled examples"),
        ((folder, "--format", "saved_model", "--quantization", "float16"), "is for LiteRT"),
        ((folder, "--output", folder / "model.bin"), "not a file name that ends in .tflite"),
        ((folder, "--format", "saved_model", "--compatible-with", "web"), "is for LiteRT"),
        ((folder, "--compatible-with", "gpu"), "Pass --batch-size and --sequence-length"),
        ((folder, "--compatible-with", "toaster"), "Invalid value for '--compatible-with'"),
        ((folder / "no.keras",), "no.keras is not a model"),
        ((tmp_path,), "has no model.keras"),
        ((folder, "--quantization", "int4"), "Invalid value for '--quantization'"),
    ]
    for words, message in cases:
        code, _, err = run("export", *words)
        assert code == 2 and message in err and err.count("\n") == 1, message
    (folder / "no.keras").unlink()
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.tflite"])
def test_inspect_shows_signatures_ops_and_size(run, tagger, name):
    code, out, _ = run("inspect", tagger / name)
    assert code == 0
    for part in ["token_ids", "character_ids", "int32", "(?, ?, 16)", "logits", "B", "ops ("]:
        assert part in out


@pytest.mark.slow
def test_inspect_of_a_folder_shows_every_file(run, classifier):
    code, out, _ = run("inspect", classifier)
    assert code == 0 and out.count("signature serving_default") == 4


def test_inspect_refuses_other_files(run, tmp_path, tagger):
    (tmp_path / "text.tflite").write_text("hello")
    for path, message in [
        (tmp_path / "text.tflite", "is not a model"),
        (tmp_path / "absent", "There is no file or folder"),
        (tmp_path, "is not a model"),
    ]:
        code, out, err = run("inspect", path)
        assert (code, out) == (2, "") and message in err
