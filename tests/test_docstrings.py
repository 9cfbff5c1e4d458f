"""Examples in docstrings run, and everything public has a docstring."""

import ast
import importlib
import inspect
import pathlib
import re
import socket
import textwrap

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.part import Part

PACKAGE = pathlib.Path(ka.__file__).parent
EXAMPLE = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
# Examples that train or export are slow.
LONG = (
    *("tasks/", "export/", "device/litert_generator:", "data/masking:", "generation/generate:"),
    "generation/speech_stream:",
    *("generation/streaming:", "models/constituency_parser:", "models/image_to_sequence:"),
    *("models/speech_to_text:", "training/chunked_logits:", "training/precision:"),
    *("training/reset_memory:", "training/two_passes:"),
)
BATCHES = 50  # an example may train for so many steps: it shows a use, not a result


def examples(text):
    """Return the Python blocks of `text`, each with the number of lines before it."""
    for match in EXAMPLE.finditer(text):
        yield text[: match.start(2)].count("\n"), textwrap.dedent(match[2])


def documented(tree):
    """Yield each module, class and function of a syntax tree with its docstring, if it has one."""
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
                long = where.startswith(LONG)
                yield pytest.param(path, code, id=where, marks=[pytest.mark.slow] if long else [])


@pytest.fixture
def batches(monkeypatch):
    """Collect the batches that `fit` trains on, and refuse connections to other machines."""
    trained, fit, connect = [], keras.Model.fit, socket.socket.connect

    def count_batches(self, *args, callbacks=(), **kwargs):
        count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda k, logs: trained.append(k))
        return fit(self, *args, callbacks=[*(callbacks or ()), count], **kwargs)

    def stay_here(self, address):
        assert self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1", "localhost"), (
            f"an example connects to {address}"
        )
        return connect(self, address)

    monkeypatch.setattr(keras.Model, "fit", count_batches)
    monkeypatch.setattr(socket.socket, "connect", stay_here)
    return trained


@pytest.mark.parametrize(("path", "code"), list(collect()))
def test_example_runs(path, code, batches, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, path, "exec"), {"__name__": "__main__"})
    assert len(batches) <= BATCHES


def test_example_batches_are_counted_and_connections_refused(batches):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((6, 2)), np.ones((6, 1)), batch_size=2, epochs=3, verbose=0)
    assert len(batches) == 9
    with pytest.raises(AssertionError, match="connects to"), socket.socket() as other:
        other.connect(("192.0.2.1", 80))


def test_examples_are_found():
    text = "One line.\n\n    ```python\n    a = 1\n\n    b = 2\n    ```\n\n```python\nc = 3\n```\n"
    assert list(examples(text)) == [(3, "a = 1\n\nb = 2\n"), (9, "c = 3\n")]


def public():
    """Return every class and function of the public folders. `layers` repeats them."""
    for folder in sorted(set(ka.__all__) - {"Part", "layers"}):
        module = importlib.import_module(f"keras_attention.{folder}")
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name)):
                yield f"{folder}.{name}", getattr(module, name)


def test_public_classes_and_functions_have_docstrings():
    assert not [name for name, value in public() if not (value.__doc__ or "").strip()]


def test_public_parts_and_layers_have_examples():
    classes = {name: value for name, value in public() if inspect.isclass(value)}
    shown = {n: c for n, c in classes.items() if issubclass(c, Part | keras.layers.Layer)}
    assert len(shown) > 100 and not [n for n, c in shown.items() if not list(examples(c.__doc__))]


def new_methods(cls):
    """Public methods of `cls` that override nothing, so that no base class documents them."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    methods = {name: value for name, value in vars(cls).items() if inspect.isroutine(value)}
    return {n: m for n, m in methods.items() if not n.startswith("_") and n not in inherited}


def test_public_methods_have_docstrings():
    methods = {
        f"{name}.{method}": value
        for name, cls in public()
        if inspect.isclass(cls)
        for method, value in new_methods(cls).items()
    }
    assert len(methods) > 100
    assert not [name for name, method in methods.items() if not inspect.getdoc(method)]
