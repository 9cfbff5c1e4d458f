"""Models that LiteRT's built-in ops cannot run are refused by op and layer."""

import keras
import pytest

import keras_attention.export as export
from keras_attention.export import converter, errors
from tests.export.conftest import make_labeler


class NoneIndexing(keras.layers.Layer):
    """Adds an axis by indexing: a Flex op, but only when batch and length are both free."""

    def call(self, x):
        filled = keras.ops.cast(keras.ops.not_equal(x[:, :, 0], 0.0), "float32")
        return x + keras.ops.mean(filled[:, None, :, None], axis=1)


class Inverse(keras.layers.Layer):
    def call(self, x):
        squares = keras.ops.matmul(keras.ops.swapaxes(x, 1, 2), x)
        return keras.ops.matmul(x, keras.ops.inv(squares + keras.ops.eye(8)))


class SquaredLength(keras.layers.Layer):
    """Computes |x|² x with an einsum that is not a matrix product."""

    def call(self, x):
        return x * keras.ops.expand_dims(keras.ops.einsum("btd,btd->bt", x, x), -1)


class Wrapper(keras.layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def build(self, shape):
        self.inner.build(shape)

    def call(self, x):
        return self.inner(x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layer, op, place, hint",
    [
        (
            NoneIndexing(name="unsqueeze"),
            "StridedSlice",
            "'unsqueeze' (NoneIndexing)",
            "expand_dims",
        ),
        (SquaredLength(name="product"), "Einsum", "'product' (SquaredLength)", "ops.sum"),
        (
            Wrapper(Inverse(name="solve"), name="outer"),
            "MatrixInverse",
            "'outer/solve' (Inverse)",
            "",
        ),
        (
            keras.layers.LSTM(8, return_sequences=True, name="memory"),
            "TensorListReserve",
            "'memory' (LSTM)",
            "batch_size=1",
        ),
    ],
    ids=["None-indexing", "einsum", "nested", "LSTM"],
)
def test_the_op_and_its_layer_are_named(layer, op, place, hint, tmp_path):
    path = tmp_path / "deep" / "model.tflite"
    with pytest.raises(export.ExportError) as caught:
        export.to_litert(make_labeler(extra=layer), path)
    assert caught.value.op == op
    assert caught.value.layer == f"layer {place}"
    assert f"{op} in layer {place}" in str(caught.value) and hint in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_at_fixed_shapes_none_indexing_is_harmless(tmp_path):
    model = make_labeler(extra=NoneIndexing(name="unsqueeze"))
    report = export.to_litert(model, tmp_path / "m.tflite", batch_size=1, sequence_length=6)
    assert report.max_abs_error < 1e-4


def test_a_converter_error_without_a_layer_is_quoted():
    explained = converter.explain_error(RuntimeError("\nNo ranges were recorded.\nat x.cc:5"))
    error = errors.make_converter_error(explained, None)
    assert "refused the model: No ranges were recorded. Change" in str(error)


class Outer(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = [keras.layers.Dense(2, name="dense"), keras.layers.Dense(2, name="dense_1")]

    def call(self, x):
        return self.parts[1](self.parts[0](x))


def model():
    inputs = keras.Input((2,))
    return keras.Model(inputs, Outer(name="outer")(inputs), name="net")


def test_the_innermost_layer_is_named_with_its_path():
    result = errors.find_layer(model(), "net_1/outer_1/dense_1/MatMul;other@__inference_f_5")
    assert result == "layer 'outer/dense' (Dense)"


def test_a_number_may_belong_to_the_name():
    assert (
        errors.find_layer(model(), "net/outer/dense_1_2/MatMul") == "layer 'outer/dense_1' (Dense)"
    )


def test_ops_of_no_layer_belong_to_the_model():
    assert errors.find_layer(model(), "net_1/MatMul") == "model 'net' (no layer of its own)"


def test_other_names_have_no_layer():
    assert errors.find_layer(model(), "StatefulPartitionedCall:0") is None


def test_names_follow_keras_scopes():
    import tensorflow as tf

    net = model()
    graph = tf.function(net).get_concrete_function(tf.TensorSpec((None, 2))).graph
    positions = [
        errors.find_layer(net, op.name) for op in graph.get_operations() if op.type == "MatMul"
    ]
    assert positions == ["layer 'outer/dense' (Dense)", "layer 'outer/dense_1' (Dense)"]
