"""The rules of `make check` about plain English, on small sources."""

import pathlib
import runpy
import types

import pytest

PATH = pathlib.Path(__file__).parents[1] / "docs" / "tools" / "prose.py"
prose = types.SimpleNamespace(**runpy.run_path(PATH))


@pytest.mark.parametrize(
    "source, rule",
    [
        ('"""Of a mask, the keys."""', "begins with Of"),
        ('"""Reads what is in a file."""', "clause as a noun"),
        ('"""There are no keys: this is none."""', "is no"),
        ('"""For masks alone."""', "alone for only"),
        ('"""The width is said twice."""', "said, told, known"),
        ('"""The layer knows its width."""', "objects with minds"),
        ('"""The file in which it lies."""', "of which, in which"),
        ('"""Reads a file; returns it."""', "semicolon"),
        ('"""The files of others."""', "others for the rest"),
        ('def read():\n    """The text."""', "docstring without a verb in front"),
        (f'"""{"Word " * 33}."""', "long sentence"),
        ("found = 1", "vague name"),
        ("def read(given): pass", "vague name"),
        ("x = 1  # made by hand; do not edit", "semicolon"),
        ('raise ValueError(f"{x} is too long; cut it")', "semicolon"),
    ],
)
def test_a_habit_is_found(source, rule):
    hits, _ = prose.check_source(source, ".py")
    assert rule in [hit[1] for hit in hits]


def test_code_and_plain_words_have_no_hits():
    python = '"""Return the mask of a layer.\n\n```python\na = 1; b = 2\n```\n"""\nwidth = 1\n'
    markdown = "A mask says who sees whom; see `found; given`.\n\n```\nwhat is it;\n```\n"
    assert prose.check_source(python, ".py") == ([], 3)
    assert prose.check_source(markdown, ".md") == ([], 1)


@pytest.mark.parametrize(
    "limit, words",
    [(400, "at most 400"), (503, None), (600, "Lower the limit of 600")],
)
def test_limits_fail_above_and_far_below(tmp_path, capsys, limit, words):
    (tmp_path / "a.md").write_text("It is no mask.\n\nIt is a mask.\n")
    complaints = prose.check_limits(tmp_path, {"a.md": limit})
    assert "500 hits per 1,000" in capsys.readouterr().out
    assert [words in sentence for sentence in complaints] == ([True] if words else [])
