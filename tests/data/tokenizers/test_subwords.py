import io
import json
import sys

import numpy as np
import pytest

from keras_attention.data import Characters, Subwords, Words

TEXTS = ["abba", "a\nb ", "Ü"]


def test_entries_are_by_count_then_by_letter():
    characters = Characters.build(TEXTS)
    special = ("<pad>", "<unk>", "<begin>", "<end>")
    assert characters.entries == (*special, "a", "b", "\n", " ", "Ü") and len(characters) == 9
    assert Characters.build(TEXTS, max_size=5).entries == (*special, "a")
    assert Characters.build([]).entries == special


def test_characters_back_and_forth():
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


def test_errors_of_characters(tmp_path):
    characters = Characters.build(TEXTS)
    with pytest.raises(ValueError, match="Characters.encode: 'ab' is one text, expected a list"):
        characters.encode("ab")
    with pytest.raises(ValueError, match="Characters.build: 'ab' is one text"):
        Characters.build("ab")
    with pytest.raises(ValueError, match="The id 9 is not in the vocabulary, which has 0 to 8"):
        characters.decode([[4, 9]])
    with pytest.raises(ValueError, match="The id -1 is not"):
        characters.decode([[-1]])
    with pytest.raises(ValueError, match=r"Ids of shape \(\) and dtype int64: expected a list"):
        characters.decode([4, 5])
    with pytest.raises(ValueError, match=r"dtype float64: expected a list of int for each"):
        characters.decode([[0.5]])
    with pytest.raises(ValueError, match="begin with <pad>, .* these with 'a', 'b'"):
        Characters(["a", "b"])
    with pytest.raises(ValueError, match="'ab' is not one character"):
        Characters([*characters.entries, "ab"])
    with pytest.raises(ValueError, match="'a' occurs twice"):
        Characters([*characters.entries, "a"])
    with pytest.raises(ValueError, match=r"max_size=3\): .* at least 4"):
        Characters.build(TEXTS, max_size=3)
    with pytest.raises(FileNotFoundError, match="There is no file .*gone.json"):
        Characters.load(tmp_path / "gone.json")
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(ValueError, match="wrong.json is not a list of characters"):
        Characters.load(tmp_path / "wrong.json")
    (tmp_path / "broken.json").write_text("[")
    with pytest.raises(ValueError, match="broken.json is not valid JSON"):
        Characters.load(tmp_path / "broken.json")


sentencepiece = pytest.importorskip("sentencepiece")
LINES = [
    "Ein Mann fährt Fahrrad.",
    "Eine Frau fährt ein rotes Fahrrad.",
    "A man rides a bicycle.",
    "A woman rides a red bicycle.",
    "Zwei Frauen fahren mit roten Autos.",
    "Two women are driving red cars.",
    "Kein Auto fährt mit einem Mann.",
    "No car is driven with a man riding.",
    "Der Mann mit dem Auto und die Frau mit dem Rad.",
    "The man with the car and the woman with the bike.",
] * 3


@pytest.fixture(scope="module")
def subwords():
    return Subwords.build(LINES, vocabulary_size=48)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_subwords_back_and_forth(model_type):
    subwords = Subwords.build(LINES, vocabulary_size=48, model_type=model_type)
    ids = subwords.encode(LINES)
    assert len(subwords) == 48 and subwords.decode(ids) == LINES
    assert {row.dtype.name for row in ids} == {"int32"}
    assert all(4 <= row.min() and row.max() < 48 for row in ids)
    assert sum(map(len, ids)) < 0.9 * sum(map(len, LINES))  # pieces, not letters
    assert "".join(subwords.pieces(ids[0])) == "▁Ein▁Mann▁fährt▁Fahrrad."
    assert subwords == Subwords.build(LINES, vocabulary_size=48, model_type=model_type)


def test_special_ids(subwords):
    assert subwords.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = subwords.encode(["</s> <s>", "Yak", "", "<pad>"])
    # A special piece in a text is text: it neither ends nor pads.
    assert not {0, 2, 3} & {int(i) for row in ids for i in row} and ids[2].shape == (0,)
    assert 1 in ids[1].tolist()  # no Y in the lines
    mann = subwords.encode(["Ein Mann"])[0].tolist()
    assert subwords.decode([[2, *mann, 3, *mann], [0, 0, *mann, 0]]) == ["Ein Mann"] * 2
    assert subwords.decode(np.array([[3, 5]])) == [""] and subwords.decode([]) == []
    assert "⁇" in subwords.decode([[1]])[0]


def test_options():
    lower = Subwords.build(LINES, 40, lowercase=True)
    assert lower.decode(lower.encode(["EIN Mann"])) == ["ein mann"]
    assert lower.decode(lower.encode(["Ein  Mann"])) == ["ein mann"]
    bytes_too = Subwords.build(LINES, 300, byte_fallback=True, model_type="bpe")
    assert bytes_too.decode(bytes_too.encode(["Yak 山"])) == ["Yak 山"]


