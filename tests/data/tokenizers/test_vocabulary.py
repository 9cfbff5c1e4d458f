import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Labels, Vocabulary

TEXT = "b a c a b a A d".split()


def test_order_is_by_count_then_by_letter():
    assert Vocabulary.build(TEXT).entries == ("<pad>", "<unk>", "a", "b", "A", "c", "d")


def test_rare_words_are_unknown():
    words = Vocabulary.build(TEXT, min_count=2)
    assert words.entries == ("<pad>", "<unk>", "a", "b") and len(words) == 4
    ids = words.ids(TEXT)
    assert ids.dtype == np.int32 and ids.tolist() == [3, 2, 1, 2, 3, 2, 1, 1]
    assert words.ids([]).shape == (0,)


def test_size_counts_padding_and_unknown():
    assert Vocabulary.build(TEXT, max_size=3).entries == ("<pad>", "<unk>", "a")


def test_lowercase():
    words = Vocabulary.build(["The", "THE", "İ"], lowercase=True)
    assert words.ids(["the", "The", "İ", "x"]).tolist() == [2, 2, 3, 1]


def test_tokens_that_look_like_padding_are_not_masked():
    words = Vocabulary.build(["<pad>", "<unk>", "", "a\nb", "a"])
    assert words.entries == ("<pad>", "<unk>", "a")
    assert words.ids(["<pad>", "<unk>", "", "a\nb"]).tolist() == [1, 1, 1, 1]


def test_files_keep_the_order_and_every_character(tmp_path):
    entries = ["é", "\u2028", " ", "\r", "\x85", "a b", "\t"]
    words = Vocabulary(("<pad>", "<unk>", *entries), lowercase=True)
    words.save(tmp_path / "words.txt")
    assert Vocabulary.load(tmp_path / "words.txt", lowercase=True) == words
    lines = (tmp_path / "words.txt").read_bytes().split(b"\n")
    assert [line.decode() for line in lines] == ["<pad>", "<unk>", *entries, ""]
    assert [p.name for p in tmp_path.iterdir()] == ["words.txt"]


def test_labels(tmp_path):
    labels = Labels(["O", "B-x"])
    labels.save(tmp_path / "labels.txt")
    assert (tmp_path / "labels.txt").read_text() == "O\nB-x\n"
    assert Labels.load(tmp_path / "labels.txt") == labels and len(labels) == 2
    assert labels.ids(("B-x", "O", "O")).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="The label 'B-y' is not among the labels: O, B-x"):
        labels.ids(["B-y"])


def test_labels_are_a_sequence():
    labels = Labels(["O", "B-x", "I-x"])
    assert list(labels) == ["O", "B-x", "I-x"] and list(reversed(labels)) == ["I-x", "B-x", "O"]
    assert labels[1] == "B-x" and labels[-1] == "I-x" and labels[np.int64(0)] == "O"
    assert labels[1:] == ("B-x", "I-x")
    assert "B-x" in labels and "B-y" not in labels and 1 not in labels
    assert labels.index("I-x") == 2
    with pytest.raises(ValueError, match="The label 'B-y' is not among the labels"):
        labels.index("B-y")
    with pytest.raises(IndexError):
        labels[3]
    assert Labels(labels) == labels


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="but this one with 'a', 'b'"):
        Vocabulary(["a", "b"])
    with pytest.raises(ValueError, match="Entries must differ: 'x' occurs twice"):
        Labels(["x", "y", "x"])
    with pytest.raises(ValueError, match=r"The entry 'a\\nb' cannot be a line"):
        Labels(["a\nb"])
    with pytest.raises(ValueError, match="The entry '' cannot be a line"):
        Labels([""])
    with pytest.raises(ValueError, match=r"max_size=1\): .* at least 2"):
        Vocabulary.build(TEXT, max_size=1)
    with pytest.raises(FileNotFoundError, match="There is no file .*gone.txt"):
        Labels.load(tmp_path / "gone.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="bytes.txt is not UTF-8"):
        Labels.load(tmp_path / "bytes.txt")


def test_split_words():
    split = ka.data.split_words
    assert split("The cat sat.") == ["The", "cat", "sat", "."]
    assert split('He said: "No!!" (twice)') == ["He", "said", ":", '"', "No", "!!", '"'] + [
        "(",
        "twice",
        ")",
    ]
    assert split("don't  a@b.org 3.5 état") == ["don't", "a@b.org", "3.5", "état"]
    assert split(" \n") == []


def test_string_lookup_gives_the_same_ids():
    words = Vocabulary.build("the cat and the dog".split())
    lookup = keras.layers.StringLookup(
        vocabulary=list(words.entries[2:]), mask_token="<pad>", oov_token="<unk>"
    )
    tokens = ["dog", "the", "cow", "<unk>"]
    assert words.ids(tokens).tolist() == np.asarray(lookup(tokens)).tolist()
    assert words.ids(["<pad>"]).tolist() == [1]  # a word of a text, which must not be masked
