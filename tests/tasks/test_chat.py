"""Models of dialogues reply to their context, in Python and in the terminal."""

import io
import json
import random
import re
import sys

import pytest

import keras_attention as ka
from keras_attention.cli import main
from keras_attention.cli.sources import Source

CITIES = {"Rome": "Warm", "Oslo": "Cold", "Lima": "Dry", "Bern": "Wet"}
DIVERSITY = ["distinct_1", "distinct_2", "commonest_reply"]
LANGUAGE_MODEL_SCORES = ["loss", "perplexity", "bits_per_character", *DIVERSITY]
TINY = dict(num_layers=1, num_heads=2, hidden_dim=48, dropout=0.0)


def write_dialogues(path, count, seed=0):
    lines = (json.dumps({"turns": turns}) + "\n" for turns in make_dialogues(count, seed))
    path.write_text("".join(lines))
    return path


def make_dialogues(count, seed):
    """Make dialogues whose last reply depends on the first turn."""
    generator, dialogues = random.Random(seed), []
    for _ in range(count):
        city = generator.choice(list(CITIES))
        dialogues.append((f"I was in {city}.", "How was it?", f"{CITIES[city]} days."))
    return dialogues


@pytest.fixture(scope="module")
def new():
    data = ka.data.Dialogue.collect(make_dialogues(40, 0), make_dialogues(9, 1))
    pairs = ka.data.pair_dialogues(data, turns=2)
    return ka.tasks.Seq2SeqLM.from_data(pairs, vocabulary_size=80, **TINY), pairs


@pytest.mark.sweep
def test_replies_need_the_context():
    data = ka.data.Dialogue.collect(make_dialogues(200, 0), make_dialogues(24, 1))
    pairs = ka.data.pair_dialogues(data, turns=2)
    task = ka.tasks.Seq2SeqLM.from_data(pairs, vocabulary_size=80, **TINY)
    options = dict(epochs=20, batch_size=16, learning_rate=5e-3, label_smoothing=0.0)
    task.fit(pairs, verbose=False, **options)
    for city, weather in CITIES.items():
        turns = ["Before.", f"I was in {city}.", "How was it?"]
        assert task.reply(turns, temperature=0.1, seed=0) == f"{weather} days."
    scores = task.evaluate(pairs.dev)
    sources = [pair.source for pair in pairs.dev]
    random.Random(0).shuffle(sources)
    other = [ka.data.Pair(x, pair.target) for x, pair in zip(sources, pairs.dev, strict=True)]
    assert task.evaluate(other)["perplexity"] > 1.5 * scores["perplexity"]


@pytest.mark.slow
def test_exported_files_have_the_scores_of_the_model(new, tmp_path, monkeypatch, capsys):
    task, pairs = new
    scores = task.evaluate(pairs.dev)
    assert list(scores) == ["perplexity", *DIVERSITY]
    assert task.lower_is_better and scores["perplexity"] > 1 >= scores["distinct_2"]
    task.save_to_preset(tmp_path / "bot")
    again = ka.tasks.from_preset(tmp_path / "bot")
    assert (again.turns, again.score, again.converses) == (2, "perplexity", True)
    assert again.reply(["I was in Rome."], seed=3) == task.reply(["I was in Rome."], seed=3)
    long = ["one", "two", "I was in Rome."]
    assert task.reply(long, seed=3) == task.reply(long[1:], seed=3)
    converse(tmp_path / "bot", "keras", monkeypatch, capsys)


