"""Imports: the modules they load, and the direction they point in."""

import ast
import graphlib
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys

import keras
import pytest

import keras_attention as ka
from keras_attention.core import registration
from tests.tables import assert_lists

PACKAGE = pathlib.Path(ka.__file__).parent

# A folder (or module) imports from those above it only, and those on one line not from each other.
ORDER = [
    {"device"},
    {"core", "__version__"},
    {"files"},
    {"scores", "normalizers", "masks", "positions"},
    {"attention"},
    {"blocks"},
    {"recurrent"},
    {"models"},
    {"generation"},
    {"training"},
    {"data"},
    {"pretrained", "distribution"},
    {"export"},
    {"visualization"},
    {"layers"},
    {"tasks"},
    {"web"},
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
    "huggingface_hub",
    "jax",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "pydub",
    "sentencepiece",
    "sklearn",
    "tensorflow",
    "tensorflow_datasets",
    "tokenizers",
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
            if base == "keras_attention.core.lazy":
                names |= {f"keras_attention.{a.name}" for a in node.names if a.name in RANK}
    parts = [name.split(".") for name in names]
    return {(p[1:] or ["__init__"])[0] for p in parts if p[0] == "keras_attention"}


def faults(source, module):
    """Return the modules that `module` imports from a room above it or beside it."""
    folder = module.split(".")[1]
    return {n for n in imported(source, module) if n != folder and RANK[n] >= RANK[folder]}


def files():
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def test_imports_point_down():
    wrong = {module_of(path): faults(path.read_text(), module_of(path)) for path in files()}
    assert not {module: imports for module, imports in wrong.items() if imports}


def find_circle(sources):
    """Return modules that import each other in a circle, at any depth, or None. `sources` is
    {module: source}."""
    graph = {}
    for module, source in sources.items():
        graph[module] = set()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = node.module.replace("keras_attention.core.lazy", "keras_attention")
                names = {f"{base}.{alias.name}" for alias in node.names}
                names = {name if name in sources else node.module for name in names}
            else:
                continue
            graph[module] |= names & set(sources)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]


def test_no_modules_import_each_other():
    sources = {module_of(path).removesuffix(".__init__"): path.read_text() for path in files()}
    assert find_circle(sources) is None


def test_circles_are_seen():
    a, b = "def f():\n    from p import b", "from p.a import f"
    assert set(find_circle({"p.a": a, "p.b": b})) == {"p.a", "p.b"}
    assert find_circle({"p.a": a, "p.b": "import ast"}) is None


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("keras_attention.scores.dot", "from keras_attention import masks", {"masks"}),
        ("keras_attention.scores.dot", "from keras_attention.masks.base import Full", {"masks"}),
        ("keras_attention.scores.dot", "from ..masks import base", {"masks"}),
        ("keras_attention.scores.dot", "from .. import masks", {"masks"}),
        ("keras_attention.scores.dot", "import keras_attention.blocks as b", {"blocks"}),
        ("keras_attention.scores.dot", "def f():\n    import keras_attention", {"__init__"}),
        ("keras_attention.scores.dot", "from keras_attention.scores.base import Score", set()),
        ("keras_attention.scores.dot", "from . import base", set()),
        ("keras_attention.scores.dot", "from keras_attention.core import part, scope", set()),
        (
            "keras_attention.data.readers.tfds",
            "from keras_attention.export import load",
            {"export"},
        ),
        ("keras_attention.export.load", "from keras_attention import data, __version__", set()),
        ("keras_attention.cli.app", "import keras_attention as ka", set()),
        (
            "keras_attention.data.readers.tfds",
            "from keras_attention.core.lazy import pretrained",
            {"pretrained"},
        ),
        (
            "keras_attention.blocks.repeat",
            "from keras_attention.core.lazy import keras, masks",
            set(),
        ),
    ],
)
def test_wrong_imports_are_seen(module, source, expected):
    assert faults(source, module) == expected


