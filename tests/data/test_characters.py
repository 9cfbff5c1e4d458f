import json

import numpy as np
import pytest

from keras_attention.data import Characters

TEXTS = ["abba", "a\nb ", "Ü"]


def test_entries_are_by_count_then_by_letter():
    characters = Characters.build(TEXTS)
    special = ("<pad>", "<unk>", "<begin>", "<end>")
    assert characters.entries == (*special, "a", "b", "\n", " ", "Ü") and len(characters) == 9
    assert Characters.build(TEXTS, max_size=5).entries == (*special, "a")
    assert Characters.build([]).entries == special


def test_back_and_forth():
    characters = Characters.build(TEXTS)
    ids = characters.encode(["b a", "", "xÜ"])
    assert [row.tolist() for row in ids] == [[5, 7, 4], [], [1, 8]]
    assert {row.dtype.name for row in ids} == {"int32"}
    assert characters.decode(ids) == ["b a", "", "\ufffdÜ"] and characters.encode([]) == []


def test_decoding_stops_at_the_end():
    characters = Characters.build(TEXTS)
    rows = np.array([[2, 4, 5, 3, 4], [0, 0, 2, 4, 5], [3, 4, 4, 4, 4], [4, 5, 0, 0, 0]])
    assert characters.decode(rows) == ["ab", "ab", "", "ab"]
    assert characters.decode(np.array([[4, 5]], "uint8")) == ["ab"] == characters.decode([[4, 5]])


def test_every_character_is_kept_in_the_file(tmp_path):
    characters = Characters.build(["\n\r\u2028\x85\t\"'\\ \x00é𝄞"])
    characters.save(tmp_path / "characters.json")
    assert Characters.load(tmp_path / "characters.json") == characters
    entries = json.loads((tmp_path / "characters.json").read_text("utf-8"))
    assert tuple(entries) == characters.entries
    assert [path.name for path in tmp_path.iterdir()] == ["characters.json"]


def test_errors(tmp_path):
    characters = Characters.build(TEXTS)
    with pytest.raises(ValueError, match="Characters.encode: 'ab' is one text, expected a list"):
        characters.encode("ab")
    with pytest.raises(ValueError, match="Characters.build: 'ab' is one text"):
        Characters.build("ab")
    with pytest.raises(ValueError, match="There is no id 9: the vocabulary has ids from 0 to 8"):
        characters.decode([[4, 9]])
    with pytest.raises(ValueError, match="There is no id -1"):
        characters.decode([[-1]])
    with pytest.raises(ValueError, match=r"Ids of shape \(\) and dtype int64: expected a list"):
        characters.decode([4, 5])
    with pytest.raises(ValueError, match=r"dtype float64: expected a list of int for each"):
        characters.decode([[0.5]])
    with pytest.raises(ValueError, match="begin with <pad>, .* these begin with 'a', 'b'"):
        Characters(["a", "b"])
    with pytest.raises(ValueError, match="'ab' is not one character"):
        Characters([*characters.entries, "ab"])
    with pytest.raises(ValueError, match="'a' is there more than once"):
        Characters([*characters.entries, "a"])
    with pytest.raises(ValueError, match=r"max_size=3\): .* at least 4"):
        Characters.build(TEXTS, max_size=3)
    with pytest.raises(FileNotFoundError, match="There is no file .*gone.json"):
        Characters.load(tmp_path / "gone.json")
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(ValueError, match="wrong.json holds no list of characters"):
        Characters.load(tmp_path / "wrong.json")
    (tmp_path / "broken.json").write_text("[")
    with pytest.raises(ValueError, match="broken.json is not valid JSON"):
        Characters.load(tmp_path / "broken.json")
