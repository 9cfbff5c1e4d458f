import json
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import Text, TextPreprocessor


@pytest.fixture
def preprocessor():
    train = [Text("The cat, the dog", "animals"), Text("the car", "things")]
    return TextPreprocessor.build(train, lowercase=True, maximum_length=3)


def test_ids(preprocessor):
    assert preprocessor.tokenizer.entries == ("<pad>", "<unk>", "the", ",", "car", "cat")
    ids = preprocessor(["The car", "cat , dog the cat"])
    assert ids.dtype == np.int32 and ids.tolist() == [[2, 4, 0], [5, 3, 1]]
    assert preprocessor(["The car"], sequence_length=4).tolist() == [[2, 4, 0, 0]]
    assert preprocessor(["The car"], sequence_length=1).tolist() == [[2]]
    assert preprocessor([]).shape == (0, 0)


def test_names(preprocessor):
    assert preprocessor.names(np.array([[0.0, 1.0], [2.0, -1.0]])) == ["things", "animals"]


def test_saved_with_the_model(tmp_path, preprocessor):
    (tmp_path / "manifest.json").write_text('{"task": "text_classifier"}')
    preprocessor.save(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"words.txt", "labels.txt", "manifest.json"}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert set(manifest.pop("files")) == {p.name for p in tmp_path.glob("*.*")} - {"manifest.json"}
    assert manifest == {"task": "text_classifier", "preprocessing": preprocessor.config()}
    assert TextPreprocessor.load(tmp_path) == preprocessor


def test_word_pattern_is_saved(tmp_path):
    train = [Text("a-b c", "x")]
    preprocessor = TextPreprocessor.build(train, pattern="[a-z]")
    assert preprocessor.tokenizer.entries[2:] == ("a", "b", "c")
    preprocessor.save(tmp_path)
    assert TextPreprocessor.load(tmp_path).split("A-b") == ["b"]
    for wrong in ("(a)b", "[a", "a*"):
        with pytest.raises(ValueError, match=r"pattern=.*without capturing group.*\(\?:"):
            TextPreprocessor.build(train, pattern=wrong)
        manifest = {"preprocessing": preprocessor.config() | {"split": wrong}}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(
            ValueError, match="manifest.json: preprocessing.split is .*: expected a"
        ):
            TextPreprocessor.load(tmp_path)


def test_texts_become_ids_without_tensorflow(preprocessor, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # importing it is an error now
    assert type(preprocessor(["cat"])) is np.ndarray
    with pytest.raises(ImportError, match=r"ka.data.batches needs TensorFlow .*\[keras\]"):
        ka.data.batches([Text("a", "things")], preprocessor)


def test_errors(tmp_path, preprocessor):
    with pytest.raises(ValueError, match="'The cat' is one text, expected a list"):
        preprocessor("The cat")
    with pytest.raises(ValueError, match="^Text 2: '  ' holds no word"):
        preprocessor(["cat", "  "])
    with pytest.raises(ValueError, match=r"maximum_length=0\): .* at least 1"):
        TextPreprocessor(preprocessor.tokenizer, ["a"], maximum_length=0)
    (tmp_path / "manifest.json").write_text('{"preprocessing": {"kind": "tagger"}}')
    with pytest.raises(ValueError, match=f"{tmp_path.name} holds no trained classifier"):
        TextPreprocessor.load(tmp_path)
