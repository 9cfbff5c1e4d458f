import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import endpoint
from keras_attention.export.checks.report import Tensor


def ids(name, length=None, dtype="int32"):
    return keras.Input((length,), dtype=dtype, name=name)


def embed(tensor, name):
    return keras.layers.Embedding(9, 4, name=name)(tensor)


def test_one_input_and_one_output_have_the_names_of_their_layers():
    tokens = ids("token_ids")
    point = endpoint.make_endpoint(keras.Model(tokens, embed(tokens, "logits")))
    assert point.inputs == (Tensor("token_ids", (None, None), "int32"),)
    assert point.outputs == ("logits",)
    assert point.lengths == {"token_ids": (1,)}
    assert point.call({"token_ids": np.ones((2, 3), "int32")})["logits"].shape == (2, 3, 4)


@pytest.mark.parametrize("kind", [list, dict])
def test_several_inputs_keep_their_places(kind):
    first, second = ids("zebra"), ids("ant")
    tensors = [first, second] if kind is list else {"zebra": first, "ant": second}
    outputs = embed(first, "wide") + 100.0, embed(second, "narrow")
    model = keras.Model(tensors, {"near": outputs[1], "far": outputs[0]})
    point = endpoint.make_endpoint(model)
    assert {tensor.name for tensor in point.inputs} == {"zebra", "ant"}
    results = point.call({"ant": np.ones((1, 2), "int32"), "zebra": np.ones((1, 5), "int32")})
    assert results["far"].shape == (1, 5, 4) and np.min(results["far"]) > 50
    assert results["near"].shape == (1, 2, 4) and np.max(results["near"]) < 50


def test_outputs_of_one_layer_are_numbered():
    tokens = ids("token_ids")
    shared = keras.layers.Dense(2, name="head")
    model = keras.Model(tokens, [shared(embed(tokens, "a")), shared(embed(tokens, "b"))])
    assert endpoint.make_endpoint(model).outputs == ("head", "head_1")


@pytest.mark.parametrize(
    "inputs, exported", [("token-ids.1", "token_ids_1"), ("größe", "gr__e"), ("长", "_")]
)
def test_names_are_made_of_ascii_letters_digits_and_underscores(inputs, exported):
    tokens = ids(inputs)
    point = endpoint.make_endpoint(keras.Model(tokens, embed(tokens, "x")))
    assert point.inputs[0].name == exported


@pytest.mark.parametrize("kind, name", [("input", "self"), ("layer", "größe"), ("layer", "a b")])
def test_names_that_graphs_do_not_take_are_refused(kind, name, tmp_path):
    x = keras.Input((4,), name=name if kind == "input" else "x")
    y = keras.layers.Dense(2, name=name if kind == "layer" else "y")(x)
    for export, file in ((ka.export.to_saved_model, "folder"), (ka.export.to_litert, "m.tflite")):
        with pytest.raises(ka.export.ExportError, match=rf"{name}.*name="):
            export(keras.Model(x, y), tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_sequential_models_have_an_endpoint_once_built():
    model = keras.Sequential([keras.Input((3,), name="features"), keras.layers.Dense(2)])
    point = endpoint.make_endpoint(model)
    assert point.inputs == (Tensor("features", (None, 3), "float32"),)
    assert list(point.call({"features": np.ones((1, 3), "float32")})) == list(point.outputs)
    with pytest.raises(ValueError, match="has no inputs to export. Expected a functional"):
        endpoint.make_endpoint(keras.Sequential([keras.layers.Dense(2)]))


def test_integers_of_any_width_become_int32():
    tokens = ids("token_ids", dtype="int64")
    assert (
        endpoint.make_endpoint(keras.Model(tokens, embed(tokens, "x"))).inputs[0].dtype == "int32"
    )


def test_fixed_sizes_fill_the_free_axes():
    tokens, images = ids("token_ids"), keras.Input((None, None, 3), name="images")
    model = keras.Model([tokens, images], [embed(tokens, "x"), keras.layers.Dense(2)(images)])
    point = endpoint.make_endpoint(model, batch_size=2, sequence_length=8)
    assert [tensor.shape for tensor in point.inputs] == [(2, 8), (2, 8, 8, 3)]
    assert point.lengths == {"token_ids": (1,), "images": (1, 2)}


def test_sizes_that_contradict_the_model_are_refused():
    tokens = keras.Input(batch_shape=(4, 6), dtype="int32", name="token_ids")
    model = keras.Model(tokens, embed(tokens, "x"))
    assert endpoint.make_endpoint(model, batch_size=4, sequence_length=6).inputs[0].shape == (4, 6)
    with pytest.raises(ValueError, match="batch_size=3, .* 'token_ids' has a fixed batch of 4"):
        endpoint.make_endpoint(model, batch_size=3)
    with pytest.raises(
        ValueError, match=r"sequence_length=7, but no input has a free axis.*\(4, 6\)"
    ):
        endpoint.make_endpoint(model, sequence_length=7)
