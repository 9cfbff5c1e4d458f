"""Conversations: a model of dialogues replies to its context, in Python and in the terminal."""

import io
import json
import random
import sys

import pytest

import keras_attention as ka
from keras_attention.cli import main
from tests.small_runs import SMALL

CITIES = {"Rome": "warm", "Oslo": "cold", "Lima": "dry", "Bern": "wet"}
TINY = dict(num_layers=1, num_heads=2, hidden_dim=48, dropout=0.0)


def make_dialogues(count, seed):
    """Of which the last reply needs the first turn."""
    generator, dialogues = random.Random(seed), []
    for _ in range(count):
        city = generator.choice(list(CITIES))
        dialogues.append((f"I was in {city}.", "How was it?", "Guess!", f"It was {CITIES[city]}."))
    return dialogues


@pytest.fixture(scope="module")
def chatbot():
    data = ka.data.Dialogues.from_lists(make_dialogues(120, 0), make_dialogues(9, 1))
    task = ka.tasks.Seq2SeqLM.from_data(data.pairs(turns=3), vocabulary_size=80, beam=1, **TINY)
    task.fit(data.pairs(turns=3), epochs=12, batch_size=16, learning_rate=0.01, verbose=False)
    return task, data


def test_replies_need_the_context(chatbot, tmp_path):
    task, data = chatbot
    for city, weather in CITIES.items():
        turns = ["Before.", f"I was in {city}.", "How was it?", "Guess!"]
        assert task.reply(turns, temperature=0.1, seed=0) == f"It was {weather}."
    pairs = data.pairs(turns=3).dev
    scores = task.evaluate(pairs)
    assert list(scores) == ["perplexity", "distinct_1", "distinct_2", "commonest_reply"]
    assert scores["perplexity"] < 1.5 and task.lower_is_better
    shuffled = [ka.data.Pair(pairs[k - 3].source, pair.target) for k, pair in enumerate(pairs)]
    random.Random(0).shuffle(shuffled)
    other = [ka.data.Pair(a.source, b.target) for a, b in zip(shuffled, pairs, strict=True)]
    assert task.evaluate(other)["perplexity"] > 2 * scores["perplexity"]
    task.save_to_preset(tmp_path / "bot")
    again = ka.tasks.from_preset(tmp_path / "bot")
    assert (again.turns, again.score, again.converses) == (3, "perplexity", True)
    assert again.reply(["I was in Rome."], seed=3) == task.reply(["I was in Rome."], seed=3)


def test_what_is_no_dialogue_is_refused(chatbot):
    task, _ = chatbot
    with pytest.raises(ValueError, match="expected a list of turns"):
        task.reply("Hi")
    with pytest.raises(ValueError, match="none of them empty"):
        task.reply(["Hi", " "])
    other = ka.tasks.Seq2SeqLM.from_data([("a", "b")] * 9, tokens="characters", **TINY)
    with pytest.raises(ValueError, match="was not trained on dialogues"):
        other.reply(["Hi"])


def test_a_language_model_converses():
    data = ka.data.Dialogues.from_lists(make_dialogues(200, 0), dev_fraction=0)
    task = ka.tasks.CausalLM.from_data(data.corpus, max_length=96, **TINY)
    options = dict(epochs=4, steps=60, batch_size=8, learning_rate=0.01, verbose=False)
    task.fit(data.corpus.train, **options)
    assert task.reply(["I was in Oslo."], temperature=0) == "How was it?"
    assert task.reply(["I was in Oslo."], temperature=0, max_new_tokens=3) == "How"


@pytest.mark.slow
def test_commands(tmp_path, monkeypatch, capsys):
    files = []
    for seed, (part, count) in enumerate([("train", 120), ("dev", 12), ("test", 12)]):
        lines = (json.dumps({"turns": turns}) + "\n" for turns in make_dialogues(count, seed))
        (tmp_path / f"{part}.jsonl").write_text("".join(lines))
        files += [f"--{part}", str(tmp_path / f"{part}.jsonl")]
    folder = tmp_path / "bot"
    options = ["--epochs", "12", "--learning-rate", "0.01", "--batch-size", "16", "--beam", "1"]
    options += ["--vocabulary-size", "80", "--max-length", "16", *SMALL]
    with pytest.raises(SystemExit) as stop:
        main(["train", "seq2seq_transformer", *files, "--output", str(folder), *options])
    assert stop.value.code == 0
    scores = json.loads((folder / "scores.json").read_text())["test"]
    assert scores["keras"]["perplexity"] < 3 and scores["litert"]["distinct_1"] > 0
    for kind in ("keras", "litert"):
        monkeypatch.setattr(sys, "stdin", io.StringIO("I was in Rome.\n\nGuess!\n"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(["predict", str(folder), "--chat", "--with", kind])
        lines = capsys.readouterr().out.splitlines()
        assert stop.value.code == 0 and len(lines) == 2 and lines[0] == "How was it?"
