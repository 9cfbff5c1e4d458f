"""Dialogues: read from JSON lines and YAML, as pairs of context and reply, and as running text."""

import gzip
import json

import pytest

import keras_attention as ka

TALK = ("Hi!", "Hello.", "How are you?", "Fine.")


def write_lines(path, *dialogues):
    path.write_text("".join(json.dumps({"turns": turns}) + "\n" for turns in dialogues))
    return path


def test_files_are_read(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", TALK, ("A  b ", "c"))
    assert ka.data.read_dialogues(path) == [TALK, ("A b", "c")]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    data = ka.data.from_dialogue_files(test=tmp_path / "a.jsonl.gz", train=path, dev_fraction=0.5)
    assert data.test == [TALK, ("A b", "c")]
    assert repr(data) == "Dialogues(train=1, dev=1, test=2 dialogues)"
    (tmp_path / "a.yml").write_text(
        "categories:\n- AI\nconversations:\n- - What is two?\n  - 2\n- - Alone\n"
    )
    assert ka.data.read_dialogues(tmp_path / "a.yml") == [("What is two?", "2")]


def test_pairs_have_the_last_turns_and_the_reply():
    pairs = ka.data.Dialogues.from_lists([TALK], dev_fraction=0).pairs(turns=2)
    assert pairs.turns == 2 and pairs.dev == pairs.test == []
    assert pairs.train == [
        ("Hi!", "Hello."),
        ("Hi! <turn> Hello.", "How are you?"),
        ("Hello. <turn> How are you?", "Fine."),
    ]


def test_what_is_said_has_no_separator():
    data = ka.data.Dialogues.from_lists([("a <turn> b", "c")], dev_fraction=0)
    assert data.train == [("a b", "c")]
    assert data.corpus.train == "a b <turn> c <turn> "


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", ":1: no JSON"),
        ('{"turns": "a"}', ":1: expected an object with turns"),
        ('{"turns": ["a"]}', r":1: .'a'. is no dialogue: expected two turns"),
        ('{"turns": ["a", " "]}', ":1: .* none of them empty"),
        ('{"turns": ["a", 3]}', ":1: .* is no dialogue: expected a list of its turns"),
        ("", "holds no dialogue"),
    ],
)
def test_broken_lines(text, message, tmp_path):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(ValueError, match=f"a.jsonl.*{message}"):
        ka.data.read_dialogues(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "text, message",
    [
        ("a: [", "is not valid YAML"),
        ("a: 1", "expected conversations"),
        ("conversations:\n- 3", "conversation 1 is 3: expected a list"),
        ("conversations:\n- - [a]\n  - b", "conversation 1 is a list"),
        ("conversations: []", "holds no dialogue"),
        ("[" * 5000, "is not valid YAML"),
    ],
)
def test_broken_yaml(text, message, tmp_path):
    (tmp_path / "a.yml").write_text(text)
    with pytest.raises(ValueError, match=f"a.yml.*{message}"):
        ka.data.read_dialogues(tmp_path / "a.yml")


def test_other_files(tmp_path):
    with pytest.raises(ValueError, match="a.txt is no file of dialogues"):
        ka.data.read_dialogues(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="No dialogues given"):
        ka.data.Dialogues.from_lists()


def test_the_data_of_people(data_root):
    dev = ka.data.read_dialogues(data_root / "dialogue-self-dialogue" / "dev.jsonl.gz")
    assert (len(dev), sum(map(len, dev))) == (1146, 17786)
