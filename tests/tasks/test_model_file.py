"""The `.keras` file of a preset, without entries that Keras added later."""

import inspect
import json
import zipfile

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.tasks.model_file import ADDED, rewrite_model_file, save_model
from tests.conftest import ROOT

# Constructor arguments of Keras 3.12.0: `{"layers.Dense": "activation units ..."}`.
KERAS_3_12 = json.loads((ROOT / "tests" / "saved" / "keras_3.12.json").read_text())


def read_member(path, name):
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def list_entries(config):
    """List the entries (name, value) of all dicts in a config."""
    if isinstance(config, dict):
        yield from config.items()
    for value in config.values() if isinstance(config, dict) else config:
        if isinstance(value, dict | list):
            yield from list_entries(value)


def make_model(**options):
    """Make a model with a layer of each class with new entries, also nested."""
    tokens = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(9, 8)(tokens)
    inside = [keras.layers.Dense(8), keras.layers.BatchNormalization(**options)]
    x = keras.Sequential(inside)(x)
    x = keras.layers.EinsumDense("btd,dnh->btnh", (6, 2, 4))(x)
    x = keras.layers.Reshape((6, 8))(x)
    x = ka.blocks.EncoderBlock(ka.attention.MultiHeadAttention(2, 4), ka.blocks.FeedForward(8))(x)
    return keras.Model(tokens, x)


def test_no_entry_is_written_that_keras_3_12_refuses(tmp_path):
    path, model = tmp_path / "model.keras", make_model()
    model.save(path)
    before = {name: read_member(path, name) for name in ("metadata.json", "model.weights.h5")}
    config = keras.saving.load_model(path).get_config()
    rewrite_model_file(path)
    written = [*list_entries(json.loads(read_member(path, "config.json")))]
    assert [name for name, _ in written if name == "units"]
    assert not [name for name, _ in written if name in ADDED]
    assert before == {name: read_member(path, name) for name in before}
    loaded = keras.saving.load_model(path)
    assert loaded.get_config() == config
    x = np.arange(12).reshape(2, 6) % 9
    np.testing.assert_array_equal(loaded(x), model(x))


def test_an_entry_with_another_value_is_kept(tmp_path):
    if "renorm" not in inspect.signature(keras.layers.BatchNormalization).parameters:
        pytest.skip(f"Keras {keras.__version__} has no batch renormalization")
    save_model(make_model(renorm=True, renorm_momentum=0.9), tmp_path / "model.keras")
    written = [*list_entries(json.loads(read_member(tmp_path / "model.keras", "config.json")))]
    assert ("renorm", True) in written and ("renorm_momentum", 0.9) in written
    inside = keras.saving.load_model(tmp_path / "model.keras").layers[2].layers[-1]
    assert inside.renorm and inside.renorm_momentum == 0.9


def test_arguments_that_keras_added_are_all_listed():
    """Check the arguments of the installed Keras. Add a new one to `ADDED` with its default."""
    missing = {}
    for name, arguments in KERAS_3_12.items():
        family, kind = name.split(".")
        made = getattr(getattr(keras, family), kind).__init__
        for argument, parameter in inspect.signature(made).parameters.items():
            named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            if not named or argument in ("self", *arguments.split()):
                continue
            if argument not in ADDED or ADDED[argument] != parameter.default:
                missing[f"{name}({argument})"] = parameter.default
    assert not missing


@pytest.mark.parametrize(
    "path", sorted((ROOT / "saved_models").glob("*/model.keras")), ids=lambda path: path.parent.name
)
def test_shipped_presets_have_no_added_entry(path):
    written = list_entries(json.loads(read_member(path, "config.json")))
    assert not [name for name, value in written if name in ADDED and value == ADDED[name]]


def test_weights_too_large_for_float16_are_refused(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.set_weights([np.full((1, 1), 1e6, "float32"), np.zeros(1, "float32")])
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="has values up to 1e\\+06, too large for float16"):
        rewrite_model_file(tmp_path / "model.keras", "float16")
    assert keras.saving.load_model(tmp_path / "model.keras").get_weights()[0][0, 0] == 1e6