def run(code, **environment):
    """Run `code` in a new process. It must not fail."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        cwd=PACKAGE.parent,
    )
    assert result.returncode == 0, result.stderr


# Keras loads its backend, and scikit-learn and matplotlib where it finds them. After it nothing
# heavy can be imported any more. An import fails, even if the module is in memory.
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
    private = {"cli", "core", "device", "files"}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - private
    assert set(ka.__all__) == folders | {"Part", "layers"}


def test_every_registered_name_is_known_before_its_class():
    """Return the registry after all modules of the package are imported."""
    for module in pkgutil.walk_packages(ka.__path__, "keras_attention."):
        if module.name == "keras_attention.__main__":
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # a kernel of a backend that is not installed
            if error.name not in ("jax", "torch"):
                raise
    classes, functions = set(), set()
    for name, value in keras.saving.get_custom_objects().items():
        package, _, name = name.rpartition(">")  # operations of Keras have no package
        path = value.__module__.split(".")
        if package == path[0] == "keras_attention":  # tests register classes of their own
            (classes if isinstance(value, type) else functions).add(f"{path[1]}: {name}")
    for table, registered in (("CLASSES", classes), ("FUNCTIONS", functions)):
        rooms = getattr(registration, table).items()
        listed = {f"{room}: {name}" for room, names in rooms for name in names}
        assert_lists(f"{table} of keras_attention/core/registration.py", listed, registered)


def test_every_part_is_in_the_names_of_its_room():
    """Without a name, a part is missing in `get` and in the tests of all parts."""
    for room in ("scores", "normalizers", "masks", "positions"):
        names = getattr(ka, room).NAMES.values()
        parts = set(registration.CLASSES[room]) - {"Both", "Either", "Not", "Several"}
        parts -= {cls.__name__ for cls in ka.positions.scalings.NAMES.values()}
        assert_lists(f"NAMES of keras_attention/{room}/__init__.py", names, parts)


SAVED = sorted(map(str, (pathlib.Path(__file__).parent / "saved").glob("*.keras")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", ["keras", "keras_attention", "keras_attention.core.keras_internals"]
)
def test_a_bare_import_is_enough_to_load_every_model(first):
    """Whichever module is imported first, and no folder of the package."""
    second = "keras_attention" if first == "keras" else "keras"
    assert len(SAVED) >= 3
    run(
        f"import sys, {first}, importlib.util\n"
        f"importlib.util.find_spec('{second}')  # as programs do to ask whether it is installed\n"
        f"import {second}\n"
        "assert 'keras_attention.attention' not in sys.modules\n"
        f"for path in {SAVED}:\n"
        "    model = keras.models.load_model(path)\n"
        "    keras.Model.from_config(model.get_config())"
    )


@pytest.mark.slow
def test_a_function_is_revived_in_a_layer_of_keras(tmp_path):
    """Not only classes: `gelu_tanh` may be the activation of anybody's layer."""
    inputs = keras.Input((3,))
    outputs = keras.layers.Dense(2, ka.blocks.gelu_tanh)(inputs)
    path = str(tmp_path / "model.keras")
    keras.Model(inputs, outputs).save(path)
    run(
        "import keras_attention, keras\n"
        f"model = keras.models.load_model({path!r})\n"
        f"model.save({path!r})\n"
        f"model = keras.models.load_model({path!r})\n"
        "import numpy as np\n"
        "x = np.ones((1, 3), 'float32')\n"
        "dense = model.layers[-1]\n"
        "expected = keras_attention.blocks.gelu_tanh(x @ np.asarray(dense.kernel) + dense.bias)\n"
        "assert np.allclose(model(x), expected, atol=1e-6)"
    )


@pytest.mark.slow
def test_the_package_says_what_it_has_before_it_imports_it():
    run(
        "import sys, keras_attention as ka\n"
        "assert set(ka.__all__) < set(dir(ka))\n"
        "assert not hasattr(ka, 'nothing')\n"
        f"assert not {{*{HEAVY}, 'keras', 'transformers'}} & {{*sys.modules}}\n"
        "assert ka.attention.MultiHeadAttention is ka.layers.MultiHeadAttention\n"
        "from keras_attention import *\n"
        "assert models is ka.models"
    )


HELP = """
import runpy, sys
sys.argv = ["keras-attention", "--help"]
try:
    runpy.run_module("keras_attention", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert end.code == 0, end.code
assert not {"keras", "tensorflow", "jax", "torch", "numpy"} & {*sys.modules}
"""


def test_help_answers_without_keras():
    run(HELP)


@pytest.mark.slow
def test_tasks_are_imported_without_keras():
    run(
        "import sys\n"
        "from keras_attention.tasks.registry import TASKS, get_task_class\n"
        "assert len({get_task_class(name) for name in TASKS}) > 10\n"
        "assert not {'keras', 'tensorflow', 'h5py', 'ai_edge_litert'} & {*sys.modules}"
    )


def test_layers_are_all_layers():
    for name in ka.__all__:
        getattr(ka, name)
    classes = {x for x in keras.saving.get_custom_objects().values() if isinstance(x, type)}
    ours = {x for x in classes if x.__module__.startswith("keras_attention.")}
    layers = {x for x in ours if issubclass(x, keras.layers.Layer)}
    assert layers
    assert layers <= {getattr(ka.layers, name) for name in ka.layers.__all__}
