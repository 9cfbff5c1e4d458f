"""`train`: the files in the folder, and their contents."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.sources import Source
from tests.small_runs import SMALL, files, option

FILES = {
    "README.md",
    "attention.png",
    "confusion.png",
    "labels.txt",
    "manifest.json",
    "model.int8.tflite",
    "model.keras",
    "model.tflite",
    "saved_model",
    "scores.json",
}


def names(folder):
    return {path.name for path in folder.iterdir()}


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


def test_tagger_learns_and_its_folder_is_complete(tagger):
    assert names(tagger) == FILES | {"words.txt", "characters.txt"}
    scores = read(tagger, "scores.json")
    assert scores["test"]["keras"]["accuracy"] > 0.9
    assert scores["test"]["litert"] == scores["test"]["keras"]
    assert scores["test"]["litert-int8"]["accuracy"] > 0.9
    assert scores["classes"]["NOUN"]["f1"] > 0.9 and scores["confusion"]["NOUN"]["NOUN"] > 20
    assert [epoch["epoch"] for epoch in scores["history"]] == [1, 2, 3, 4]
    best = max(scores["history"], key=lambda epoch: (epoch["val_accuracy"], -epoch["val_loss"]))
    assert scores["best_epoch"] == best["epoch"]
    assert scores["dev"]["accuracy"] == pytest.approx(best["val_accuracy"], abs=1e-6)


@pytest.mark.slow
def test_image_classifier_learns_and_its_folder_is_complete(classifier):
    assert names(classifier) == FILES | {"attention_heads.png", "example.png"}
    scores = read(classifier, "scores.json")
    assert scores["test"]["litert"] == scores["test"]["keras"]
    assert scores["test"]["keras"]["accuracy"] > 0.3


@pytest.mark.slow
def test_manifest_has_all_that_an_app_needs(tagger, classifier):
    manifest = read(tagger, "manifest.json")
    assert manifest["task"] == "sequence_labeler" and manifest["maximum_length"] == 512
    assert manifest["labels"] == ["ADJ", "DET", "NOUN", "PUNCT", "VERB"]
    assert manifest["preprocessing"]["unknown_id"] == 1
    assert set(manifest["files"]) >= {"saved_model", "model.tflite", "model.int8.tflite"}
    assert str(tagger.parent) not in json.dumps(manifest)
    manifest = read(classifier, "manifest.json")
    assert manifest["image_size"] == [8, 8] and manifest["labels"] == list("0123456789")
    assert manifest["dataset"] == "digits"


@pytest.mark.slow
def test_the_card_names_data_command_seed_and_scores(tagger, classifier):
    card = (tagger / "README.md").read_text("utf-8")
    scores = read(tagger, "scores.json")
    for part in [
        "96 train sentences",
        "| seed | 0 |",
        f"{100 * scores['test']['litert-int8']['accuracy']:.2f} %",
        "![attention.png](attention.png)",
        "## Classes",
        "![Confusion matrix](confusion.png)",
        "licence: unknown",
        "tensorflow",
    ]:
        assert part in card
    assert str(tagger.parent) not in card
    assert "CC BY 4.0" in (classifier / "README.md").read_text("utf-8")


def test_the_saved_model_has_no_optimizer(tagger):
    import keras

    model = keras.saving.load_model(tagger / "model.keras")
    assert getattr(model, "optimizer", None) is None
    assert np.isfinite(model(ka.data.TaggerPreprocessor.load(tagger)([["the", "cat"]]))).all()


@pytest.mark.slow
def test_written_pictures_are_png_files(tagger, classifier):
    for path in [*tagger.glob("*.png"), *classifier.glob("*.png")]:
        assert path.read_bytes().startswith(b"\x89PNG")


BAD = [
    (["--dataset", "no_such_data"], "TFDS lacks the dataset 'no_such_data'"),
    ([], "Name a dataset with --dataset"),
    (["--train", "absent.conllu"], "There is no file or folder absent.conllu."),
    (["--train", "{broken}"], "broken.conllu:2: expected 10 columns"),
    (
        ["--train", "{table}"],
        "with labels, which sequence_labeler does not take. Train a text",
    ),
    (
        ["--train", "{train}", "--label-column", "nope"],
        "--label-column nope: expected one of lemma",
    ),
    (["--train", "{train}", "--dataset", "digits"], "but not both"),
    (["--train", "{train}", "--num-heads", "5"], "--num-heads 5 does not divide --hidden-dim 192"),
    (
        ["--train", "{train}", "--max-length", "3"],
        "have more than 3 tokens. Split them, or train with a larger --max-length.",
    ),
    (["--dev", "{train}"], "nothing to train on"),
    (["--train", "{train}", "--epochs", "0"], "Invalid value for '--epochs'"),
    (["--dataset", "digits"], "images, which sequence_labeler does not take"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(run, corpus, tmp_path, words, message):
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tDogs\tdog\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\n")
    output = tmp_path / "output"
    table = tmp_path / "table.csv"
    table.write_text("words,class\nx,y\n")
    paths = {"train": corpus / "train.conllu", "broken": broken, "table": table}
    words = [w.format(**paths) for w in words]
    code, out, err = run("train", "sequence_labeler", "--output", output, *words)
    assert code == 2 and message in err
    assert err.count("\n") == 1 and err.startswith("keras-attention: ") and "Traceback" not in err
    assert not output.exists()


def test_other_content_of_the_output_folder_is_left_alone(run, corpus, tagger, tmp_path):
    (tmp_path / "precious.txt").write_text("keep")
    words = ["train", "sequence_labeler", *files(corpus), *SMALL, "--output"]
    assert run(*words, tmp_path)[::2] == (
        2,
        f"keras-attention: {tmp_path} already contains other files: name another folder, or "
        "empty this one.\n",
    )
    assert names(tmp_path) == {"precious.txt"}
    code, _, err = run(*words, tagger)
    assert code == 2 and "already contains a finished model" in err


def test_images_are_refused_as_files_of_text(run, corpus, tmp_path):
    words = ["train", "vision_transformer", *option(corpus, "train"), "--output", tmp_path / "new"]
    code, _, err = run(*words)
    assert code == 2 and "is a file: expected a folder of class folders" in err
    assert err.count("\n") == 1 and not (tmp_path / "new").exists()


@pytest.mark.slow
def test_ctrl_c_after_training_keeps_the_weights(run, corpus, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    words = ["train", "sequence_labeler", *files(corpus), "--output", tmp_path / "new", *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr("keras_attention.cli.jobs.export_all", stop)
        code, _, err = run(*words, "--epochs", "1")
    assert code == 130 and "after the training, which is saved in" in err and err.count("\n") == 1
    code, out, err = run(*words, "--epochs", "1")
    assert (
        (code, err) == (0, "") and "resuming the unfinished run" in out and "epoch   1/1" not in out
    )


@pytest.mark.parametrize(
    ("task", "words", "message"),
    [
        (
            "sequence_labeler",
            ["--text-column", "x"],
            "--text-column x does not apply to files of",
        ),
        ("sequence_labeler", ["--label-column", ""], "--label-column: expected one of lemma"),
        (
            "causal_language_model",
            ["--label-column", "x"],
            "does not apply to running text: leave",
        ),
        (
            "seq2seq_transformer",
            ["--languages", "a-b", "--text-column", "x"],
            "apply to aligned files",
        ),
    ],
)
def test_options_without_effect_are_refused(run, corpus, tmp_path, task, words, message):
    words = ["train", task, "--output", tmp_path / "new", *option(corpus, "train"), *words]
    code, _, err = run(*words)
    assert code == 2 and message in err and not (tmp_path / "new").exists()


def test_columns_are_refused_for_named_data_sets(run, tmp_path):
    words = ["train", "vision_transformer", "--dataset", "digits", "--output", tmp_path / "new"]
    code, _, err = run(*words, "--label-column", "x")
    assert code == 2 and "--label-column x does not apply to --dataset digits" in err


def test_skipped_examples_are_printed_and_in_the_card(tmp_path, capsys):
    table = tmp_path / "train.csv"
    table.write_text("text,label\n" + "good,a\nbad,b\n" * 5 + ",a\n")
    source = Source(files={"train": table}, on_error="skip")
    source.check_options("text_classifier")
    data, skipped = source.load_and_report("text_classifier")
    assert len(data.train) + len(data.dev) == 10 and skipped == ["skipped examples: 1"]
    output = capsys.readouterr().out
    assert output == f"skipped examples: 1\n{table}:12: 'text' is empty.\n"
    with pytest.raises(ValueError, match="--on-error skip does not apply to running text"):
        source.check_options("masked_language_model")
