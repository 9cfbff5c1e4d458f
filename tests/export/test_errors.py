"""Models that LiteRT's built-in ops cannot run are refused by op and layer."""

import keras
import pytest

import keras_attention.export as export
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


class Wrapper(keras.layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def build(self, shape):
        self.inner.build(shape)

    def call(self, x):
        return self.inner(x)


@pytest.mark.parametrize(
    "layer, op, place, hint",
    [
        (
            NoneIndexing(name="unsqueeze"),
            "StridedSlice",
            "'unsqueeze' (NoneIndexing)",
            "expand_dims",
        ),
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
            "unroll=True",
        ),
    ],
    ids=["None-indexing", "nested", "LSTM"],
)
def test_the_op_and_its_layer_are_named(layer, op, place, hint, tmp_path):
    path = tmp_path / "deep" / "model.tflite"
    with pytest.raises(export.ExportError) as caught:
        export.to_litert(make_labeler(extra=layer), path)
    assert caught.value.op == op
    assert caught.value.layer == f"layer {place}"
    assert f"{op} in layer {place}" in str(caught.value) and hint in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_at_fixed_shapes_none_indexing_is_harmless(tmp_path):
    model = make_labeler(extra=NoneIndexing(name="unsqueeze"))
    report = export.to_litert(model, tmp_path / "m.tflite", batch_size=1, sequence_length=6)
    assert report.max_abs_error < 1e-4


def test_a_converter_that_gives_no_place_is_quoted():
    from keras_attention.export import errors

    error = errors.from_converter(RuntimeError("\nNo ranges were recorded.\nat x.cc:5"), None)
    assert str(error) == "The LiteRT converter refused the model: No ranges were recorded."
