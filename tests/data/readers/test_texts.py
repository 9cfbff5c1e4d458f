import gzip
import json

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import (
    Text,
    TextPreprocessor,
    from_text_files,
    read_texts,
)


def texts(count, label="x"):
    return [Text(f"text {i}", label) for i in range(count)]


def test_dev_is_held_out_of_train_by_seed():
    whole = texts(30)
    first = Text.collect(whole, test=texts(4), dev_fraction=0.2, seed=3)
    assert len(first.dev) == 6 and len(first.train) == 24 and first.test == texts(4)
    assert sorted(first.train + first.dev) == sorted(whole)
    assert first == Text.collect(whole, test=texts(4), dev_fraction=0.2, seed=3)
    assert first.dev != Text.collect(whole, dev_fraction=0.2, seed=4).dev
    assert Text.collect(whole, dev_fraction=0).dev == []
    assert Text.collect(whole, texts(2)).train == whole


def test_labels_of_every_part_in_order():
    data = Text.collect([("a", "10"), ("b", "sport")], [("c", "2")], [("d", "art")])
    assert data.labels == ("2", "10", "art", "sport")
    assert data.dev == [Text("c", "2")]
    assert repr(data) == "DataSet(Text: train=2, dev=1, test=1, 4 labels)"
    assert Text.collect(test=texts(1), labels=("y", "x")).labels == ("y", "x")


def test_parts_refuse():
    with pytest.raises(ValueError, match="No Text given"):
        Text.collect()
    with pytest.raises(ValueError, match="dev_fraction=2"):
        ka.data.Text.collect(texts(3), dev_fraction=2)


EXPECTED = [Text('a "clever", warm\nfilm', "good"), Text("träge", "bad")]


def write(path, content):
    data = content.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


CSV = 'id,label,text\n1,good,"a ""clever"", warm\nfilm"\n\n2, bad ,träge\n'
JSONL = "".join(json.dumps({"label": t.label, "text": t.text, "n": 1}) + "\n" for t in EXPECTED)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", CSV), ("a.csv.gz", CSV), ("a.csv", CSV.replace("\n", "\r\n")), ("a.jsonl", JSONL)],
)
def test_the_same_texts_from_every_format(tmp_path, name, content):
    texts = read_texts(write(tmp_path / name, content))
    assert [Text(text.replace("\r", ""), label) for text, label in texts] == EXPECTED


def test_tabs_quote_nothing(tmp_path):
    path = write(tmp_path / "a.tsv", 'sentence\tclass\nan "odd one\t0\n5" wide\t1\n')
    texts = read_texts(path, text_column="sentence", label_column="class")
    assert texts == [('an "odd one', "0"), ('5" wide', "1")]


def test_numbers_in_json_are_labels(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "x", "label": 10}\n\n{"text": "y", "label": 9}\n')
    assert from_text_files(test=path).labels == ("9", "10")


def test_folders(tmp_path):
    for label, name, content in [
        ("neg", "1.txt", "dull\nand long\n"),
        ("pos", "0.txt", "fine"),
        ("pos", "1.txt", "good"),
        ("pos", "notes.md", "no text of the data"),
    ]:
        (tmp_path / label).mkdir(exist_ok=True)
        write(tmp_path / label / name, content)
    expected = [("dull\nand long", "neg"), ("fine", "pos"), ("good", "pos")]
    assert read_texts(tmp_path) == expected
    write(tmp_path / "neg" / "2.txt", "  ")
    with pytest.raises(
        ValueError, match=r"neg/2.txt: the text is empty\. To leave it out, give on_error='skip'\.$"
    ):
        read_texts(tmp_path)


def test_folders_without_texts(tmp_path):
    (tmp_path / "train" / "pos").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"has no text: expected .txt files in a .* label\.$"):
        read_texts(tmp_path)
    write(tmp_path / "train" / "pos" / "1.txt", "fine")
    with pytest.raises(ValueError, match=". .*train has such folders: read that one"):
        read_texts(tmp_path)
    assert read_texts(tmp_path / "train") == [("fine", "pos")]


def test_columns_by_number_where_no_row_names_them(tmp_path):
    path = write(tmp_path / "test.tsv", "good\tfine film\nbad\tdull\n")
    data = from_text_files(test=path, text_column=1, label_column=0)
    assert list(data.test) == [("fine film", "good"), ("dull", "bad")]
    with pytest.raises(ValueError, match=r"columns=\('text', 0\): expected two names, or two numb"):
        from_text_files(test=path, label_column=0)


