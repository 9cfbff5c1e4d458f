"""What an import loads, and which way imports point."""

import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

import keras
import pytest

import keras_attention as ka

PACKAGE = pathlib.Path(ka.__file__).parent

# A folder (or module) imports from those above it only, and those on one line not from each other.
ORDER = [
    {"part", "scope", "checks", "paths", "sharing", "__version__"},
    {"in_place"},
    {"scores", "normalizers", "masks", "positions"},
    {"attention"},
    {"blocks"},
    {"recurrent"},
    {"models"},
    {"generation"},
    {"training"},
    {"data"},
    {"pretrained"},
    {"export"},
    {"visualization"},
    {"layers"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}

HEAVY = (
    "ai_edge_litert",
    "babel",
    "conllu",
    "faiss",
    "jax",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "pydub",
    "sentencepiece",
    "sklearn",
    "tensorflow",
    "tensorflow_datasets",
    "torch",
    "typer",
)


def imported(source, module):
    """Names of the package's folders that `source`, the text of `module`, imports at any depth.

    The package itself counts as `__init__`.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*base, *filter(None, [node.module])])
            whole = base == "keras_attention"
            names |= {f"{base}.{alias.name}" if whole else base for alias in node.names}
    parts = [name.split(".") for name in names]
    return {(p[1:] or ["__init__"])[0] for p in parts if p[0] == "keras_attention"}


def faults(source, module):
    """What `module` imports although it stands above it or beside it."""
    folder = module.split(".")[1]
    return {n for n in imported(source, module) if n != folder and RANK[n] >= RANK[folder]}


def files():
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


@pytest.mark.parametrize("path", files(), ids=module_of)
def test_imports_point_down(path):
    assert not faults(path.read_text(), module_of(path))


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("keras_attention.scores.dot", "from keras_attention import masks", {"masks"}),
        ("keras_attention.scores.dot", "from keras_attention.masks.full import Full", {"masks"}),
        ("keras_attention.scores.dot", "from ..masks import full", {"masks"}),
        ("keras_attention.scores.dot", "from .. import masks", {"masks"}),
        ("keras_attention.scores.dot", "import keras_attention.blocks as b", {"blocks"}),
        ("keras_attention.scores.dot", "def f():\n    import keras_attention", {"__init__"}),
        ("keras_attention.scores.dot", "from keras_attention.scores.base import Score", set()),
        ("keras_attention.scores.dot", "from . import base", set()),
        ("keras_attention.scores.dot", "from keras_attention import part, scope", set()),
        ("keras_attention.data.tfds", "from keras_attention.export import load", {"export"}),
        ("keras_attention.export.load", "from keras_attention import data, __version__", set()),
        ("keras_attention.cli.app", "import keras_attention as ka", set()),
    ],
)
def test_wrong_imports_are_seen(module, source, expected):
    assert faults(source, module) == expected


def run(code, **environment):
    """Runs `code` in a process that has imported nothing yet; it must not fail."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_import_leaves_tensorflow_out(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    run(
        "import sys, keras_attention; assert 'tensorflow' not in sys.modules",
        KERAS_BACKEND=backend,
    )


# Keras loads its backend, and scikit-learn and matplotlib where it finds them. After it nothing
# heavy can be imported any more, not even what is in memory: whoever asks for it fails.
IMPORT_WITHOUT = """
import sys, keras
kept = {name: sys.modules.pop(name) for name in HEAVY if name in sys.modules}
sys.modules.update(dict.fromkeys(HEAVY))
import keras_attention
for name in HEAVY:
    del sys.modules[name]
sys.modules.update(kept)
keras.models.load_model(PATH)
"""


def test_import_needs_nothing_heavy_and_is_enough_to_load_a_model(tmp_path):
    x = keras.Input((5, 4))
    y = ka.attention.MultiHeadAttention(2, 2, position="rotary", mask=ka.masks.Window(2))(x, x)
    loss = ka.training.MaskedSparseCategoricalCrossentropy()
    model = keras.Model(x, y)
    model.compile(loss=loss, metrics=[ka.training.MaskedSparseCategoricalAccuracy()])
    model.save(tmp_path / "model.keras")
    path = str(tmp_path / "model.keras")
    run(f"HEAVY, PATH = {HEAVY}, {path!r}" + IMPORT_WITHOUT, KERAS_BACKEND="tensorflow")


def test_every_folder_is_public():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"cli"}
    assert set(ka.__all__) == folders | {"layers"}


def test_layers_are_all_layers():
    registered = keras.saving.get_custom_objects().values()
    ours = {x for x in registered if x.__module__.startswith("keras_attention.")}
    layers = {x for x in ours if isinstance(x, type) and issubclass(x, keras.layers.Layer)}
    assert layers
    assert layers <= {getattr(ka.layers, name) for name in ka.layers.__all__}


@pytest.mark.parametrize("name", ["-m app keras_attention", "keras-attention.py"])
def test_other_programs_get_all_of_the_package(name, tmp_path):
    """Whatever a program or its arguments are called, only the command itself imports less."""
    (tmp_path / "app").mkdir()
    line = "import keras_attention as ka; print(ka.models.__name__)"
    (tmp_path / "app" / "__init__.py").write_text(line)
    (tmp_path / "app" / "__main__.py").write_text("")
    (tmp_path / "keras-attention.py").write_text(line)
    command = [sys.executable, *name.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "keras_attention.models", done.stderr
