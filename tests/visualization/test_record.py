"""`record_attention`, with a simple layer and with the package's own."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core import scope


class Even(keras.layers.Layer):
    """Attends to all positions equally, and records its weights."""

    def call(self, x):
        batch, length, _ = ops.shape(x)
        weights = ops.ones((batch, 2, length, length)) / ops.cast(length, x.dtype)
        looking = scope.current(scope.Recording)
        if looking is not None:
            looking.record(self, weights)
        return x


def model_of(*names, name):
    tokens = keras.Input((None, 3))
    x = tokens
    for layer in names:
        x = Even(name=layer)(x)
    return keras.Model(tokens, x, name=name)


def test_every_layer_is_recorded_in_order():
    model = model_of("first", "second", name="model")
    with ka.visualization.record_attention(model) as maps:
        model(np.ones((5, 7, 3), "float32"))
    assert list(maps) == ["first", "second"]
    np.testing.assert_allclose(maps["first"], np.full((5, 2, 7, 7), 1 / 7), rtol=1e-6)


def test_nothing_is_recorded_outside_the_block():
    model = model_of("first", name="model")
    with ka.visualization.record_attention(model) as maps:
        pass
    model(np.ones((1, 2, 3), "float32"))
    assert maps == {}


def test_recording_ends_after_an_error():
    model = model_of("first", name="model")
    with pytest.raises(RuntimeError), ka.visualization.record_attention(model) as maps:
        raise RuntimeError
    model(np.ones((1, 2, 3), "float32"))
    assert maps == {}


def test_a_layer_that_runs_again_is_numbered():
    tokens = keras.Input((None, 3))
    shared = Even(name="shared")
    model = keras.Model(tokens, shared(shared(shared(tokens))))
    with ka.visualization.record_attention(model) as maps:
        model(np.ones((1, 2, 3), "float32"))
    assert list(maps) == ["shared", "shared:1", "shared:2"]


def test_another_model_with_the_same_names_is_not_recorded():
    looked_at, other = model_of("same", name="a"), model_of("same", name="b")
    with ka.visualization.record_attention(looked_at) as maps:
        other(np.ones((1, 2, 3), "float32"))
        assert maps == {}
        looked_at(np.ones((1, 5, 3), "float32"))
        other(np.ones((1, 2, 3), "float32"))
    assert {path: tuple(w.shape) for path, w in maps.items()} == {"same": (1, 2, 5, 5)}


def test_a_nested_model_is_recorded_alone_or_with_the_outer_one():
    inner = model_of("inside", name="inner")
    tokens = keras.Input((None, 3))
    outer = keras.Model(tokens, Even(name="outside")(inner(tokens)), name="outer")
    x = np.ones((1, 2, 3), "float32")
    with (
        ka.visualization.record_attention(outer) as maps,
        ka.visualization.record_attention(inner) as inner_maps,
    ):
        outer(x)
    assert (len(maps), len(inner_maps)) == (0, 1)  # recorded by the innermost block
    with ka.visualization.record_attention(outer) as maps:
        outer(x)
    assert list(maps) == ["inside", "outside"]


def test_traced_code_leaves_no_symbolic_tensors():
    model = model_of("first", name="model")
    with ka.visualization.record_attention(model) as maps:
        model.predict(np.ones((1, 2, 3), "float32"), verbose=0)
        model(keras.Input((None, 3)))
    assert maps == {}


def test_the_error_for_a_missing_path_lists_the_others():
    model = model_of("first", name="model")
    with ka.visualization.record_attention(model) as maps:
        model(np.ones((1, 2, 3), "float32"))
    with pytest.raises(KeyError, match="under 'last'. Recorded: first. .*`model\\(x\\)`"):
        maps["last"]


def test_weights_equal_the_returned_scores():
    tokens = keras.Input((None, 8), name="tokens")
    layer = ka.attention.MultiHeadAttention(num_heads=2, key_dim=5, mask=ka.masks.Causal())
    output, scores = layer(tokens, tokens, return_attention_scores=True)
    model = keras.Model(tokens, [output, scores])
    x = np.random.default_rng(3).normal(size=(3, 7, 8)).astype("float32")
    with ka.visualization.record_attention(model) as maps:
        _, expected = model(x)
    (weights,) = maps.values()
    np.testing.assert_array_equal(weights, expected)
    assert np.triu(weights[0, 0], 1).max() == 0 and weights.shape == (3, 2, 7, 7)


def test_paths_are_the_same_before_and_after_saving(tmp_path):
    ids = dict(num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=8)
    model = ka.models.sequence_labeler(9, 3, **ids)
    model.save(tmp_path / "model.keras")
    x = np.ones((1, 5), "int32")
    for each in (model, keras.saving.load_model(tmp_path / "model.keras")):
        with ka.visualization.record_attention(each) as maps:
            each(x)
        assert list(maps) == ["block_0/attention", "block_1/attention"]
    built = [layer.path for layer in model._flatten_layers() if layer.name == "attention"]
    assert built == list(maps)


def test_nested_models_with_equal_names_have_different_paths():
    tokens = keras.Input((None, 3))
    left, right = model_of("look", name="left"), model_of("look", name="right")
    model = keras.Model(tokens, right(left(tokens)))
    with ka.visualization.record_attention(model) as maps:
        model(np.ones((1, 2, 3), "float32"))
    assert list(maps) == ["left/look", "right/look"]


def test_a_layer_without_a_model_is_recorded_under_its_name():
    layer = ka.attention.MultiHeadAttention(1, 2, name="alone")
    x = np.ones((1, 2, 3), "float32")
    with ka.visualization.record_attention(layer) as maps:
        layer(x, x)
    assert list(maps) == ["alone"]
