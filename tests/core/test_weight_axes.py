"""Roles of weight axes: of classes, of single layers, derived, and invalid ones."""

import keras
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals
from keras_attention.core.weight_axes import STOCK, find_axes, name_axes


def roles(layer):
    """Return {path of a weight below the layer: its roles}."""
    return {
        weight.path.removeprefix(f"{layer.name}/"): find_axes(each, weight.name, weight.shape)
        for each in keras_internals.all_layers(layer)
        for weight in keras_internals.own_variables(each)
    }


def test_grouped_attention_has_heads_of_two_kinds():
    attention = ka.attention.MultiHeadAttention(4, 3, num_key_value_heads=2, name="attention")
    attention.build((None, None, 8), (None, None, 8))
    assert roles(attention) == {
        "query/kernel": ("embed", "heads", "head_dim"),
        "query/bias": ("heads", "head_dim"),
        "key/kernel": ("embed", "key_value_heads", "head_dim"),
        "key/bias": ("key_value_heads", "head_dim"),
        "value/kernel": ("embed", "key_value_heads", "head_dim"),
        "value/bias": ("key_value_heads", "head_dim"),
        "attention_output/kernel": ("heads", "head_dim", "embed"),
        "attention_output/bias": ("embed",),
    }


def test_an_output_of_several_axes_repeats_its_role():
    attention = ka.attention.MultiHeadAttention(2, 3, output_shape=(4, 5))
    attention.build((None, None, 8), (None, None, 8))
    actual = roles(attention)
    assert actual["attention_output/kernel"] == ("heads", "head_dim", "embed", "embed")
    assert actual["attention_output/bias"] == ("embed", "embed")


def test_feed_forward_widens_and_narrows():
    layer = ka.blocks.FeedForward(6, "swiglu")
    layer.build((None, None, 4))
    actual = roles(layer)
    assert actual["gate/kernel"] == actual["intermediate/kernel"] == ("embed", "mlp")
    assert actual["output/kernel"] == ("mlp", "embed") and actual["output/bias"] == ("embed",)


def test_a_loaded_model_has_the_same_roles(tmp_path):
    model = ka.models.sequence_labeler(
        20, 3, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=6
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    actual = roles(model)
    assert roles(loaded) == actual
    assert ("mlp", "embed") in actual.values() and ("heads", "head_dim", "embed") in actual.values()


def test_lora_and_quantized_weights_have_roles():
    attention = ka.attention.MultiHeadAttention(2, 4)
    attention.build((None, None, 8), (None, None, 8))
    attention.enable_lora(2)
    assert roles(attention)["query/lora_kernel_a"] == ("embed", "heads", "rank")
    assert roles(attention)["query/lora_kernel_b"] == ("rank", "head_dim")
    for mode in ("int8", "int4"):
        dense = name_axes(keras.layers.Dense(6), kernel=("mlp", "embed"))
        dense.build((None, 8))
        dense.enable_lora(2)
        dense.quantize(mode)
        assert roles(dense)["kernel"] == ("mlp", "embed")
        assert roles(dense)["lora_kernel_a"] == ("mlp", "rank")
        assert roles(dense)["lora_kernel_b"] == ("rank", "embed")


SHAPES = {
    keras.layers.Dense: ((5,), (None, 4)),
    keras.layers.EinsumDense: (("abc,cde->abde", (None, 2, 3)), (None, None, 4)),
    keras.layers.Embedding: ((5, 4), (None, None)),
    keras.layers.Conv1D: ((5, 2), (None, 6, 4)),
    keras.layers.Conv2D: ((5, 2), (None, 6, 6, 4)),
    keras.layers.Conv3D: ((5, 2), (None, 6, 6, 6, 4)),
    keras.layers.DepthwiseConv1D: ((2,), (None, 6, 4)),
    keras.layers.DepthwiseConv2D: ((2,), (None, 6, 6, 4)),
    keras.layers.SimpleRNNCell: ((5,), (None, 4)),
    keras.layers.GRUCell: ((5,), (None, 4)),
    keras.layers.LSTMCell: ((5,), (None, 4)),
}


def test_every_stock_layer_is_tested():
    assert set(SHAPES) == set(STOCK)


@pytest.mark.parametrize("cls", STOCK, ids=lambda cls: cls.__name__)
def test_stock_layers_have_roles(cls):
    arguments, shape = SHAPES[cls]
    layer = cls(*arguments)
    layer.build(shape)
    actual = {weight.name: find_axes(layer, weight.name, weight.shape) for weight in layer.weights}
    assert {name: len(axes) for name, axes in actual.items()} == {
        weight.name: len(weight.shape) for weight in layer.weights
    }
    if cls is keras.layers.EinsumDense:
        assert actual["kernel"] == ("embed", "features", "features")


class Shifted(ka.positions.Learned):
    """A user's layer with a weight besides those of its base."""

    weight_axes = {"shift": ("heads", "head_dim")}


def test_a_subclass_adds_to_its_bases():
    assert find_axes(Shifted(4), "shift", (2, 3)) == ("heads", "head_dim")
    assert find_axes(Shifted(4), "table", (4, 3)) == ("rows", "embed")
    assert find_axes(Shifted(4), "other", (4, 3)) is None


def test_later_roles_replace_earlier_ones():
    dense = name_axes(keras.layers.Dense(3), kernel=("mlp", "embed"))
    assert find_axes(dense, "kernel", (4, 3)) == ("mlp", "embed")
    name_axes(dense, kernel=("embed", "inner"))
    assert find_axes(dense, "kernel", (4, 3)) == ("embed", "inner")


@pytest.mark.parametrize("roles", [("embed", "head"), "embed", (..., "embed")])
def test_unknown_roles_are_refused(roles):
    pattern = repr(roles).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=f"Dense 'd'.*{pattern}.*embed, latent"):
        name_axes(keras.layers.Dense(3, name="d"), kernel=roles)

    class Own(keras.layers.Layer):
        weight_axes = {"table": roles}

    with pytest.raises(ValueError, match=f"Own 'own'.*'table' are {pattern}"):
        find_axes(Own(name="own"), "table", (3, 4))


def test_a_wrong_number_of_roles_is_refused():
    dense = name_axes(keras.layers.Dense(3, name="d"), kernel=("embed", "heads", "head_dim"))
    with pytest.raises(
        ValueError, match=r"Dense 'd' names 3 axes of its weight 'kernel'.*\(4, 3\)"
    ):
        find_axes(dense, "kernel", (4, 3))