def test_parts(tmp_path):
    train = write(tmp_path / "train.csv", "text,label\n" + "".join(f"t{i},a\n" for i in range(10)))
    test = write(tmp_path / "test.jsonl", '{"text": "x", "label": "b"}')
    data = from_text_files([train, train], test=test, dev_fraction=0.25)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [15, 5, 1]
    assert data.labels == ("a", "b")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "words,label\nx,y\n", "a.csv:1: no column 'text', the first row names words, la"),
        (
            "a.csv",
            "text;label\nx;y\n",
            "a.csv:1: the first row is one field, 'text;label', with ';'",
        ),
        (
            "a.tsv",
            "text,label\nx,y\n",
            "a.tsv:1: the first row is one field, .*by tabs: save",
        ),
        ("a.csv", "text,class\nx,y\n", "no column 'label', .* with label_column="),
        ("a.csv", "text,label\nx,y\nx\n", "a.csv:3: found 1 fields where the first row has 2"),
        ("a.csv", 'text,label\n"x"y,z\n', "a.csv:2: not CSV: .*expected after"),
        ("a.csv", "text,label\n ,y\n", "a.csv:2: 'text' is empty"),
        ("a.csv", "text,label\nx,\n", "a.csv:2: 'label' is empty"),
        ("a.csv", "text,label\n", "a.csv has no row"),
        ("a.jsonl", "{\n", "a.jsonl:1: not JSON: "),
        ("a.jsonl", "\n[1]\n", r"a.jsonl:2: expected an object, found '\[1\]'"),
        ("a.jsonl", '{"text": "x"}', "a.jsonl:1: no 'label', the object has text"),
        ("a.jsonl", '{"text": "x", "label": true}', "'label' is true: expected a string"),
        ("a.jsonl", '{"text": 7.5, "label": "x"}', "'text' is 7.5: expected a string"),
        ("a.txt", "x\n", "a.txt is not a file of text: .* .csv, .tsv, .jsonl"),
    ],
)
def test_errors_say_where(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        ka.data.from_text_files(test=write(tmp_path / name, content))


def test_other_errors(tmp_path):
    with pytest.raises(ValueError, match="No file given"):
        from_text_files()
    with pytest.raises(FileNotFoundError, match="There is no file absent.csv"):
        from_text_files("absent.csv")
    with pytest.raises(ValueError, match="has no folder in it: expected one for each label"):
        from_text_files(tmp_path)


LENGTHS = [1, 8, 9, 3, 16, 17, 40, 2, 8, 5, 24, 7, 1]
TEXTS = [Text(" ".join(f"{i}x{k}" for k in range(n)), f"L{n % 3}") for i, n in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def preprocessor():
    return TextPreprocessor.build(TEXTS)


def read(batches, preprocessor):
    """Return the texts of batches, decoded from their ids."""
    texts = []
    for ids, labels in batches:
        assert ids.dtype == labels.dtype == "int32"
        for row, label in zip(np.asarray(ids), np.asarray(labels), strict=True):
            length = int((row != 0).sum())
            assert (row[length:] == 0).all()
            words = [preprocessor.tokenizer.entries[i] for i in row[:length]]
            texts.append(Text(" ".join(words), preprocessor.labels.names[label]))
    return texts


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_text_once_with_its_neighbours_in_length(preprocessor, shuffle):
    batches = ka.data.batches(TEXTS, preprocessor, 3, shuffle=shuffle, seed=1)
    assert sorted(read(batches, preprocessor)) == sorted(TEXTS)
    assert sorted(ids.shape[1] for ids, _ in batches) == [8, 8, 8, 16, 24, 40]
    assert len(batches) == 6


def test_inputs_equal_the_preprocessors(preprocessor):
    ids, labels = next(iter(ka.data.batches(TEXTS[:4], preprocessor, 4, edges=[])))
    np.testing.assert_array_equal(ids, preprocessor([text for text, _ in TEXTS[:4]]))
    assert [preprocessor.labels.names[i] for i in labels] == [label for _, label in TEXTS[:4]]


def test_longer_texts_are_cut():
    short = TextPreprocessor.build(TEXTS, maximum_length=5)
    widths = {ids.shape[1] for ids, _ in ka.data.batches(TEXTS, short, 4)}
    assert widths == {5}


def test_batches_refuse(preprocessor):
    with pytest.raises(ValueError, match="There is no example"):
        ka.data.batches([], preprocessor)
    with pytest.raises(ValueError, match="'other' is not among the labels: L0, L1, L2"):
        ka.data.batches([Text("a", "other")], preprocessor)
    with pytest.raises(ValueError, match="^Text 2: ' ' holds no word"):
        ka.data.batches([Text("a", "L0"), Text(" ", "L0")], preprocessor)
