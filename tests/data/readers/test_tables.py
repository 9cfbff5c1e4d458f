"""Errors of broken rows name the file and the line."""

import json

import pytest

import keras_attention as ka
from keras_attention.data.readers.tables import read_columns


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, "not JSON: it is nested too deeply"),
        ('{"text": ' + "[" * 100 + "]" * 100 + "}", "not JSON: it is nested too deeply"),
        ('{"text": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
        ('{"text": {"a": 1}}', "'text' is an object: expected a string"),
        ('{"text": 1e400}', "'text' is inf: expected a string"),
        ('{"text": true}', "'text' is true: expected a string"),
        (json.dumps({"text": "a\ud800"}), "'text' has half of a pair of surrogates"),
        ("null", "expected an object, found 'null'"),
    ],
)
def test_json_lines(tmp_path, line, message):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(ValueError, match=f"texts.jsonl:2: {message}") as error:
        read_columns(path, ("text", "text"))
    assert len(str(error.value)) < 300


def test_labels_are_lines(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text('text,label\na,"two\nlines"\n')
    with pytest.raises(ValueError, match=r"texts.csv: the label 'two\\nlines' has a line break"):
        ka.data.from_text_files(test=path)


def test_labels_of_many_digits_are_in_order():
    numbers = ["9" * 5000, "10", "2", "007", "x"]
    texts = [ka.data.Text("a", number) for number in numbers]
    assert ka.data.Text.collect(test=texts).labels == ("2", "007", "10", "9" * 5000, "x")


def test_ids_of_many_digits(tmp_path):
    row = "\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"
    (tmp_path / "a.conllu").write_text("1" * 5000 + row)
    with pytest.raises(ValueError, match=r"a.conllu:1: .* ID 1, found ID 1{20}\. To leave"):
        ka.data.from_conllu(test=tmp_path / "a.conllu")
    (tmp_path / "a.conllu").write_text("01" + row)
    assert ka.data.from_conllu(test=tmp_path / "a.conllu").test[0].tokens == ("a",)


def test_invalid_file_names_are_errors(tmp_path):
    with pytest.raises(ValueError, match=r"a\\x00b.csv' is not a valid file name"):
        ka.data.from_text_files(test="a\0b.csv")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "text,text,label\na,b,c\n", "a.csv:1: 2 columns are called 'text': rename"),
        ("a.tsv", "label\ttext\tlabel\na\tb\tc\n", "a.tsv:1: 2 columns are called 'label'"),
        (
            "a.jsonl",
            '{"text": "a", "label": "b", "text": "c"}',
            "'text' is there 2 times",
        ),
    ],
)
def test_duplicate_column_names_are_errors(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        read_columns(tmp_path / name, ("text", "label"))


def test_unused_column_names_may_be_duplicate(tmp_path):
    (tmp_path / "a.csv").write_text("note,text,label,note\na,b,c,d\n")
    assert read_columns(tmp_path / "a.csv", ("text", "label")) == [("b", "c")]


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.csv", "Label,TEXT \nb,a\n"),
        ("a.tsv", "Text\tlabel\na\tb\n"),
        ("a.jsonl", '{"Text": "a", "LABEL": "b"}\n'),
    ],
)
def test_the_case_of_a_name_does_not_matter(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    assert read_columns(tmp_path / name, ("text", "label")) == [("a", "b")]


def test_exact_name_of_a_column_comes_first(tmp_path):
    (tmp_path / "a.csv").write_text("Text,text,label\nx,a,b\n")
    assert read_columns(tmp_path / "a.csv", ("text", "label")) == [("a", "b")]
    (tmp_path / "a.csv").write_text("Text,TEXT,label\nx,a,b\n")
    with pytest.raises(ValueError, match="no column 'text'"):
        read_columns(tmp_path / "a.csv", ("text", "label"))


def test_json_lines_say_how_to_name_a_column(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"said": "a", "label": "b"}\n' * 3)
    message = r"a\.jsonl:1: no 'text', the object has said, label.* text_column=.*"
    with pytest.raises(ValueError, match=message) as error:
        read_columns(tmp_path / "a.jsonl", ("text", "label"))
    assert "\n" not in str(error.value), "one error for the file, not one for each line"
