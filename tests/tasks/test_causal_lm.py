"""`CausalLM`, and (slow) all commands on a small run."""

import json
import math

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli.show import show
from keras_attention.export.generation.token_choice import TokenChoice
from keras_attention.tasks import causal_lm
from keras_attention.tasks.run_state import KeepBest
from tests.cli.test_evaluate import printed
from tests.small_runs import SMALL

LINE = "the cat sat on the mat and saw the dog.\n"
CORPUS = ka.data.DataSet(str, LINE * 6, LINE, LINE * 2)
SMALLEST = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "max_length": 8, "steps": 2}


def make_task(corpus=CORPUS, run=None):
    task = ka.tasks.CausalLM.from_data(corpus, **SMALLEST)
    if run is not None:
        task.runner = run
    return task


class Run:
    """A model with uniform logits that writes given tokens."""

    def __init__(self, written=(), max_length=None):
        self.written, self.max_length = written, max_length

    def logits(self, ids):
        return np.zeros((*ids.shape, 32), "float32")

    def stream(self, ids, number, choice, *, end_token_id, seed):
        self.asked = number, choice
        yield from self.written[:number]


def test_preprocessor_batches_and_scores(tmp_path):
    task = make_task()
    assert task.metadata["maximum_length"] == 8
    assert task.metadata["task"] == "causal_language_model"
    assert task.metadata["writing"] == {
        "temperature": 0.8,
        "max_length": 32,
        "max_new_tokens": 16,
        "end_token_id": 3,
    }
    job = task.make_job(CORPUS.train, CORPUS.dev, task.recipe)
    assert job.lower_is_better and job.monitor == "perplexity"
    assert len(job.train) == 2 and len(job.dev) == 1
    assert task.draw_examples(CORPUS, tmp_path) == ["attention.png"]
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    batches = task.make_batches(LINE, "test")
    assert next(batches.as_numpy_iterator())[0].shape == (5, 8)


def test_causal_lm_refuses_training_texts_that_are_too_short():
    with pytest.raises(ValueError, match="nothing to train on"):
        make_task(ka.data.DataSet(str, "", LINE, ""))
    task = make_task(ka.data.DataSet(str, "cats", LINE, ""))
    with pytest.raises(ValueError, match="has 4 tokens, .* one window of 8: .* max_length="):
        task.make_job("cats", LINE, task.recipe)


def test_uniform_model_has_the_perplexity_of_its_vocabulary_size():
    task = make_task(ka.data.DataSet(str, LINE, LINE, ""), Run())
    assert task.compute_scores(LINE, "test") == pytest.approx(
        {"loss": math.log(32), "perplexity": 32, "bits_per_character": 5}, abs=1e-5
    )
    assert task.compute_scores("", "test") == {}


def test_show_prints_prompts_with_their_continuations(capsys):
    run = Run(make_task().preprocessor([" sat."])[0].tolist())
    task = make_task(run=run)
    show(task, ["the cat", "a dog"], {"temperature": 0.0})
    assert capsys.readouterr().out == "the cat sat.\n\na dog sat.\n"
    assert run.asked == (causal_lm.WRITTEN, TokenChoice(0.0))
    assert task.predict(["a"], max_new_tokens=2) == ["a s"]
    assert run.asked == (2, TokenChoice(0.8))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "'' has no token to continue"),
        (
            "cat",
            {"max_new_tokens": 9},
            "takes 8 tokens, and the prompt has 3, so that 6 can be written",
        ),
        ("cat", {"top_k": 2}, "top_k=2 is for sampling tokens, and temperature=0"),
    ],
)
def test_predict_refuses_empty_or_long_prompts_and_conflicting_options(text, options, message):
    task = make_task(run=Run(max_length=8))
    with pytest.raises(ValueError, match=message):
        task.predict([text], temperature=0.0, **options)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    make_task().save_to_preset(tmp_path / "lm")
    ka.data.SequencePreprocessor(ka.data.Characters.build(["other letters"])).save(tmp_path / "lm")
    task = ka.tasks.from_preset(tmp_path / "lm")
    with pytest.raises(ValueError, match="target.json has 12 tokens, and model.keras .* with 19"):
        task.predict(["the"])


def test_epoch_with_the_lowest_perplexity_is_saved(tmp_path):
    best = KeepBest(tmp_path / "best.weights.h5", "val_perplexity", lower_is_better=True)
    best.set_model(make_task().model)
    for epoch, value in enumerate([5.0, 3.0, 4.0]):
        best.on_epoch_end(epoch, {"val_perplexity": value, "val_loss": math.log(value)})
    assert (best.score, best.epoch) == (3.0, 2)
    assert KeepBest(best.path, "val_perplexity", lower_is_better=True).score == 3.0


@pytest.mark.slow
def test_a_temperature_of_zero_reaches_the_task(run, tmp_path):
    """Check that 0, which equals False, is not dropped. Otherwise the token would be random."""
    make_task().save_to_preset(tmp_path / "model")
    words = ["predict", tmp_path / "model", "the cat", "--max-new-tokens", 6]
    outs = {run(*words, "--temperature", 0)[1] for _ in range(3)}
    assert len(outs) == 1 and len({run(*words, "--seed", k)[1] for k in range(6)}) > 1


@pytest.mark.slow
def test_every_format_writes_the_same_continuation(run, tmp_path):
    for part, text in {"train": LINE * 20, "dev": LINE * 2, "test": LINE * 3}.items():
        (tmp_path / f"{part}.txt").write_text(text)
    files = [w for p in ("train", "dev", "test") for w in (f"--{p}", str(tmp_path / f"{p}.txt"))]
    words = ["--epochs", "3", "--steps", "20", "--max-length", "16", "--learning-rate", "0.02"]
    folder = tmp_path / "model"
    code, _, _ = run("train", "causal_language_model", *files, "--output", folder, *words, *SMALL)
    assert code == 0
    prompt = ["the cat", "--max-new-tokens", "20", "--seed", "3"]
    outputs = {k: run("predict", folder, *prompt, "--with", k) for k in ("keras", "saved_model")}
    outputs["litert"] = run("predict", folder, *prompt, "--with", "litert")
    assert len(set(outputs.values())) == 1 and outputs["keras"][1].startswith("the cat")
    scores = json.loads((folder / "scores.json").read_text("utf-8"))["test"]
    code, out, _ = run("evaluate", folder, "--file", tmp_path / "test.txt", "--with", "saved_model")
    assert code == 0 and printed(out, "loss") == pytest.approx(scores["keras"]["loss"], abs=1e-3)
    assert scores["litert"]["loss"] == pytest.approx(scores["keras"]["loss"], abs=1e-4)
