"""`keras.config.set_image_data_format("channels_first")` changes nothing here."""

import ast
import inspect
import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests import contract
from tests.grids import quick
from tests.models.test_builders import BUILT

SOURCE = pathlib.Path(ka.__file__).parent
CONVOLVING = ("characters", "words", "parser", "image", "vision", "object", "speech")
CASES = [name for name in BUILT if any(word in name for word in CONVOLVING)]
FREE_SIZES = {"waveform": 4000, "features": 24}  # for unknown axes, and 5 for all other inputs


@pytest.fixture
def channels_first():
    """Return a function that selects this layout until the test ends."""
    before = keras.config.image_data_format()
    yield lambda: keras.config.set_image_data_format("channels_first")
    keras.config.set_image_data_format(before)


def draw_inputs(model):
    random = np.random.default_rng(0)

    def draw(symbol):
        size = FREE_SIZES.get(symbol.name, 5)
        shape = (2, *(size if axis is None else axis for axis in symbol.shape[1:]))
        if "int" in symbol.dtype:
            return np.maximum(random.integers(0, 2, size=shape), np.arange(shape[-1]) == 0)
        return random.normal(size=shape).astype("float32")

    return keras.tree.map_structure(draw, model.input)


@pytest.mark.parametrize("name", quick(CASES, "sequence_labeler_characters", "image_encoder"))
def test_builders_give_the_same_numbers(name, channels_first, tmp_path):
    model = BUILT[name]()
    inputs = draw_inputs(model)
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    channels_first()
    again = BUILT[name]()
    again.set_weights(model.get_weights())
    contract.close(again(inputs), expected, atol=1e-5)
    contract.close(keras.saving.load_model(tmp_path / "model.keras")(inputs), expected, atol=1e-5)


def test_pictures_are_changed_at_random_in_the_same_way(channels_first):
    pictures = np.random.default_rng(0).random((2, 8, 6, 3)).astype("float32")
    settings = dict(shift=0.2, flip=True, rotation=0.1, zoom=0.2, brightness=0.1, contrast=0.1)
    expected = ka.data.image_augmentation(**settings, seed=3)(pictures, training=True)
    channels_first()
    actual = ka.data.image_augmentation(**settings, seed=3)(pictures, training=True)
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def list_functions_with_a_layout():
    """Return the names of layers and functions of Keras with an argument `data_format`."""
    owners = keras.layers, keras.ops, keras.ops.image, keras.ops.nn, keras.utils
    return {
        name for module in owners for name in dir(module) if takes_layout(getattr(module, name))
    }


def takes_layout(value):
    if inspect.isclass(value):
        made_by = [cls.__init__ for cls in value.__mro__ if "__init__" in vars(cls)]
    else:
        made_by = [value] if inspect.isfunction(value) else []
    return any("data_format" in inspect.signature(each).parameters for each in made_by)


def find_layout_dicts(tree):
    """Return the names of dicts that hold `data_format`, directly or by another such dict."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            keys = [ast.unparse(key or value) for key, value in pairs]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            keys = [repr(keyword.arg) for keyword in node.value.keywords]
        else:
            continue
        if names.intersection(keys) or "'data_format'" in keys:
            names.add(ast.unparse(node.targets[0]))
    return names


def find_calls_without_layout(source, names):
    """Yield the lines of calls such as `layers.Conv1D(...)` without `data_format=`."""
    tree = ast.parse(source)
    layout_dicts = find_layout_dicts(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(k.arg == "data_format" for k in node.keywords):
            continue
        module, _, name = ast.unparse(node.func).rpartition(".")
        expanded = [ast.unparse(k.value) for k in node.keywords if k.arg is None]
        if name in names and module.split(".")[-1] in ("layers", "ops", "image", "nn", "utils"):
            if not module.startswith("tf.") and not layout_dicts.intersection(expanded):
                yield node.lineno


def test_every_call_says_its_layout():
    names = list_functions_with_a_layout()
    assert {"Conv2D", "DepthwiseConv1D", "RandomZoom", "GlobalMaxPooling1D", "conv"} <= names
    missing = "keras.layers.Conv1D(3, 2)\na = {'padding': 1}\nops.max_pool(x, 2, **a)"
    assert list(find_calls_without_layout(missing, names)) == [1, 3]
    present = "a = {'data_format': 1}\nb = {'x': 2, **a}\nlayers.Conv1D(3, 2, **b)"
    assert not list(find_calls_without_layout(present, names))
    calls = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in find_calls_without_layout(path.read_text(), names)
    }
    assert not calls, 'give data_format="channels_last", the documented layout'
