"""Texts with any number of labels: in memory, from files, and as batches."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import MultiLabelText, MultiLabelTexts, from_multi_label_files

EXPECTED = [
    MultiLabelText('a "clever", warm\nfilm', ("joy", "love")),
    MultiLabelText("träge", ()),
    MultiLabelText("so so", ("10",)),
]
CSV = 'id,labels,text\n1,"joy, love","a ""clever"", warm\nfilm"\n\n2, ,träge\n3,10,so so\n'
TSV = "0\tjoy,love\tb\n1\t\tc\n"
JSONL = "".join(json.dumps({"labels": x.labels, "text": x.text, "n": 1}) + "\n" for x in EXPECTED)


@pytest.mark.parametrize(("name", "content"), [("x.csv", CSV), ("x.jsonl", JSONL)])
def test_files(tmp_path, name, content):
    (tmp_path / name).write_text(content, "utf-8")
    data = from_multi_label_files(train=tmp_path / name, dev_fraction=0)
    assert data.train == EXPECTED and data.labels == ("10", "joy", "love")
    assert repr(data) == "MultiLabelTexts(train=3, dev=0, test=0 texts, 3 labels: 10, joy, love)"


def test_columns_by_number_and_other_separators(tmp_path):
    (tmp_path / "x.tsv").write_text(TSV.replace(",", " | "))
    columns = {"text_column": 2, "label_column": 1}
    data = from_multi_label_files(test=tmp_path / "x.tsv", **columns, separator="|")
    assert data.test == [MultiLabelText("b", ("joy", "love")), MultiLabelText("c", ())]
    with pytest.raises(ValueError, match="separator='': expected what stands between"):
        from_multi_label_files(test=tmp_path / "x.tsv", separator="")


def test_json_may_have_one_text_of_labels(tmp_path):
    lines = [{"text": "a", "labels": "x,y"}, {"text": "b", "labels": [3, "x"]}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = from_multi_label_files(test=tmp_path / "x.jsonl")
    assert [one.labels for one in data.test] == [("x", "y"), ("3", "x")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "text,labels\na,x,y\n", "x.csv:2: found 3 fields"),
        ("x.csv", "text,labels\n,x\n", "x.csv:2: 'text' is empty"),
        ("x.csv", 'text,labels\na,"x,,y"\n', "x.csv:2: 'labels' is empty"),
        ("x.csv", 'text,labels\na,"x,x"\n', "x.csv: 'a' has the label 'x' more than once"),
        ("x.csv", "text,label\na,x\n", "no column 'labels'; the first row names text, label"),
        ("x.csv", "text,labels\na,\n", "None of the texts has a label"),
        ("x.csv", 'text,labels\na,"x\ny"\n', "the label 'x.ny' holds a line break"),
        ("x.jsonl", '{"text": "a", "labels": {"x": 1}}', "'labels' is .*: expected a string"),
        ("x.jsonl", '{"text": "a", "labels": [["x"]]}', "'labels' is .*: expected a string"),
        ("x.jsonl", '{"text": ["a"], "labels": []}', "'text' is .*: expected a string"),
        ("x.jsonl", '{"text": "a", "labels": [" "]}', "x.jsonl:1: 'labels' is empty"),
        ("x.txt", "a", "is no file of texts with lists of labels: expected"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        from_multi_label_files(test=tmp_path / name)


def test_lists():
    whole = [(f"text {i}", ("a",) * (i % 2)) for i in range(30)]
    data = MultiLabelTexts.from_lists(whole, dev_fraction=0.2, seed=3)
    assert len(data.dev) == 6 and sorted(data.train + data.dev) == sorted(whole)
    assert MultiLabelTexts.from_lists(whole, labels=("b", "a")).labels == ("b", "a")
    with pytest.raises(ValueError, match="No texts given"):
        MultiLabelTexts.from_lists()
    with pytest.raises(ValueError, match="'joy' is one label: give each text a list"):
        MultiLabelTexts.from_lists([("a", "joy")])


def test_batches_hold_zeros_and_ones():
    train = [MultiLabelText("word " * (1 + i % 3), ("ac", "a", "", "b")[i % 4]) for i in range(20)]
    data = MultiLabelTexts.from_lists([(t, tuple(names)) for t, names in train], dev_fraction=0)
    preprocessor = ka.data.TextPreprocessor.build(data.train, data.labels)
    found = []
    for ids, labels in ka.data.multi_label_batches(data.train, preprocessor, 4, shuffle=True):
        assert labels.dtype == "float32" and labels.shape[1] == 3
        lengths = np.count_nonzero(np.asarray(ids), axis=1)
        found += [(int(n), *map(int, row)) for n, row in zip(lengths, labels.numpy(), strict=True)]
    expected = [
        (1 + i % 3, *(int(x in names) for x in "abc")) for i, (_, names) in enumerate(train)
    ]
    assert sorted(found) == sorted(expected)
    with pytest.raises(ValueError, match="The tag 'd' is not among the labels: a, b, c"):
        ka.data.multi_label_batches([MultiLabelText("word", ("d",))], preprocessor)
