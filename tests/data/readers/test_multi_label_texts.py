"""Texts with any number of labels: in memory, from files, and as batches."""

import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import MultiLabelText, from_multi_label_files

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
    assert repr(data) == "DataSet(MultiLabelText: train=3, dev=0, test=0, 3 labels)"


def test_columns_by_number_and_other_separators(tmp_path):
    (tmp_path / "x.tsv").write_text(TSV.replace(",", " | "))
    columns = {"text_column": 2, "label_column": 1}
    data = from_multi_label_files(test=tmp_path / "x.tsv", **columns, separator="|")
    assert data.test == [MultiLabelText("b", ("joy", "love")), MultiLabelText("c", ())]
    with pytest.raises(ValueError, match="separator='': expected the str between"):
        from_multi_label_files(test=tmp_path / "x.tsv", separator="")


def test_other_marks_than_commas_between_labels(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text,labels\na,joy; love\nb,love\nc,\n")
    with pytest.warns(UserWarning, match=r"x.csv: no row has .*'joy; love'.* give separator=';'"):
        from_multi_label_files(test=path)
    path.write_text("text,labels\na,joy|love\nb,fear|joy\n")
    with pytest.warns(UserWarning, match=r"x.csv: no row has .*'fear\|joy'.* separator='\|'"):
        from_multi_label_files(test=path)
    assert from_multi_label_files(test=path, separator="|").labels == ("fear", "joy", "love")
    for content in ("a,joy;love\nb,fear\n", 'a,joy;love\nb,"love,joy"\n'):  # may be right
        path.write_text(f"text,labels\n{content}")
        assert "joy;love" in from_multi_label_files(test=path).labels


def test_labels_in_json_may_have_commas_and_be_whole_numbers(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a", "labels": [3, "x, y"]}\n')
    data = from_multi_label_files(test=tmp_path / "x.jsonl")
    assert data.test[0].labels == ("3", "x, y")


@pytest.mark.parametrize(
    "cell",
    [
        "['joy', 'big, new']",
        '["joy", "big, new"]',
        "[ 'joy' , 'big, new' ]",
        "[\"joy\", 'big, new']",
    ],
)
def test_cells_may_hold_lists(tmp_path, cell):
    """Read lists as pandas and JSON write them."""
    (tmp_path / "x.tsv").write_text(f"text\tlabels\na\t{cell}\nb\t[]\nc\t[7]\nd\tjoy\n")
    texts = from_multi_label_files(test=tmp_path / "x.tsv").test
    assert [labels for _, labels in texts] == [("joy", "big, new"), (), ("7",), ("joy",)]
    cell = cell.replace('"', '""')
    (tmp_path / "x.csv").write_text(f'text,labels\na,"{cell}"\n')
    assert from_multi_label_files(test=tmp_path / "x.csv").test == texts[:1]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "[joy, love]",
            r"'labels' is '\[joy, love\]': expected labels with ',' between, or a l",
        ),
        ("['joy' 'love']", "expected labels with ',' between, or a list"),
        ("['joy'\n 'love']", "expected labels with ',' between, or a list"),
        ("[1 2]", "expected labels with ',' between, or a list"),
        ("[" * 5000 + "]" * 5000, "expected labels with ',' between, or a list"),
        ("['joy', print()]", "expected labels with ',' between, or a list"),
        ("['joy', 0.5]", "'labels' has 0.5: expected only strings"),
        ("['joy', 'joy']", "'labels' has 'joy' more than once"),
        ("['joy', ' ']", "'labels' is empty"),
    ],
)
def test_cells_with_broken_lists_are_errors(tmp_path, cell, message):
    (tmp_path / "x.csv").write_text(f'text,labels\nb,joy\na,"{cell}"\n')
    with pytest.raises(ValueError, match=rf"x.csv:[34]: .*{message}") as error:
        from_multi_label_files(test=tmp_path / "x.csv")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "text,labels\na,x,y\n", "x.csv:2: found 3 fields"),
        ("x.csv", "text,labels\n,x\n", "x.csv:2: 'text' is empty"),
        ("x.csv", 'text,labels\na,"x,,y"\n', "x.csv:2: 'labels' is empty"),
        ("x.csv", 'text,labels\na,"x, x"\n', "x.csv:2: 'labels' has 'x' more than once"),
        ("x.jsonl", '{"text": "a", "labels": [3, "3"]}', "x.jsonl:1: 'labels' has '3' more than"),
        ("x.csv", "text,label\na,x\n", "no column 'labels', the first row names text, label"),
        ("x.csv", "text,labels\na,\n", "No text has a label"),
        ("x.csv", 'text,labels\na,"x\ny"\n', "the label 'x.ny' has a line break"),
        (
            "x.jsonl",
            '{"text": "a", "labels": {"x": 1}}',
            "is an object: expected a list of strings",
        ),
        ("x.jsonl", '{"text": "a", "labels": null}', "is null: expected a list of strings"),
        ("x.jsonl", '{"text": "a", "labels": true}', "is true: expected a list of strings"),
        ("x.jsonl", '{"text": "a", "labels": 3}', "is 3: expected a list of strings"),
        ("x.jsonl", '{"text": "a", "labels": "x, y"}', "is 'x, y': expected a list of strings"),
        ("x.jsonl", '{"text": "a", "labels": [["x"]]}', "'labels' has a list: expected only str"),
        ("x.jsonl", '{"text": "a", "labels": ["x", 0.5]}', "'labels' has 0.5: expected only str"),
        ("x.jsonl", '{"text": ["a"], "labels": []}', "'text' is .*: expected a string"),
        ("x.jsonl", '{"text": "a", "labels": [" "]}', "x.jsonl:1: 'labels' is empty"),
        ("x.txt", "a", "is not a file of text with lists of labels: expected"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        from_multi_label_files(test=tmp_path / name)


def test_lists():
    whole = [(f"text {i}", ("a",) * (i % 2)) for i in range(30)]
    data = MultiLabelText.collect(whole, dev_fraction=0.2, seed=3)
    assert len(data.dev) == 6 and sorted(data.train + data.dev) == sorted(whole)
    assert MultiLabelText.collect(whole, labels=("b", "a")).labels == ("b", "a")
    with pytest.raises(ValueError, match="No MultiLabelText given"):
        MultiLabelText.collect()
    with pytest.raises(ValueError, match="'joy' is one label: give each text a list"):
        MultiLabelText.collect([("a", "joy")])


def test_batches_hold_zeros_and_ones():
    train = [MultiLabelText("word " * (1 + i % 3), ("ac", "a", "", "b")[i % 4]) for i in range(20)]
    data = MultiLabelText.collect([(t, tuple(names)) for t, names in train], dev_fraction=0)
    preprocessor = ka.data.TextPreprocessor.build(data.train, data.labels)
    rows = []
    for ids, labels in ka.data.batches(data.train, preprocessor, 4, shuffle=True):
        assert labels.dtype == "float32" and labels.shape[1] == 3
        lengths = np.count_nonzero(np.asarray(ids), axis=1)
        rows += [(int(n), *map(int, row)) for n, row in zip(lengths, labels.numpy(), strict=True)]
    expected = [
        (1 + i % 3, *(int(x in names) for x in "abc")) for i, (_, names) in enumerate(train)
    ]
    assert sorted(rows) == sorted(expected)
    with pytest.raises(ValueError, match="The label 'd' is not among the labels: a, b, c"):
        ka.data.batches([MultiLabelText("word", ("d",))], preprocessor)
