import json
import sys

import numpy as np
import pytest

from keras_attention.data import Characters, SequencePreprocessor, Subwords
from keras_attention.data.tokenizers.building import build_tokenizer

GERMAN = Characters(["<pad>", "<unk>", "<begin>", "<end>", "a", "b"])
ENGLISH = Characters(["<pad>", "<unk>", "<begin>", "<end>", "x", "y", "z"])


def test_sources_and_targets():
    preprocessor = SequencePreprocessor(ENGLISH, source=GERMAN)
    ids = preprocessor(["ab", "", "baba", "?"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [[4, 5, 3, 0, 0], [3, 0, 0, 0, 0], [5, 4, 5, 4, 3], [1, 3, 0, 0, 0]]
    assert preprocessor(["ab"], sequence_length=5).tolist() == [[4, 5, 3, 0, 0]]
    assert preprocessor([]).shape == (0, 0)
    assert [row.tolist() for row in preprocessor.source_ids(["ab"])] == [[4, 5, 3]]
    targets = preprocessor.target_ids(["xyz", ""])
    assert [row.tolist() for row in targets] == [[2, 4, 5, 6, 3], [2, 3]]
    assert {row.dtype.name for row in targets} == {"int32"}
    assert preprocessor.texts(targets) == ["xyz", ""]
    assert preprocessor.texts(np.array([[4, 4, 3, 6, 6], [6, 0, 0, 0, 0]])) == ["xx", "z"]
    assert [preprocessor.padding_id, preprocessor.start_token_id, preprocessor.end_token_id] == [
        0,
        2,
        3,
    ]


def test_language_model():
    preprocessor = SequencePreprocessor(ENGLISH)
    assert [row.tolist() for row in preprocessor(["xy", "z"])] == [[4, 5], [6]]
    assert preprocessor.texts([[4, 5, 6]]) == ["xyz"]
    with pytest.raises(ValueError, match="A language model has no source"):
        preprocessor.source_ids(["x"])
    with pytest.raises(ValueError, match="sequence_length=4: a language model's prompts are not"):
        preprocessor(["x"], sequence_length=4)


LINES = ["ein Mann und eine Frau", "a man and a woman", "Mann, Frau: woman, man"] * 2


def subwords():
    pytest.importorskip("sentencepiece")
    return Subwords.build(LINES, vocabulary_size=30, model_type="bpe")


@pytest.mark.parametrize(
    "make, files",
    [
        (lambda: (ENGLISH, GERMAN), {"target.json", "source.json"}),
        (lambda: (ENGLISH,), {"target.json"}),
        (lambda: (subwords(),) * 2, {"tokens.model"}),
        (lambda: (subwords(), subwords()), {"tokens.model"}),  # equal is as good as the same
        (lambda: (subwords(), GERMAN), {"target.model", "source.json"}),
    ],
)
def test_saved_with_the_model(tmp_path, make, files):
    preprocessor = SequencePreprocessor(*make())
    (tmp_path / "manifest.json").write_text('{"task": "seq2seq"}')
    preprocessor.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == files | {"manifest.json"}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert set(manifest.pop("files")) == {p.name for p in tmp_path.glob("*.*")} - {"manifest.json"}
    assert manifest == {"task": "seq2seq", "preprocessing": preprocessor.config()}
    loaded = SequencePreprocessor.load(tmp_path)
    assert loaded == preprocessor
    np.testing.assert_array_equal(loaded(["ab"]), preprocessor(["ab"]))
    assert (loaded.source is loaded.target) == (files == {"tokens.model"})


def test_needs_no_tensorflow(tmp_path, monkeypatch):
    SequencePreprocessor(ENGLISH, GERMAN).save(tmp_path / "a" / "b")
    for module in ("tensorflow", "sentencepiece", "keras_hub"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it is an error now
    preprocessor = SequencePreprocessor.load(tmp_path / "a" / "b")
    assert preprocessor.texts(preprocessor.target_ids(["xy"])) == ["xy"]


def test_errors(tmp_path):
    preprocessor = SequencePreprocessor(ENGLISH, GERMAN)
    with pytest.raises(ValueError, match="'ab' is one text, expected a list of str"):
        preprocessor("ab")
    with pytest.raises(ValueError, match="has 3 tokens, more than sequence_length=2"):
        preprocessor(["ab"], sequence_length=2)
    with pytest.raises(FileNotFoundError, match="There is no file .*manifest.json"):
        SequencePreprocessor.load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"preprocessing": {"kind": "tagger"}}')
    with pytest.raises(ValueError, match=f"{tmp_path.name} holds no trained generator"):
        SequencePreprocessor.load(tmp_path)
    config = {**preprocessor.config(), "target": {"kind": "syllables", "file": "a"}}
    (tmp_path / "manifest.json").write_text(json.dumps({"preprocessing": config}))
    with pytest.raises(ValueError, match="kind is 'syllables': expected one of characters"):
        SequencePreprocessor.load(tmp_path)


def test_tokenizers_by_name():
    texts = ["a dark night", "a day"]
    assert isinstance(build_tokenizer("characters", texts), Characters)
    assert len(build_tokenizer("words", texts, 6)) == 6
    with pytest.raises(ValueError, match="tokens='bytes': expected one of characters, words, subw"):
        build_tokenizer("bytes", texts)
    with pytest.raises(ValueError, match="tokens='words': expected one of characters, subwords"):
        build_tokenizer("words", texts, mask_token=True)
