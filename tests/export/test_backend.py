"""What must be there to export, and that nothing is loaded before it is needed."""

import ast
import os
import pathlib
import sys

import keras
import pytest

from keras_attention.export import ExportError, backend, to_litert, to_saved_model


def imported_at_once(path):
    """Return the packages that a file imports at its own import."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_heavy_packages_are_imported_where_they_are_used():
    files = list(pathlib.Path(backend.__file__).parent.rglob("*.py"))
    allowed = set(sys.stdlib_module_names) | {"keras", "keras_attention", "numpy"}
    assert len(files) > 20
    for path in files:
        assert set(imported_at_once(path)) <= allowed, path.name


@pytest.mark.parametrize("export", [to_saved_model, to_litert])
def test_other_backends_get_advice(export, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ExportError, match="Keras runs on 'jax' here.* KERAS_BACKEND=tensorflow"):
        export(None, tmp_path / "m.tflite")


def test_a_missing_runtime_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ExportError, match=r"pip install 'keras-attention-zoo\[export\]'"):
        backend.import_litert()


def test_versions_are_the_installed_ones():
    versions = backend.find_versions("ai_edge_litert", "no_such_package")
    assert versions["keras"] == keras.__version__ and "no_such_package" not in versions
    assert versions["ai_edge_litert"][0].isdigit()


def test_quiet_gives_the_terminal_back(capfd):
    os.write(2, b"before\n")
    with pytest.raises(ZeroDivisionError), backend.hide_stderr():
        os.write(2, b"hidden\n")
        raise ZeroDivisionError
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"
