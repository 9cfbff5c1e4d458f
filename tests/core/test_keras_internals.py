"""Private names of Keras are used in only one file, and behave as expected."""

import ast
import pathlib

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import keras_internals

PACKAGE = pathlib.Path(ka.__file__).parent

# Private attributes of Keras's objects that code might use.
PRIVATE = {
    "_call_context_args",
    "_call_has_training_arg",
    "_call_signature",
    "_flatten_layers",
    "_flatten_modules",
    "_functional",
    "_inbound_nodes",
    "_initial_epoch",
    "_initializer",
    "_keras_history",
    "_keras_mask",
    "_layers",
    "_layout",
    "_lock",
    "_nodes",
    "_open_name_scope",
    "_operations",
    "_operations_by_depth",
    "_outbound_nodes",
    "_tracker",
}


def private_uses(source):
    """List the private names of Keras that a source text uses."""
    actual = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            actual |= {alias.name for alias in node.names if alias.name.startswith("keras.src")}
        elif isinstance(node, ast.ImportFrom):
            actual |= {x for x in [node.module or ""] if x.startswith("keras.src")}
            own = node.module == "keras" and any(alias.name == "src" for alias in node.names)
            actual |= {"keras.src"} if own else set()
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "keras.src":
            actual.add("keras.src")
        elif isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            actual |= {node.attr} - own_attributes(source)
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:  # getattr(x, "_name")
            actual |= {node.value} - own_attributes(source)
    return actual


def own_attributes(source):
    """List the attributes of `self` and the methods that a file defines."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if ast.unparse(node.value) == "self" else set()
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return names


def test_only_one_file_uses_private_names_of_keras():
    files = set(PACKAGE.rglob("*.py")) - {PACKAGE / "core/keras_internals.py"}
    uses = {str(path): private_uses(path.read_text()) for path in files}
    assert not {path: names for path, names in uses.items() if names}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import keras\nkeras.src.backend.x()", {"keras.src"}),
        ("from keras.src.backend import get_keras_mask", {"keras.src.backend"}),
        ("import keras.src.saving as s", {"keras.src.saving"}),
        ("from keras import src", {"keras.src"}),
        ("model._flatten_layers()", {"_flatten_layers"}),
        ("getattr(model, '_flatten_layers', list)()", {"_flatten_layers"}),
        ("y._keras_history.operation._outbound_nodes", {"_keras_history", "_outbound_nodes"}),
        ("self._layers = []\nself._layers.append(x)", set()),
        ("from keras_attention.core.keras_internals import get_mask", set()),
    ],
)
def test_the_check_finds_private_names(source, expected):
    assert private_uses(source) == expected


def nested():
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    x = keras.layers.Embedding(9, 4, name="table")(tokens)
    inside = keras.Sequential([keras.layers.Dense(4, name="inside")], name="box")
    return keras.Model(tokens, inside(x))


def test_all_and_direct_layers():
    model = nested()
    box = model.get_layer("box")

    def names(layers):
        return {layer.name for layer in layers}

    assert {"table", "box", "inside", model.name} <= names(keras_internals.all_layers(model))
    assert {"table", "inside"} <= names(keras_internals.inner_layers(model))
    assert model.name not in names(keras_internals.inner_layers(model))
    assert {"table", "box"} <= names(keras_internals.direct_layers(model))
    assert "inside" not in names(keras_internals.direct_layers(model))
    assert names(keras_internals.direct_layers(box)) >= {"inside"}


def test_producers_and_consumers():
    model = nested()
    assert keras_internals.producer(model.inputs[0]).name == "tokens"
    assert keras_internals.producer(model.outputs[0]) is model.get_layer("box")
    ((operation, inputs),) = keras_internals.consumers(model.inputs[0])
    assert operation is model.get_layer("table")
    assert [x.name for x in inputs] == ["tokens"]


def test_masks_are_set_and_read():
    x = ops.ones((2, 3, 4))
    assert keras_internals.get_mask(x) is None
    mask = ops.convert_to_tensor([[True, True, False], [True, False, False]])
    keras_internals.set_mask(x, mask)
    assert keras_internals.get_mask(x) is mask
    y = keras.layers.Activation("relu")(x)
    np.testing.assert_array_equal(keras_internals.get_mask(y), mask)


def test_takes_training_of_cells():
    assert keras_internals.takes_training(keras.layers.LSTMCell(3))
    assert not keras_internals.takes_training(keras.layers.Activation("relu"))


class Wrapper(keras.layers.Layer):
    def call(self, query, **kwargs):
        return query


def test_call_arguments_are_listed_in_order():
    arguments = keras_internals.list_call_arguments(keras.layers.MultiHeadAttention(1, 2))
    assert arguments[:5] == ("query", "value", "key", "query_mask", "value_mask")


def test_takes_argument_recognizes_call_arguments_of_layers():
    attention = keras.layers.MultiHeadAttention(2, 4)
    assert keras_internals.takes_argument(attention, "value_mask")
    assert not keras_internals.takes_argument(attention, "segment_ids")
    assert keras_internals.takes_argument(Wrapper(), "segment_ids")


def test_keras_cells_draw_dropout_before_the_loop():
    base = keras_internals.CellWithDropout.__base__
    assert isinstance(keras.layers.GRUCell(2), base)
    assert isinstance(keras.layers.LSTMCell(2), base)


def test_shared_objects_are_saved_once():
    layer = keras.layers.Dense(3)
    with keras_internals.share_objects():
        configs = [keras.saving.serialize_keras_object(layer) for _ in range(2)]
    with keras_internals.share_objects():
        copies = [keras.saving.deserialize_keras_object(config) for config in configs]
    assert copies[0] is copies[1]


def test_a_restored_fit_starts_at_the_first_epoch(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    seen = []

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise InterruptedError

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            seen.append(keras_internals.first_epoch(self.model))

    backup = keras.callbacks.BackupAndRestore(tmp_path, double_checkpoint=False)
    with pytest.raises(InterruptedError):
        model.fit(x, y, epochs=3, verbose=0, callbacks=[backup, Stop()])
    model.fit(x, y, epochs=3, verbose=0, callbacks=[backup, Look()])
    assert seen == [2]


def test_initial_values_may_be_drawn_later():
    with keras.StatelessScope():
        late = keras.Variable(initializer="ones", shape=(2,))
        assert not keras_internals.has_value(late)
        keras_internals.wrap_initializer(late, lambda value: 3 * value)
    np.testing.assert_array_equal(
        late, [3.0, 3.0]
    )  # values are drawn at the end of the outermost scope
    assert keras_internals.has_value(late)


def test_find_maker_returns_the_layer_of_a_variable():
    """Search the layer of the innermost name scope, then the layers inside it."""
    dense = keras.layers.Dense(3, name="dense")
    outer = keras.Sequential([keras.Input((2,)), dense], name="outer")
    state = keras.random.SeedGenerator(0).state
    assert keras_internals.find_maker(dense.kernel) is None
    with keras.name_scope("outer", caller=outer):
        assert keras_internals.find_maker(dense.kernel) is dense
        assert keras_internals.find_maker(state) is None
        with keras.name_scope("dense", caller=dense, deduplicate=False):
            made = keras.Variable(np.ones(3), name="made")
            assert keras_internals.find_maker(made) is dense
        with keras.name_scope("drawing", caller=keras.random.SeedGenerator(0)):
            assert keras_internals.find_maker(keras.Variable(np.ones(3), name="made")) is None
