"""Tokenizers of checkpoints: special tokens, segments, lengths, padding, decoding."""

import json
import shutil

import numpy as np
import pytest

import keras_attention as ka
from tests.pretrained.make_checkpoints import FOLDER

tokenizers = pytest.importorskip("tokenizers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", "##s"]


@pytest.fixture
def folder(tmp_path):
    """Copy a checkpoint of BERT, with a tokenizer of ten pieces."""
    shutil.copytree(FOLDER / "bert-masked", tmp_path / "bert")
    write_rules(tmp_path / "bert")
    return tmp_path / "bert"


def write_rules(folder):
    pieces = {word: i for i, word in enumerate(WORDS)}
    rules = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    rules.normalizer = tokenizers.normalizers.BertNormalizer()
    rules.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    rules.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    rules.decoder = tokenizers.decoders.WordPiece()
    rules.add_special_tokens(WORDS[:4])
    rules.save(str(folder / "tokenizer.json"))


def test_texts_become_the_inputs_of_the_model(folder):
    tokenizer = ka.pretrained.tokenizer(folder)
    inputs = tokenizer(["The cats sat", "mat"])
    np.testing.assert_array_equal(inputs["token_ids"], [[2, 4, 5, 9, 6, 3], [2, 8, 3, 0, 0, 0]])
    assert inputs["token_ids"].dtype == np.int32 and not inputs["segment_ids"].any()
    assert ka.pretrained.load(folder)(inputs).shape == (2, 6, 31)
    assert tokenizer.decode(inputs["token_ids"]) == ["the cats sat", "mat"]
    assert tokenizer.decode(inputs["token_ids"], special=True)[1] == "[CLS] mat [SEP]"
    assert len(tokenizer) == 10 and tokenizer.max_length == 16


@pytest.mark.parametrize("name", ["clip-texts", "siglip-texts", "siglip-texts-alone"])
def test_texts_of_a_tower_are_padded_with_a_token(name, tmp_path):
    """Pad to the full length, because SigLIP pools at the last position."""
    shutil.copytree(FOLDER / name, tmp_path / name)
    write_rules(tmp_path / name)
    tokenizer = ka.pretrained.tokenizer(tmp_path / name)
    rows = tokenizer.encode(["the cat", "mat"])
    padding = 30 if name == "clip-texts" else 1
    expected = [[2, 4, 5, 3] + 12 * [padding], [2, 8, 3] + 13 * [padding]]
    np.testing.assert_array_equal(tokenizer.stack(rows, tokenizer.max_length), expected)
    settings = tmp_path / name / "tokenizer_config.json"
    for token in ("[SEP]", {"content": "[SEP]"}):  # the tokenizer's files have precedence
        settings.write_text(json.dumps({"pad_token": token}))
        assert ka.pretrained.tokenizer(tmp_path / name).padding_id == 3
    settings.write_text(json.dumps({"pad_token": "[PAD]"}))
    assert ka.pretrained.tokenizer(tmp_path / name).padding_id == 0


def test_pairs_have_segments_and_their_longer_side_is_cut(folder):
    tokenizer = ka.pretrained.tokenizer(folder)
    inputs = tokenizer(["cat"], ["the mat"])
    np.testing.assert_array_equal(inputs["token_ids"], [[2, 5, 3, 4, 8, 3]])
    np.testing.assert_array_equal(inputs["segment_ids"], [[0, 0, 0, 1, 1, 1]])
    assert tokenizer.encode(["cat"], ["the mat on mat"], max_length=6) == [[2, 5, 3, 4, 8, 3]]
    assert tokenizer.encode(["the cat sat"], max_length=4) == [[2, 4, 5, 3]]
    assert tokenizer.encode(["the cat sat"]) == [
        [2, 4, 5, 6, 3]
    ]  # `max_length` of a call does not stay


def test_max_length_follows_the_files(folder):
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({"model_max_length": 5}))
    assert ka.pretrained.tokenizer(folder).max_length == 5
    settings.write_text(json.dumps({"model_max_length": 10**30}))
    assert ka.pretrained.tokenizer(folder).max_length == 16
    assert ka.pretrained.tokenizer(folder, max_length=3).max_length == 3
    settings.write_text("[]")
    with pytest.raises(ka.pretrained.CheckpointError, match="tokenizer_config.json is damaged"):
        ka.pretrained.tokenizer(folder)


@pytest.mark.slow
def test_texts_without_padding_id_must_have_equal_lengths(tmp_path):
    shutil.copytree(FOLDER / "gpt2", tmp_path / "gpt2")
    write_rules(tmp_path / "gpt2")
    tokenizer = ka.pretrained.tokenizer(tmp_path / "gpt2")
    assert tokenizer.padding_id is None
    with pytest.raises(ValueError, match="The strings differ in length, and this model has no id"):
        tokenizer(["cat", "the cat"])
    ids = tokenizer.encode(["cat", "the cat"])
    written = ka.generation.generate(ka.pretrained.load(tmp_path / "gpt2"), ids, 3)
    assert written.shape == (2, 3)


def test_the_text_tower_uses_the_tokenizer(tmp_path):
    shutil.copytree(FOLDER / "clip-texts", tmp_path / "clip")
    write_rules(tmp_path / "clip")
    tokenizer = ka.pretrained.tokenizer(tmp_path / "clip")
    model = ka.pretrained.load(tmp_path / "clip", task="text_encoder")
    assert tokenizer.padding_id == 30  # the end token is also the padding
    assert model(tokenizer(["The cats sat", "the cat sat on"])).shape == (2, 6)


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (["the cat"], {}, "expected a list of str"),
        ([["the"], ["cat", "sat"]], {}, "1 strings and 2 pairs"),
        ([["the"]], {"max_length": 2}, "max_length=2 leaves no room for text: give at least 3"),
    ],
)
def test_invalid_texts_are_refused(folder, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        ka.pretrained.tokenizer(folder)(*arguments, **options)


def test_tokenizer_refuses_missing_or_damaged_files(folder):
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ka.pretrained.CheckpointError, match="tokenizer.json is damaged"):
        ka.pretrained.tokenizer(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ka.pretrained.CheckpointError, match="holds no tokenizer.json"):
        ka.pretrained.tokenizer(folder)
