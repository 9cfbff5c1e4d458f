"""`TextClassifier`, and (slow) all commands on a small run."""

import json
import random

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import main
from keras_attention.cli.show import show
from tests.cli.test_evaluate import printed
from tests.cli.test_train import FILES, names, read
from tests.grids import quick
from tests.small_runs import SMALL

POLARITY = "sentiment-sentence-polarity"  # the folder among the real data


def write_opinions(path, count, seed):
    """Write a CSV file of opinions with the columns `stars` and `said`."""
    generator = random.Random(seed)
    subjects = ["the film", "a dog", "this", "the big house"]
    phrases = {"positive": ["great", "good", "a joy"], "negative": ["bad", "dull", "a bore"]}
    with open(path, "w", encoding="utf-8") as file:
        print("stars,said", file=file)
        for k in range(count):
            label = ["positive", "negative"][k % 2]
            words = f"{generator.choice(subjects)} was {generator.choice(phrases[label])}"
            print(f'{label},"{words}, {generator.choice(["so", "and so"])} it was"', file=file)


@pytest.fixture(scope="module")
def opinions(tmp_path_factory):
    """Write a folder with train.csv, dev.csv and test.csv."""
    folder = tmp_path_factory.mktemp("opinions")
    for seed, (part, count) in enumerate([("train", 96), ("dev", 20), ("test", 20)]):
        write_opinions(folder / f"{part}.csv", count, seed)
    return folder


@pytest.fixture(scope="module")
def classifier(opinions, tmp_path_factory):
    """Train a small text classifier with `train`, and return its folder."""
    folder = tmp_path_factory.mktemp("models") / "classifier"
    files = [word for p in ("train", "dev", "test") for word in (f"--{p}", f"{opinions}/{p}.csv")]
    columns = ["--label-column", "stars", "--text-column", "said"]
    options = ["--epochs", "3", "--learning-rate", "0.02", "--batch-size", "8", *SMALL]
    with pytest.raises(SystemExit) as stop:
        main(["train", "text_classifier", *files, *columns, "--output", str(folder), *options])
    assert stop.value.code == 0
    return folder


def make_task(texts, pooling="mean"):
    options = {"max_length": 9, "hidden_dim": 8, "num_heads": 2, "pooling": pooling}
    return ka.tasks.TextClassifier.from_data(texts, **options)


TEXTS = ka.data.Text.collect(
    [("very good , a joy from here to there", "a"), ("bad " * 12, "b")] * 2,
    test=[("so so", "a"), ("a joy and good , very very good", "b")],
    dev_fraction=0.25,
)


@pytest.mark.parametrize("pooling", quick(["attention", "cls"], "attention"))
def test_preprocessor_batches_and_scores(pooling, tmp_path):
    task = make_task(TEXTS, pooling)
    assert task.metadata["task"] == "text_classifier" and task.metadata["labels"] == ["a", "b"]
    assert task.describe_data(TEXTS) == ("only the first 9 words of 2 long examples are used",)
    job = task.make_job(TEXTS.train, TEXTS.dev, task.recipe)
    assert [len(part) for part in (job.train, job.dev)] == [1, 1] and job.monitor == "accuracy"
    assert task.draw_examples(TEXTS, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    batches = task.make_batches(TEXTS.test, "test")
    assert [labels.tolist() for _, labels in batches.as_numpy_iterator()] == [[0, 1]]
    assert task.make_batches([], "dev") is None


def test_show_prints_and_predict_returns_labels_with_probabilities(capsys):
    class Run:
        inputs = {"token_ids": "int32"}

        def __call__(self, inputs):
            short = (inputs["token_ids"] != 0).sum(axis=1, keepdims=True) == 3
            return {"logits": np.log(np.where(short, [[0.25, 0.75]], [[0.9, 0.1]]))}

    task = make_task(TEXTS)
    task.runner = Run()
    long = "more than there is room for " * 3
    show(task, ["a good joy", long], {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "b  75.00 %  a good joy"
    assert lines[1] == "a  90.00 %  " + long[:59] + "…"
    (results,) = task.predict(["a good joy"])
    assert results.label == "b" and results.probability == pytest.approx(0.75)
    ((first, second),) = task.predict(["a good joy"], top=2)
    assert (first.label, second.label) == ("b", "a") and second.probability == pytest.approx(0.25)
    texts = ["a good joy", long] * 40  # more than one batch
    assert [results.label for results in task.predict(texts)] == ["b", "a"] * 40
    with pytest.raises(ValueError, match="' ' .* no word"):
        show(task, [" "], {})
    with pytest.raises(ValueError, match="^Text 2: '' .* no word"):
        task.predict(["a good joy", ""])
    with pytest.raises(ValueError, match="is one text: pass a list"):
        task.predict("a good joy")
    with pytest.raises(ValueError, match="attention takes one text, not a list"):
        task.attention(["a joy"])
    for use in (task.evaluate, task.fit, ka.tasks.TextClassifier.from_data):
        with pytest.raises(ValueError, match="'test.csv' is a string or a path"):
            use("test.csv")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "{csv}"], "train.csv:1: no column 'text', the first row names stars, said"),
        (["--train", "{csv}", "--dev", "{conllu}"], "different formats, CoNLL-U and labeled text"),
        (["--train", "{conll}"], "x.conll is not a file of text: expected a name"),
        (
            ["--train", "{conllu}"],
            "sentences, which text_classifier does not take. Train a seq",
        ),
        (["--dev", "{csv}", "--label-column", "said", "--text-column", "said"], "nothing to train"),
        (["--train", "{empty}"], "has no folder in it: expected one for each label"),
        (["--dataset", "sentence_polarity", "--data-dir", "{empty}"], "that NLTK publishes"),
    ],
)
def test_bad_input_is_one_sentence(run, corpus, opinions, tmp_path, words, message):
    (tmp_path / "empty").mkdir()
    paths = dict(csv=opinions / "train.csv", conllu=corpus / "train.conllu")
    if "--data-dir" in words:
        (tmp_path / "empty" / "sentence_polarity.zip").write_bytes(b"something else")
    paths["conll"] = tmp_path / "x.conll"
    paths["conll"].write_text("Ada\tB-name\n", "utf-8")
    words = [word.format(**paths, empty=tmp_path / "empty") for word in words]
    code, out, err = run("train", "text_classifier", "--output", tmp_path / "output", *words)
    assert code == 2 and message in err and err.count("\n") == 1
    assert not (tmp_path / "output").exists()