def converse(folder, kind, monkeypatch, capsys):
    """Run the command with two turns. Each gets a reply on its own line."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("I was in Rome.\n\nReally?\n"))
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["predict", str(folder), "--chat", "--with", kind])
    lines = capsys.readouterr().out.splitlines()
    assert stop.value.code == 0 and len(lines) == 2 and all(lines)


def test_reply_refuses_invalid_turns_and_tasks_without_dialogues(new):
    task, _ = new
    with pytest.raises(ValueError, match="expected a list of turns"):
        task.reply("Hi")
    with pytest.raises(ValueError, match="none of them empty"):
        task.reply(["Hi", " "])
    other = ka.tasks.Seq2SeqLM.from_data([("a", "b")] * 9, tokens="characters", **TINY)
    with pytest.raises(ValueError, match="was not trained on dialogues"):
        other.reply(["Hi"])


@pytest.mark.slow
def test_language_model_replies_to_dialogues():
    data = ka.data.Dialogue.collect(make_dialogues(200, 0), dev_fraction=0)
    task = ka.tasks.CausalLM.from_data(ka.data.join_dialogues(data), max_length=96, **TINY)
    options = dict(epochs=4, steps=60, batch_size=8, learning_rate=0.01, verbose=False)
    task.fit(ka.data.join_dialogues(data).train, **options)
    assert task.reply(["I was in Oslo."], temperature=0) == "How was it?"
    assert task.reply(["I was in Oslo."], temperature=0, max_new_tokens=3) == "How"
    scores = task.evaluate(ka.data.join_dialogues(data).train[:2000])
    assert scores["perplexity"] < 2 and scores["commonest_reply"] > 0.2
    # a hundred replies of nine kinds, so that few words and pairs are distinct
    assert 0 < scores["distinct_1"] < scores["distinct_2"] < 0.2


@pytest.mark.slow
def test_saved_language_model_keeps_the_mark_of_dialogues(tmp_path):
    path = write_dialogues(tmp_path / "talk.jsonl", 30)
    read = Source(files={"train": path}).load("causal_language_model")
    assert "dialogues" in read.about and " <turn> How was it? <turn> " in read.train
    task = ka.tasks.CausalLM.from_data(read, max_length=32, **TINY)
    assert re.fullmatch(r"I was in \w+\. <turn>", task.find_example(read))
    assert list(task.evaluate(read.train)) == LANGUAGE_MODEL_SCORES
    assert "distinct_1" not in task.evaluate("How was it? " * 9)  # one turn
    options = dict(position=ka.positions.Learned(16))  # fits into one window
    model = ka.models.causal_language_model(len(task.preprocessor.target), **options, **TINY)
    short = ka.tasks.CausalLM(model, task.preprocessor, maximum_length=16, converses=True)
    assert list(short.evaluate(read.train[:300])) == LANGUAGE_MODEL_SCORES
    task.save_to_preset(tmp_path / "talks")
    assert ka.tasks.from_preset(tmp_path / "talks").converses

    (tmp_path / "play.txt").write_text(read.train)
    plain = Source(files={"train": tmp_path / "play.txt"}).load("causal_language_model")
    other = ka.tasks.CausalLM.from_data(plain, max_length=32, **TINY)
    other.save_to_preset(tmp_path / "goes_on")
    again = ka.tasks.from_preset(tmp_path / "goes_on")
    with pytest.raises(ValueError, match="is not marked as a model of dialogues"):
        again.reply(["I was in Oslo."])
    assert "distinct_1" not in again.evaluate(read.train)
    again.fit(read, epochs=1, steps=1, verbose=False)
    assert again.converses


def test_language_model_refuses_json_lines_without_dialogues(tmp_path):
    talk = write_dialogues(tmp_path / "talk.jsonl", 3)
    texts = {name: tmp_path / name for name in ("a.txt", "b.jsonl", "c.jsonl", "d.yml")}
    texts["a.txt"].write_text("A play.")
    texts["b.jsonl"].write_text('{"text": "A play."}')
    texts["c.jsonl"].write_text('{"turns": [')
    texts["d.yml"].write_text("title: a play")
    for wrong, files in (
        ("a.txt", {"train": talk, "dev": texts["a.txt"]}),
        ("b.jsonl", {"train": texts["b.jsonl"]}),
        ("c.jsonl", {"train": texts["c.jsonl"]}),
    ):
        with pytest.raises(ValueError, match=f"{wrong} has no dialogues: expected JSON lines"):
            Source(files=files).load("causal_language_model")
    play = Source(files={"train": texts["d.yml"]}).load("causal_language_model")
    assert play.train.startswith("title")


def test_files_are_read_with_the_turns_of_the_model(new, tmp_path):
    source = Source(files={"test": write_dialogues(tmp_path / "talk.jsonl", 3)})

    def read(source):
        return source.load("seq2seq_transformer")

    task, _ = new  # trained with 2 turns
    assert read(source).about["turns"] == 3
    assert read(source.like(task.metadata)).about["turns"] == 2
    assert read(Source.from_manifest(task.metadata, files=source.files)).about["turns"] == 2
    other = Source(files=source.files, turns=1)
    assert {pair.source.count("<turn>") for pair in read(other).test} == {0}
    assert other.entries["turns"] == 1  # so that no run is resumed with another number
    other.check_options("seq2seq_transformer")
    with pytest.raises(ValueError, match="--turns 1 is fixed by the model"):
        other.like(task.metadata)
    with pytest.raises(ValueError, match="--turns 1 does not apply to running text"):
        other.check_options("causal_language_model")


@pytest.mark.sweep
def test_commands_train_evaluate_and_predict(tmp_path, monkeypatch, capsys):
    files = []
    for seed, (part, count) in enumerate([("train", 48), ("dev", 4), ("test", 4)]):
        path = write_dialogues(tmp_path / f"{part}.jsonl", count, seed)
        files += [f"--{part}", str(path)]
    folder = tmp_path / "bot"
    options = ["--epochs", "8", "--learning-rate", "0.02", "--batch-size", "8", "--beam", "1"]
    options += ["--vocabulary-size", "80", "--max-length", "32"]
    options += ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "seq2seq_transformer", *files, "--output", str(folder), *options])
    assert stop.value.code == 0
    assert "keras-attention predict . --chat\n" in (folder / "README.md").read_text()
    scores = json.loads((folder / "scores.json").read_text())["test"]
    assert scores["keras"]["perplexity"] < 10 and scores["litert"]["distinct_1"] > 0
    for kind in ("keras", "litert"):
        converse(folder, kind, monkeypatch, capsys)
