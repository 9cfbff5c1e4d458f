"""Examples in docstrings run, and everything public has a docstring."""

import ast
import importlib
import inspect
import pathlib
import re
import textwrap
import time

import keras
import pytest

import keras_attention as ka
from keras_attention.part import Part

PACKAGE = pathlib.Path(ka.__file__).parent
EXAMPLE = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
SECONDS = 30  # far above what an example takes; one that trains or downloads does not pass


def examples(text):
    """The fenced Python blocks of `text`, each with the number of lines before its first."""
    for match in EXAMPLE.finditer(text):
        yield text[: match.start(2)].count("\n"), textwrap.dedent(match[2])


def documented(tree):
    """Every module, class and function of a syntax tree that has a docstring, with that."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            yield getattr(node, "name", "module"), node.body[0].value


def collect():
    for path in sorted(PACKAGE.rglob("*.py")):
        for name, docstring in documented(ast.parse(path.read_text())):
            where = f"{path.relative_to(PACKAGE).with_suffix('')}:{name}"
            for line, code in examples(docstring.value):
                # Empty lines above make an error point at the line in the file.
                code = "\n" * (docstring.lineno + line - 1) + code
                yield pytest.param(path, code, id=where)


@pytest.mark.parametrize(("path", "code"), list(collect()))
def test_example_runs(path, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = time.perf_counter()
    exec(compile(code, path, "exec"), {"__name__": "__main__"})
    assert time.perf_counter() - start < SECONDS


def test_examples_are_found():
    text = "One line.\n\n    ```python\n    a = 1\n\n    b = 2\n    ```\n\n```python\nc = 3\n```\n"
    assert list(examples(text)) == [(3, "a = 1\n\nb = 2\n"), (9, "c = 3\n")]


def public():
    """Every class and function that a public folder offers; `layers` offers what others have."""
    for folder in sorted(set(ka.__all__) - {"layers"}):
        module = importlib.import_module(f"keras_attention.{folder}")
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name)):
                yield pytest.param(getattr(module, name), id=f"{folder}.{name}")


@pytest.mark.parametrize("thing", list(public()))
def test_public_things_are_documented(thing):
    assert (thing.__doc__ or "").strip(), "no docstring"
    if inspect.isclass(thing) and issubclass(thing, Part | keras.layers.Layer):
        assert list(examples(thing.__doc__)), "no example"


def new_methods(cls):
    """Public methods of `cls` that override nothing, so that no base class documents them."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    methods = {name: value for name, value in vars(cls).items() if inspect.isroutine(value)}
    return {n: m for n, m in methods.items() if not n.startswith("_") and n not in inherited}


@pytest.mark.parametrize("cls", [p for p in public() if inspect.isclass(p.values[0])])
def test_methods_are_documented(cls):
    assert not [name for name, method in new_methods(cls).items() if not inspect.getdoc(method)]
