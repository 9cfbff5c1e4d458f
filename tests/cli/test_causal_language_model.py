"""The task `causal_language_model`: its parts alone, and (slow) all commands on a small run."""

import json
import math

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import causal_language_model, recipes
from keras_attention.cli.fit import KeepBest
from tests.cli.conftest import SMALL
from tests.cli.test_evaluate import printed

SOURCE = {"dataset": "x", "label_column": None, "text_column": None}
LINE = "the cat sat on the mat and saw the dog.\n"
CORPUS = ka.data.Corpus(LINE * 6, LINE, LINE * 2)
KNOWN = {"writing": {"temperature": 0.8, "end_token_id": 3}, "maximum_length": 8}
ASKED = {"tokens": None, "temperature": 0.0, "top_k": None, "top_p": None, "seed": None}


def small_job(corpus=CORPUS, **options):
    options = {
        "maximum_length": 8,
        "steps": 2,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
    } | options
    recipe = recipes.choose_recipe("causal_language_model", options=options)
    return causal_language_model.make_job(corpus, recipe, SOURCE, {"notes": ()})


@pytest.fixture
def folder(tmp_path):
    ka.data.SequencePreprocessor(ka.data.Characters.build([LINE])).save(tmp_path)
    return tmp_path


class Run:
    """A model to which every token is as likely, and which writes what it is told to."""

    def __init__(self, written=(), max_length=None):
        self.written, self.max_length = written, max_length

    def logits(self, ids):
        return np.zeros((*ids.shape, 32), "float32")

    def stream(self, ids, number, sampler, *, end_token_id, seed):
        self.asked = number, sampler
        yield from self.written[:number]


def test_a_job(tmp_path):
    job = small_job()
    assert job.lower_is_better and job.monitor == "perplexity" and job.test == LINE * 2
    assert (
        job.metadata["maximum_length"] == 8 and job.metadata["task"] == causal_language_model.TASK
    )
    assert job.metadata["writing"] == {
        "temperature": 0.8,
        "max_length": 32,
        "max_new_tokens": 16,
        "end_token_id": 3,
    }
    assert len(job.train) == 2 and len(job.dev) == 1
    assert job.picture(job.model, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    job.sidecars(tmp_path)
    batches, metrics = causal_language_model.make_batches(tmp_path, KNOWN, LINE, "test")
    assert next(batches.as_numpy_iterator())[0].shape == (5, 8)
    assert [metric().name for metric in metrics] == ["perplexity"]


def test_what_cannot_be_trained_on():
    with pytest.raises(ValueError, match="nothing to train on"):
        small_job(ka.data.Corpus("", LINE, ""))
    with pytest.raises(ValueError, match="has 4 tokens, .* one window of 8: .* --maximum-length"):
        small_job(ka.data.Corpus("cats", LINE, ""))


def test_scores_of_a_model_that_knows_nothing(folder):
    scores = causal_language_model.compute_scores(Run(), folder, KNOWN, LINE, "test")
    assert scores == pytest.approx(
        {"loss": math.log(32), "perplexity": 32, "bits_per_character": 5}, abs=1e-5
    )
    assert causal_language_model.compute_scores(Run(), folder, KNOWN, "", "test") == {}


def test_what_is_shown(folder, capsys):
    preprocessor = ka.data.SequencePreprocessor.load(folder)
    run = Run(preprocessor([" sat."])[0].tolist())
    causal_language_model.print_predictions(run, folder, KNOWN, ["the cat", "a dog"], ASKED)
    assert capsys.readouterr().out == "the cat sat.\n\na dog sat.\n"
    assert run.asked == (causal_language_model.WRITTEN, ka.generation.Greedy())
    causal_language_model.print_predictions(
        run, folder, KNOWN, ["a"], ASKED | {"temperature": None, "tokens": 2}
    )
    assert capsys.readouterr().out == "a s\n"
    assert run.asked == (2, ka.generation.Sample(0.8))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "'' holds nothing to go on from"),
        ("cat", {"tokens": 9}, "room for 8 tokens, and the prompt has 3, which leaves 6 to write"),
        ("cat", {"top_k": 2}, "--top-k is for drawing tokens, and --temperature 0"),
    ],
)
def test_what_cannot_be_gone_on_with(folder, text, options, message):
    with pytest.raises(ValueError, match=message):
        causal_language_model.print_predictions(
            Run(max_length=8), folder, KNOWN, [text], ASKED | options
        )


def test_the_lowest_perplexity_is_kept(tmp_path):
    best = KeepBest(tmp_path / "best.weights.h5", "val_perplexity", lower_is_better=True)
    best.set_model(small_job().model)
    for epoch, value in enumerate([5.0, 3.0, 4.0]):
        best.on_epoch_end(epoch, {"val_perplexity": value, "val_loss": math.log(value)})
    assert (best.score, best.epoch) == (3.0, 2)
    assert KeepBest(best.path, "val_perplexity", lower_is_better=True).score == 3.0


@pytest.mark.slow
def test_every_format_goes_on_alike(run, tmp_path):
    for part, text in {"train": LINE * 20, "dev": LINE * 2, "test": LINE * 3}.items():
        (tmp_path / f"{part}.txt").write_text(text)
    files = [w for p in ("train", "dev", "test") for w in (f"--{p}", str(tmp_path / f"{p}.txt"))]
    words = ["--epochs", "3", "--steps", "20", "--maximum-length", "16", "--learning-rate", "0.02"]
    folder = tmp_path / "model"
    code, _, _ = run(
        "train", causal_language_model.TASK, *files, "--output", folder, *words, *SMALL
    )
    assert code == 0
    prompt = ["the cat", "--tokens", "20", "--seed", "3"]
    told = {k: run("predict", folder, *prompt, "--with", k) for k in ("keras", "saved_model")}
    told["litert"] = run("predict", folder, *prompt, "--with", "litert")
    assert len(set(told.values())) == 1 and told["keras"][1].startswith("the cat")
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["test"]
    code, out, _ = run("evaluate", folder, "--file", tmp_path / "test.txt", "--with", "saved_model")
    assert code == 0 and printed(out, "loss") == pytest.approx(scores["keras"]["loss"], abs=1e-3)
    assert scores["litert"]["loss"] == pytest.approx(scores["keras"]["loss"], abs=1e-4)
