"""Texts with `[MASK]` to ids, logits to tokens, and the files of both."""

import json

import numpy as np
import pytest

from keras_attention.data import Characters, MaskedLMPreprocessor, Subwords

LINES = ["the cat sat on the mat", "the cats sit", "a cat, the mat", "unable table"] * 5
CHARACTERS = Characters.build(["abba"], mask_token=True)  # a is 5, b is 6


def subwords():
    pytest.importorskip("sentencepiece")
    return Subwords.build(LINES, 24, mask_token=True)


def test_ids_and_padding():
    preprocessor = MaskedLMPreprocessor(CHARACTERS, 4)
    ids = preprocessor(["a[MASK]?", "b"])
    assert ids.dtype == np.int32 and ids.tolist() == [[5, 4, 1], [6, 0, 0]]
    assert preprocessor(["b"], sequence_length=3).tolist() == [[6, 0, 0]]
    assert preprocessor([]).shape == (0, 0)


def test_candidates_are_the_most_probable_ordinary_tokens():
    preprocessor = MaskedLMPreprocessor(CHARACTERS)
    ids = preprocessor(["[MASK]a[MASK]", "ab"])
    logits = np.full((2, 3, 7), 9.0)  # padding, [MASK] and the like would win
    logits[..., 5], logits[..., 6] = 1.0, 0.0
    logits[0, 2, 6] = 3.0
    first, second = preprocessor.candidates(ids, logits, top=9)
    assert second == []
    assert [[c["token"] for c in mask] for mask in first] == [["a", "b"], ["b", "a"]]
    shares = [c["probability"] for c in first[0]]
    np.testing.assert_allclose(shares, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))])
    assert all(type(share) is float for share in shares)
    (best,) = preprocessor.candidates(ids, logits, top=1)[0][1]
    assert best["token"] == "b"
    json.dumps(first)


def test_names_of_subwords_are_berts():
    tokenizer = subwords()
    preprocessor = MaskedLMPreprocessor(tokenizer)
    entries = [tokenizer.pieces([i])[0] for i in range(len(tokenizer))]
    names = preprocessor.tokenizer.name_tokens(range(len(tokenizer)))
    assert names[:5] == entries[:5]
    for entry, name in zip(entries[5:], names[5:], strict=True):
        expected = (entry[1:] or " ") if entry[0] == "▁" else f"##{entry}"
        assert name == expected
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("make", [lambda: CHARACTERS, subwords], ids=["characters", "subwords"])
def test_files(tmp_path, make):
    preprocessor = MaskedLMPreprocessor(make(), maximum_length=9)
    preprocessor.save(tmp_path)
    config = json.loads((tmp_path / "manifest.json").read_text())["preprocessing"]
    assert config == preprocessor.config() and config["mask_token_id"] == 4
    loaded = MaskedLMPreprocessor.load(tmp_path)
    text = "a [MASK]"
    np.testing.assert_array_equal(loaded([text]), preprocessor([text]))
    assert loaded.maximum_length == 9 and loaded.config() == config


def test_damaged_files_are_refused(tmp_path):
    plain = Characters.build(["ab"])
    MaskedLMPreprocessor(CHARACTERS).save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["files"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    plain.save(tmp_path / "tokens.json")
    with pytest.raises(ValueError, match=r"has no \[MASK\]"):
        MaskedLMPreprocessor.load(tmp_path)
    manifest["preprocessing"]["tokens"]["file"] = "../x"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="plain name of a file"):
        MaskedLMPreprocessor.load(tmp_path)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda p: p(["", "a"]), "'' has no token"),
        (lambda p: p(["ab[MASK]ba"]), r"has 5 tokens, over this model's limit of 4: 'ab\[MASK"),
        (lambda p: p(["aba"], sequence_length=2), "has 3 tokens, more than sequence_length=2"),
        (lambda p: p("ab"), "is one text, expected a list"),
        (lambda p: p.candidates([[4]], np.zeros((1, 1, 7)), top=0), "top=0"),
        (lambda p: MaskedLMPreprocessor(Characters.build(["a"])), r"has no \[MASK\]: build it"),
        (lambda p: MaskedLMPreprocessor(CHARACTERS, 0), "maximum_length=0"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ValueError, match=message):
        run(MaskedLMPreprocessor(CHARACTERS, 4))
