"""Texts with matching texts: in memory, from files, and as batches."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import MatchingTexts, from_matching_files

PAIRS = [MatchingTexts("reset it", "a new password"), MatchingTexts("hours", "we open at 9")]
TRIPLES = [one._replace(negative=f"not {one.text}") for one in PAIRS]
COLUMNS = ("match", "text", "negative")


def write(path, examples):
    """Write the examples in the format of the suffix, with the columns in another order."""
    rows = [{name: getattr(one, name) for name in COLUMNS} for one in examples]
    rows = [{k: v for k, v in row.items() if v is not None} for row in rows]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        lines = [mark.join(rows[0]), *(mark.join(row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("examples", [PAIRS, TRIPLES], ids=["pairs", "triples"])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl"])
def test_tables(tmp_path, name, examples):
    data = from_matching_files(train=write(tmp_path / name, examples), dev_fraction=0)
    assert data.train == examples
    assert repr(data) == "DataSet(MatchingTexts: train=2, dev=0, test=0)"


def test_other_files_and_columns(tmp_path):
    (tmp_path / "x.de").write_text("ja\nnein\n")
    (tmp_path / "x.en").write_text("yes\nno\n")
    aligned = from_matching_files(test=(tmp_path / "x.de", tmp_path / "x.en")).test
    assert aligned == [MatchingTexts("ja", "yes"), MatchingTexts("nein", "no")]
    (tmp_path / "x.tsv").write_text("a\tb\tc\nd\te\tf\n")
    numbers = {"text_column": 2, "label_column": 0}
    assert from_matching_files(test=tmp_path / "x.tsv", **numbers).test[0] == ("c", "a", None)
    numbers["negative_column"] = 1
    assert from_matching_files(test=tmp_path / "x.tsv", **numbers).test[1] == ("f", "d", "e")


def test_problems_are_named(tmp_path):
    path = write(tmp_path / "x.tsv", TRIPLES)
    path.write_text(path.read_text() + "a\tb\t \n")
    with pytest.raises(ValueError, match="x.tsv:4: 'negative' is empty"):
        from_matching_files(test=path)
    path.write_text("source\ttarget\na\tb\n")
    with pytest.raises(ValueError, match="no column 'text', the first row names source, target"):
        from_matching_files(test=path)
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a", "match": "b", "negative": "c"}\n{"text": "d", "match": "e"}\n')
    with pytest.raises(ValueError, match="x.jsonl:2: no 'negative', the object has text, match"):
        from_matching_files(test=path)


@pytest.mark.parametrize("one", ["ab", ("a",), ("a", 3), ("a", "b", "c", "d"), ("a", None)])
def test_other_examples_are_refused(one):
    with pytest.raises(ValueError, match="has no matching text: expected"):
        MatchingTexts.collect([one])


def test_columns_number_equal_texts():
    pairs = [*TRIPLES, MatchingTexts("hours", "not hours"), MatchingTexts("so", "we open at 9")]
    preprocessor = ka.data.TextPairPreprocessor.build(pairs)
    labels = preprocessor.columns(pairs).labels
    names = {}
    for row, one in zip(labels, pairs, strict=True):
        for number, text in zip(row, one, strict=True):
            assert (number == -1) == (text is None)
            assert text is None or names.setdefault(int(number), text) == text
    assert len(names) == len(set(names.values())) == 7
    assert preprocessor.columns(pairs, negatives=False).labels.shape == (4, 2)
    assert preprocessor.columns(PAIRS).labels.shape == (2, 2)
    assert preprocessor.columns(PAIRS, negatives=True).labels[:, 2].tolist() == [-1, -1]


def test_batches_hold_the_texts_of_each_pair():
    preprocessor = ka.data.TextPairPreprocessor.build(TRIPLES)
    ((inputs, numbers),) = ka.data.batches(TRIPLES, preprocessor)
    assert numbers.shape == (2, 3) and len(set(numbers.numpy().ravel())) == 6
    for name in ("text", "match", "negative"):
        rows = inputs[f"{name}_token_ids"].numpy()
        texts = sorted(getattr(one, name) for one in TRIPLES)
        expected = [preprocessor.ids(text).tolist() for text in texts]
        actual = [row[row > 0].tolist() for row in rows]
        assert sorted(actual) == sorted(expected)


def test_preprocessor_is_saved(tmp_path):
    preprocessor = ka.data.TextPairPreprocessor.build(
        PAIRS, min_count=1, lowercase=True, maximum_length=3
    )
    preprocessor.save(tmp_path)
    loaded = ka.data.TextPairPreprocessor.load(tmp_path)
    assert loaded == preprocessor and loaded.maximum_length == 3
    np.testing.assert_array_equal(loaded(["We open at 9"]), preprocessor(["we open at"]))
    with pytest.raises(ValueError, match="maximum_length must be a whole number"):
        ka.data.TextPairPreprocessor(preprocessor.tokenizer, 0)
