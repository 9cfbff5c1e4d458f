"""The fields of a JSON object are checked."""

import math

import pytest

from keras_attention.files.fields import Fields

SAID = {
    "count": 3,
    "size": [2, 3],
    "share": 0.5,
    "right": True,
    "name": "x",
    "names": ["a", "b"],
    "kind": "b",
    "file": "words.txt",
    "inner": {"count": 1},
    "none": None,
}


def test_fields_return_valid_values():
    fields = Fields("folder/a.json", SAID)
    assert fields.whole("count", most=3) == 3 and fields.whole("none", most=3, default=7) == 7
    assert fields.wholes("size", 2, most=9) == [2, 3] and fields.number("share", above=0) == 0.5
    assert fields.number("gone", default=None) is None and fields.number("count") == 3
    assert fields.flag("right") is True and fields.text("name") == "x"
    assert fields.text("none", default=None) is None and fields.texts("names") == ["a", "b"]
    assert fields.one_of("kind", ("a", "b")) == "b" and fields.object("inner").whole(
        "count", most=1
    )
    assert str(fields.file("file")) == "folder/words.txt" and fields.file("none", None) is None
    assert "count" in fields and "gone" not in fields


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (lambda f: f.whole("x", most=9), 10, "x is 10: expected a whole number from 1 to 9"),
        (lambda f: f.whole("x", most=9), 0, "x is 0: expected a whole number"),
        (lambda f: f.whole("x", most=9), True, "x is true: expected a whole number"),
        (lambda f: f.whole("x", most=9), 2.0, "x is 2.0: expected a whole number"),
        (lambda f: f.whole("x", most=9), "2", "x is '2': expected a whole number"),
        (lambda f: f.whole("x", most=9), None, "x is null: expected a whole number"),
        (lambda f: f.whole("x", most=9), 10**4000, r"x is 10000.*\.\.\.: expected a whole number"),
        (lambda f: f.wholes("x", 2, most=9), [1], "x is a list: expected 2 whole numbers"),
        (lambda f: f.wholes("x", 2, most=9), [1, 99], "x is a list: expected 2 whole numbers"),
        (lambda f: f.wholes("x", 2, most=9), 7, "x is 7: expected 2 whole numbers"),
        (lambda f: f.number("x", above=0), 0, "x is 0: expected a number above 0"),
        (lambda f: f.number("x"), math.nan, "x is nan: expected a number"),
        (lambda f: f.number("x"), math.inf, "x is inf: expected a number"),
        (lambda f: f.number("x"), 10**400, "x is 1000.*: expected a number"),
        (lambda f: f.flag("x"), 1, "x is 1: expected true or false"),
        (lambda f: f.text("x"), ["a"], "x is a list: expected a string"),
        (lambda f: f.texts("x"), ["a", "a"], "x is a list: expected a list of different strings"),
        (lambda f: f.texts("x"), [], "x is a list: expected a list of different strings"),
        (lambda f: f.texts("x"), [["a"]], "x is a list: expected a list of different strings"),
        (lambda f: f.texts("x"), "ab", "x is 'ab': expected a list of different strings"),
        (lambda f: f.one_of("x", ("a", "b")), "c", "x is 'c': expected one of a, b"),
        (lambda f: f.one_of("x", ("a", "b")), ["a"], "x is a list: expected one of a, b"),
        (lambda f: f.object("x"), [], r"x is a list: expected an object"),
        (lambda f: f.object("x").whole("y", most=9), {}, "x.y is not there: expected a whole"),
        (lambda f: f.file("x"), "../y", "x is '../y': expected the plain name"),
    ],
)
def test_errors_name_the_field_and_its_invalid_value(read, value, message):
    with pytest.raises(ValueError, match=f"^folder/a.json: {message}") as error:
        read(Fields("folder/a.json", {"x": value}))
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("content", ["[]", "null", '"text"', "7"])
def test_a_file_without_an_object_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=r"a.json: it holds .*: expected an object, {...}"):
        Fields.read(tmp_path / "a.json")


@pytest.mark.parametrize("read", ["object", "file", "flag", "text", "texts", "number"])
def test_errors_name_the_missing_field(read):
    with pytest.raises(ValueError, match="^folder/a.json: x is not there: expected"):
        getattr(Fields("folder/a.json", {}), read)("x")