@pytest.mark.slow
def test_train_command_learns_and_writes_all_files(classifier):
    assert names(classifier) == FILES | {"words.txt"}
    scores = read(classifier, "scores.json")
    assert scores["test"]["keras"]["accuracy"] > 0.9
    assert scores["test"]["litert"] == scores["test"]["keras"]
    manifest = read(classifier, "manifest.json")
    assert manifest["task"] == "text_classifier" and manifest["labels"] == ["negative", "positive"]
    assert manifest["text_column"] == "said" and manifest["label_column"] == "stars"
    assert manifest["preprocessing"]["maximum_length"] == 256
    assert "96 train texts" in (classifier / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["keras", "saved_model", "litert", "litert-int8"])
def test_every_format_predicts_the_same_probabilities(run, classifier, kind):
    code, out, err = run("predict", classifier, "A great film!", "bad, bad", "--with", kind)
    assert (code, err) == (0, "")
    rows = [line.split(maxsplit=3) for line in out.splitlines()]
    assert [row[0] for row in rows] == ["positive", "negative"]
    assert all(50 <= float(row[1]) <= 100 and row[2] == "%" for row in rows)
    assert [row[3] for row in rows] == ["A great film!", "bad, bad"]


@pytest.mark.sweep
def test_accuracy_on_sentence_polarity(run, data_root, tmp_path):
    """Train by the recipe. A CNN (Kim, 2014, CNN-rand) reaches 76.1 %."""
    words = ["--dataset", "sentence_polarity", "--data-dir", data_root / POLARITY]
    if not (data_root / POLARITY).is_dir():
        pytest.skip(f"no {POLARITY} among the real data")
    code, _, err = run("train", "text_classifier", *words, "--output", tmp_path / "polarity")
    assert (code, err) == (0, "")
    scores = read(tmp_path / "polarity", "scores.json")["test"]
    assert scores["keras"]["accuracy"] >= 0.74
    assert scores["litert-int8"]["accuracy"] >= scores["keras"]["accuracy"] - 0.01
    assert "CC BY 4.0" in (tmp_path / "polarity" / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_evaluate_uses_the_columns_of_the_training(run, classifier, opinions):
    code, out, _ = run("evaluate", classifier, "--file", opinions / "test.csv")
    score = json.loads((classifier / "scores.json").read_text("utf-8"))["test"]["keras"]
    assert code == 0 and printed(out, "accuracy") == pytest.approx(
        100 * score["accuracy"], abs=0.005
    )


@pytest.mark.slow
def test_fixed_length_export_is_calibrated_on_texts(run, classifier, opinions, tmp_path):
    words = ["--quantization", "int8", "--file", opinions / "dev.csv", "--sequence-length", 12]
    path = tmp_path / "small.tflite"
    code, _, err = run("export", classifier, *words, "--output", path)
    assert (code, err) == (0, "") and path.is_file()


def test_example_comes_from_the_data_and_repr_describes_the_task():
    good = "win a free prize now, call this number"
    data = ka.data.Text.collect([("ok", "ham"), (good, "spam")] * 4, dev_fraction=0)
    size = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16}
    task = ka.tasks.TextClassifier.from_data(data, **size)
    assert task.find_example(data) == good
    phrases = f"TextClassifier(text_classifier: {task.model.name}, "
    assert repr(task) == f"{phrases}{task.model.count_params():,} parameters, 2 labels)"
