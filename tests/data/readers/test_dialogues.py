"""Dialogues: read from JSON lines and YAML, as pairs of context and reply, and as running text."""

import gzip
import json

import pytest

import keras_attention as ka
from keras_attention.data.readers.dialogues import holds_dialogues

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
    assert repr(data) == "DataSet(Dialogue: train=1, dev=1, test=2)"
    (tmp_path / "a.yml").write_text(
        "categories:\n- AI\nconversations:\n- - What is two?\n  - 2\n- - Alone\n"
    )
    assert ka.data.read_dialogues(tmp_path / "a.yml") == [("What is two?", "2")]


def test_messages_are_read(tmp_path):
    """Many data sets of chats have this form. Only messages of both speakers are turns."""
    roles = ("system", "user", "assistant", "tool", "user", "assistant")
    contents = ("Be kind.", "Hi!", "Hello.", "3", "How are you?", "Fine.")
    messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": 1, "messages": messages}) + "\n")
    assert holds_dialogues(path)
    assert ka.data.read_dialogues(path) == [TALK]
    path.write_text('{"messages": "none"}\n')
    assert not holds_dialogues(path)


def test_pairs_have_the_last_turns_and_the_reply():
    pairs = ka.data.pair_dialogues(ka.data.Dialogue.collect([TALK], dev_fraction=0), turns=2)
    assert pairs.about["turns"] == 2 and pairs.dev == pairs.test == []
    assert pairs.train == [
        ("Hi!", "Hello."),
        ("Hi! <turn> Hello.", "How are you?"),
        ("Hello. <turn> How are you?", "Fine."),
    ]


def test_turn_separators_are_removed_from_utterances():
    data = ka.data.Dialogue.collect([("a <turn> b", "c")], dev_fraction=0)
    assert data.train == [("a b", "c")]
    assert ka.data.join_dialogues(data).train == "a b <turn> c <turn> "


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", ":1: not JSON"),
        ('{"turns": "a"}', ":1: expected an object with turns"),
        ('{"turns": null, "messages": 3}', ":1: .* or messages with role and content"),
        ('{"messages": ["a"]}', ":1: messages has 'a': expected an object with role and"),
        ('{"messages": [{"content": "a"}]}', ":1: messages has an object: expected an object"),
        ('{"messages": [{"role": "user", "content": null}]}', ":1: messages has an object: expect"),
        ('{"messages": [{"role": "user", "content": "a"}]}', ":1: .* expected two or more turns"),
        ('{"turns": ["a"]}', r":1: .'a'. is not a dialogue: expected two or more turns"),
        ('{"turns": ["a", " "]}', ":1: .* with text in each"),
        ('{"turns": ["a", 3]}', ":1: .* is not a dialogue: expected a list of its turns"),
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
        ("[" * 1500, "is not valid YAML"),
    ],
)
def test_broken_yaml(text, message, tmp_path):
    (tmp_path / "a.yml").write_text(text)
    with pytest.raises(ValueError, match=f"a.yml.*{message}"):
        ka.data.read_dialogues(tmp_path / "a.yml")


def test_other_files(tmp_path):
    with pytest.raises(ValueError, match="a.txt is not a file of dialogues"):
        ka.data.read_dialogues(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="No Dialogue given"):
        ka.data.Dialogue.collect()


def test_examples_of_a_real_data_set(data_root):
    dev = ka.data.read_dialogues(data_root / "dialogue-self-dialogue" / "dev.jsonl.gz")
    assert (len(dev), sum(map(len, dev))) == (1146, 17786)
