import json
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Sentence, TaggerPreprocessor
from tests.data.readers.test_tagged import TINY
from tests.stacks import embed_characters


@pytest.fixture
def preprocessor():
    train = [Sentence(("The", "cat"), ("DET", "NOUN")), Sentence(("the",), ("DET",))]
    return TaggerPreprocessor.build(train, lowercase=True, word_length=4)


def test_ids(preprocessor):
    assert preprocessor.tokenizer.entries == ("<pad>", "<unk>", "the", "cat")
    assert preprocessor.labels.names == ("DET", "NOUN")
    assert preprocessor.characters.entries == ("<pad>", "<unk>", "e", "h", "t", "T", "a", "c")
    inputs = preprocessor([["The", "cats"], ["cat"]])
    assert {x.dtype.name for x in inputs.values()} == {"int32"}
    assert inputs["token_ids"].tolist() == [[2, 1], [3, 0]]
    np.testing.assert_array_equal(
        inputs["character_ids"],
        [[[5, 3, 2, 0], [7, 6, 4, 1]], [[7, 6, 4, 0], [0, 0, 0, 0]]],
    )


@pytest.mark.parametrize("length, seen", [(4, "unly"), (5, "unkly"), (1, "u"), (7, "unkidly")])
def test_long_words_keep_their_beginning_and_end(length, seen):
    word = "unkindly"
    train = [Sentence((word,), ("ADV",))]
    preprocessor = TaggerPreprocessor.build(train, word_length=length)
    assert len(seen) == length
    ids = preprocessor.spell([word])[0]
    assert [preprocessor.characters.entries[i] for i in ids] == list(seen)


def test_model_may_read_only_words(preprocessor):
    words = TaggerPreprocessor(preprocessor.tokenizer, ["A", "B"])
    assert words([["cat", "the", "x"]]).tolist() == [[3, 2, 1]]
    assert words([["cat"]], sequence_length=3).tolist() == [[3, 0, 0]]
    assert words([]).shape == (0, 0)


def test_tags(preprocessor):
    logits = np.array([[[0, 1], [1, 0]], [[2, 1], [0, 9]]])
    assert preprocessor.tags(logits, [["a", "b"], ["c"]]) == [["NOUN", "DET"], ["DET"]]


@pytest.mark.parametrize("characters", [True, False])
def test_saved_with_the_model(tmp_path, characters):
    data = ka.data.from_conllu(TINY)
    preprocessor = TaggerPreprocessor.build(
        data.train, data.labels, characters=characters, lowercase=True, word_length=7
    )
    (tmp_path / "manifest.json").write_text('{"task": "tagging"}')
    preprocessor.save(tmp_path)
    files = {"words.txt", "labels.txt", "manifest.json"} | (
        {"characters.txt"} if characters else set()
    )
    assert {path.name for path in tmp_path.iterdir()} == files
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert set(manifest.pop("files")) == {p.name for p in tmp_path.glob("*.*")} - {"manifest.json"}
    assert manifest == {"task": "tagging", "preprocessing": preprocessor.config()}
    assert TaggerPreprocessor.load(tmp_path) == preprocessor
    del manifest["preprocessing"]["split"]  # as in earlier manifests
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert TaggerPreprocessor.load(tmp_path) == preprocessor


def test_saving_makes_the_folder(tmp_path, preprocessor):
    preprocessor.save(tmp_path / "a" / "b")
    assert TaggerPreprocessor.load(tmp_path / "a" / "b") == preprocessor


def test_words_become_ids_without_tensorflow(tmp_path, preprocessor, monkeypatch):
    preprocessor.save(tmp_path)
    for module in ("tensorflow", "tensorflow_datasets"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it is an error now
    loaded = TaggerPreprocessor.load(tmp_path)
    inputs = loaded([["cat"]])
    assert type(inputs["token_ids"]) is np.ndarray and inputs["token_ids"].tolist() == [[3]]
    with pytest.raises(ImportError, match=r"ka.data.batches needs TensorFlow .*\[keras\]"):
        ka.data.batches([Sentence(("a",), ("DET",))], loaded)


def test_feeds_the_model(preprocessor):
    data = ka.data.from_conllu(TINY)
    preprocessor = TaggerPreprocessor.build(data.train, data.labels, word_length=8)
    model = ka.models.sequence_labeler(
        len(preprocessor.tokenizer),
        len(preprocessor.labels),
        embedding=embed_characters(len(preprocessor.characters), preprocessor.word_length),
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=16,
    )
    sentences = [sentence.tokens for sentence in data.dev]
    tags = preprocessor.tags(model(preprocessor(sentences)), sentences)
    assert [len(t) for t in tags] == [len(s) for s in sentences]
    assert {tag for row in tags for tag in row} <= set(data.labels)


def test_errors(tmp_path, preprocessor):
    with pytest.raises(ValueError, match="'The cat' is a text, not a list of tokens"):
        preprocessor(["The cat"])
    with pytest.raises(ValueError, match="has 3 tokens, more than sequence_length=2"):
        preprocessor([["a", "b", "c"]], sequence_length=2)
    with pytest.raises(ValueError, match=r"word_length=0\): .* at least 1"):
        TaggerPreprocessor(preprocessor.tokenizer, ["A"], word_length=0)
    with pytest.raises(FileNotFoundError, match="There is no file .*manifest.json"):
        TaggerPreprocessor.load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"task": "vision"}')
    with pytest.raises(ValueError, match=f"{tmp_path.name} holds no trained tagger"):
        TaggerPreprocessor.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json is not valid JSON"):
        preprocessor.save(tmp_path)