def test_long_texts_and_lines_are_learnt_from():
    long = " ".join(["blau"] * 2000)
    subwords = Subwords.build(["rot\n" + long], vocabulary_size=12, model_type="bpe")
    assert set("rotblau") <= set("".join(subwords.pieces(range(4, len(subwords)))))


def test_saved(tmp_path, subwords):
    subwords.save(tmp_path / "subwords.model")
    assert Subwords.load(tmp_path / "subwords.model") == subwords
    processor = sentencepiece.SentencePieceProcessor(str(tmp_path / "subwords.model"))
    assert processor.encode(LINES[0]) == subwords.encode(LINES[:1])[0].tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["subwords.model"]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_keras_hub_gives_the_same_ids(subwords):
    keras_hub = pytest.importorskip("keras_hub")
    tokenizer = subwords.keras_hub_tokenizer(sequence_length=16)
    rows = np.asarray(tokenizer(LINES[:4]))
    assert rows.shape == (4, 16)
    for row, ids in zip(rows, subwords.encode(LINES[:4]), strict=True):
        assert row[row != 0].tolist() == ids.tolist()[:16]
    import tensorflow as tf

    lines = tf.data.Dataset.from_tensor_slices(LINES)
    proto = keras_hub.tokenizers.compute_sentence_piece_proto(lines, vocabulary_size=48)
    theirs = Subwords(proto)
    assert theirs.decode(theirs.encode(LINES)) == LINES


def test_errors_of_subwords(tmp_path, monkeypatch, subwords):
    with pytest.raises(ValueError, match=r"vocabulary_size=4000 is too large .* \d+ at most"):
        Subwords.build(LINES, 4000)
    with pytest.raises(ValueError, match=r"vocabulary_size=9 is too small .* \d+ at least"):
        Subwords.build(LINES, 9)
    with pytest.raises(ValueError, match=r"vocabulary_size=2\): .* at least 5"):
        Subwords.build(LINES, 2)
    with pytest.raises(ValueError, match="texts is empty"):
        Subwords.build(["", " \n"], 40)
    with pytest.raises(ValueError, match="model_type='words': expected one of"):
        Subwords.build(LINES, 40, model_type="words")
    with pytest.raises(ValueError, match="'Ein Mann' is one text, expected a list of str"):
        subwords.encode("Ein Mann")
    with pytest.raises(ValueError, match="The id 48 is not .* 0 to 47"):
        subwords.decode([[48]])
    with pytest.raises(FileNotFoundError, match="There is no file .*gone.model"):
        Subwords.load(tmp_path / "gone.model")
    with pytest.raises(ValueError, match="b'junk'...: expected .*Subwords.load"):
        Subwords(b"junk")
    proto = io.BytesIO()
    options = dict(sentence_iterator=iter(LINES), vocab_size=40, minloglevel=2)
    sentencepiece.SentencePieceTrainer.train(model_writer=proto, **options)
    with pytest.raises(ValueError, match=r"are \[-1, 0, 1, 2\] in this SentencePiece model"):
        Subwords(proto.getvalue())
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(ImportError, match=r"Subwords needs SentencePiece .*install .*\[nlp\]"):
        Subwords.build(LINES, 40)


MASKED_LINES = ["the cat sat on the mat", "the cats sit", "a cat, the mat", "unable table"] * 5


def test_a_mask_is_one_character():
    characters = Characters.build(["a cat"], mask_token=True)
    assert characters.entries[4] == "[MASK]" and characters.mask_token_id == 4
    rows = characters.encode(["a[MASK]t", "[MASK][MASK]", "[mask]", ""])
    assert [len(row) for row in rows] == [3, 2, 6, 0] and rows[1].tolist() == [4, 4]
    assert characters.decode(rows[:2]) == ["a[MASK]t", "[MASK][MASK]"]
    assert len(Characters.build(["abc"], max_size=5, mask_token=True)) == 5
    plain = Characters.build(["a cat"])
    assert plain.mask_token_id is None and len(plain.encode(["[MASK]"])[0]) == 6
    with pytest.raises(ValueError, match=r"'\[MASK\]' is not one character"):
        Characters(("<pad>", "<unk>", "<begin>", "<end>", "a", "[MASK]"))


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_mask_is_one_subword(model_type):
    subwords = Subwords.build(MASKED_LINES, 24, model_type=model_type, mask_token=True)
    assert subwords.mask_token_id == 4 and len(subwords) == 24

    def pieces(text):
        return subwords.pieces(subwords.encode([text])[0])

    assert "[MASK]" not in pieces("the cat sat") and pieces("[MASK]") == ["[MASK]"]
    assert pieces("the [MASK] sat") == [*pieces("the"), "[MASK]", *pieces("sat")]
    assert pieces("the [MASK] [MASK]") == [*pieces("the"), "[MASK]", "[MASK]"]
    before, after = "".join(pieces("un[MASK]able")).split("[MASK]")
    assert (before, after) == ("▁un", "able")
    assert pieces("[MASK] cat")[0] == "[MASK]"
    assert subwords.decode(subwords.encode(["the cat"])) == ["the cat"]
    plain = Subwords.build(MASKED_LINES, 24, model_type=model_type)
    assert plain.mask_token_id is None and plain.pieces([4]) != ["[MASK]"]


