"""The rules of `make house` on small sources."""

import ast
import pathlib
import runpy
import types

import pytest

PATH = pathlib.Path(__file__).parents[1] / "docs" / "tools" / "house.py"
house = types.SimpleNamespace(**runpy.run_path(PATH))

SOURCE = '''
class Record:
    mask: object

    def _once(self):
        return 1

    def _twice(self):
        return 2

    def take(self, mask):
        return self._once() + self._twice() + self._twice()


def make(x):
    """Makes a mask."""
    mask = x > 0
    return mask


def read(record):
    return record.mask
'''


def test_stops_take_or_hold_a_value():
    assert house.find_stops(ast.parse(SOURCE), "mask") == ["Record", "make", "take"]


def test_private_functions_with_one_caller_are_found():
    assert house.find_one_callers(SOURCE, ast.parse(SOURCE)) == ["_once"]


def test_lines_are_counted_without_the_docstring():
    functions = {x.name: x for x in house.select(ast.parse(SOURCE), ast.FunctionDef)}
    assert house.count_lines(functions["make"]) == 2
    assert house.list_parameters(functions["take"]) == ["mask"]


@pytest.mark.parametrize(
    "source, expected",
    [
        ("import a.b", {"a.b"}),
        ("from a import b, c", {"a.b", "a"}),
        ("def f():\n    from a.core.lazy import b", {"a.b"}),
    ],
)
def test_imports_are_found_at_any_depth(source, expected):
    assert house.find_imports(ast.parse(source), {"a", "a.b", "a.core.lazy"}) == expected


def test_keywords_of_a_class_are_those_of_its_bases_in_the_package_too():
    class Base:
        def __init__(self, size, **options):
            pass

    class Layer(Base):
        def __init__(self, *names, depth=1, **options):
            pass

    assert sorted(house.list_keywords(Layer)) == ["depth", "size"]