def test_mask_token_is_saved(tmp_path):
    for tokenizer, name in (
        (Characters.build(MASKED_LINES, mask_token=True), "c.json"),
        (Subwords.build(MASKED_LINES, 24, mask_token=True), "s.model"),
    ):
        tokenizer.save(tmp_path / name)
        loaded = type(tokenizer).load(tmp_path / name)
        assert loaded.mask_token_id == 4
        np.testing.assert_array_equal(*(t.encode(["a [MASK]"])[0] for t in (tokenizer, loaded)))


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_vocabulary_shrinks_to_the_pieces_of_the_texts(model_type):
    with pytest.raises(ValueError, match=r"too large for this text: choose \d+ at most"):
        Subwords.build(LINES, 4000, model_type=model_type)
    subwords = Subwords.build(LINES, 4000, model_type=model_type, shrink=True)
    assert 40 < len(subwords) < 4000 and subwords.decode(subwords.encode(LINES[:1])) == LINES[:1]


OTHERS = ["Ich weiß es nicht.", "I do not know it. 5 €"] * 6


def test_pieces_of_other_texts_are_added(subwords, tmp_path):
    longer = subwords.extend(OTHERS, 60)
    size = len(subwords)
    assert len(longer) > size and longer.pieces(range(size)) == subwords.pieces(range(size))
    new = longer.pieces(range(size, len(longer)))
    assert len(set(new)) == len(new) and not set(new) & set(subwords.pieces(range(size)))
    rows, before = longer.encode(OTHERS), subwords.encode(OTHERS)
    assert sum(map(len, rows)) < sum(map(len, before))
    assert 1 in np.concatenate(before) and 1 not in np.concatenate(rows)  # € was unknown
    assert longer.decode(rows) == OTHERS
    assert longer.decode(longer.encode(LINES)) == LINES
    longer.save(tmp_path / "tokens.model")
    assert Subwords.load(tmp_path / "tokens.model") == longer
    assert len(longer.extend(OTHERS, 60)) == len(longer)


def test_pieces_are_spelled_with_known_ones(subwords):
    longer = subwords.extend(OTHERS, 60)
    new = longer.pieces(range(len(subwords), len(longer)))
    spelled = subwords.spell(new)
    for piece, ids in zip(new, spelled, strict=True):
        assert max(ids) < len(subwords)
        if 1 not in ids:
            assert "".join(subwords.pieces(ids)) == piece
    assert any(1 in ids for ids in spelled)
    old_pieces = subwords.pieces(range(4, len(subwords)))
    assert ["".join(subwords.pieces(ids)) for ids in subwords.spell(old_pieces)] == old_pieces


def test_extending_keeps_lowercase_and_refuses_byte_pairs():
    lower = Subwords.build(LINES, 48, lowercase=True).extend(OTHERS, 60)
    assert lower.decode(lower.encode(OTHERS[:1])) == ["ich weiß es nicht."]
    with pytest.raises(ValueError, match='needs a model of type "unigram"'):
        Subwords.build(LINES, 48, model_type="bpe").extend(OTHERS, 60)


def test_words(tmp_path):
    words = Words.build(["b a a", "a <unk> c"])
    assert words.entries[4:] == ("a", "b", "c") and len(words) == 7
    assert [row.tolist() for row in words.encode(["c  a\n", "", "z <pad>"])] == [[6, 4], [], [1, 1]]
    assert words.decode([[2, 4, 6, 3, 5], [1, 0, 5]]) == ["a c", "\ufffd b"]
    words.save(tmp_path / "words.json")
    assert Words.load(tmp_path / "words.json") == words
    assert Words.build(["a b b"], max_size=5).entries[4:] == ("b",)
    with pytest.raises(ValueError, match="'a b' is not one word"):
        Words((*words.entries, "a b"))
    with pytest.raises(ValueError, match="'a' occurs twice"):
        Words((*words.entries, "a"))
    with pytest.raises(ValueError, match="Words begin with <pad>"):
        Words(("a",))
