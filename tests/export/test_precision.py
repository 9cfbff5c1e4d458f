"""Models that Keras has quantized are exported with the kernels they have."""

import keras
import numpy as np
import pytest

import keras_attention as ka
import keras_attention.export as export
from keras_attention.export import precision
from keras_attention.export.graphs import flatbuffer
from tests import contract
from tests.export.conftest import make_labeler
from tests.export.helpers import randomize
from tests.grids import quick, sampled


@pytest.fixture
def mixed():
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield make_labeler()
    keras.config.set_dtype_policy(policy)


def test_reduced_models_are_exported_in_float32(mixed, tmp_path):
    report = export.to_litert(mixed, tmp_path / "m.tflite")
    assert {tensor.dtype for tensor in flatbuffer.read_graph(tmp_path / "m.tflite").tensors} <= {
        "float32", "int32", "bool"
    }  # fmt: skip
    assert report.signatures[0].outputs[0].dtype == "float32"
    assert report.max_abs_error < 1e-4
    assert "exported in float32. The model computes in mixed_bfloat16" in report.warnings[0]
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    exact = export.load(tmp_path / "m.tflite")({"token_ids": [[3, 4, 0]]})["logits"]
    near = np.asarray(keras.ops.cast(mixed(np.array([[3, 4, 0]])), "float32"))
    assert 0 < np.abs(exact - near).max() < 0.05


def test_models_in_float32_are_not_copied(labeler):
    assert precision.convert_to_float32(labeler) is labeler


def test_a_model_that_cannot_be_rebuilt_gives_advice(mixed, monkeypatch):
    monkeypatch.setattr(type(mixed), "from_config", lambda config: 1 / 0)
    with pytest.raises(export.ExportError, match="computes in mixed_bfloat16 and could not be"):
        precision.convert_to_float32(mixed)
    assert keras.config.dtype_policy().name == "mixed_bfloat16"


pytestmark = pytest.mark.tensorflow


def make_model():
    """Return a model with all layers that can be quantized."""
    model = ka.models.causal_language_model(
        70, num_layers=1, num_heads=2, hidden_dim=32, intermediate_dim=64, position="rotary"
    )
    randomize(model)
    return model


def quantized():
    model = make_model()
    contract.quantize(model, "int8")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_quantized_models_become_litert_files(quantization, tmp_path):
    model, path = quantized(), tmp_path / "model.tflite"
    report = export.to_litert(model, path, quantization=quantization)
    assert "The model computes in int8_from_float32 and differs by" in report.warnings[0]
    dtypes = {tensor.dtype for tensor in flatbuffer.read_graph(path).constants}
    assert ("int8" in dtypes) == (quantization is not None)
    ids = np.array([[3, 4, 5, 6]])
    ours = np.asarray(export.load(path)({"token_ids": ids.astype("int32")})["logits"])
    theirs = np.asarray(model(ids))
    assert np.abs(ours - theirs).max() < 0.05 * np.abs(theirs).max()


@pytest.mark.slow
def test_quantized_models_become_saved_models(tmp_path):
    report = export.to_saved_model(quantized(), tmp_path / "model")
    assert report.max_abs_error < 1e-5 and "int8_from_float32" in report.warnings[0]


@pytest.mark.slow
def test_the_copy_multiplies_with_the_numbers_of_the_quantized_kernels():
    model = quantized()
    copy = precision.convert_to_float32(model)
    assert not precision.list_reduced_policies(copy)
    original = make_model()
    for ours, theirs in zip(copy.weights, original.weights, strict=True):
        assert ours.name == theirs.name and ours.dtype == "float32"
        step = np.abs(theirs.numpy()).max() / 127
        np.testing.assert_allclose(ours, theirs, atol=0.51 * step)
    twice = precision.convert_to_float32(model)
    for ours, theirs in zip(copy.weights, twice.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", quick(["int8", "int4", "float8"], "int8"))
@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: keras.layers.Dense(5, "relu"), (2, 7)),
        (lambda: keras.layers.EinsumDense("abc,cd->abd", (None, 5), bias_axes="d"), (2, 3, 7)),
        (lambda: keras.layers.EinsumDense("bax,xy->bay", (None, 5), activation="gelu"), (2, 3, 7)),
        (lambda: keras.layers.EinsumDense("abc,cde->adbe", (3, None, 5)), (2, 4, 7)),
        (lambda: keras.layers.EinsumDense("abcd,dce->abe", (None, 5)), (2, 3, 4, 5)),
    ],
)
def test_dequantized_kernels_equal_their_definition(make, shape, mode):
    layer, other = make(), make()
    layer.build(shape)
    other.build(shape)
    random = np.random.default_rng(0)
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    exact = np.asarray(layer.kernel)
    contract.quantize(keras.Sequential([keras.Input(batch_shape=shape), layer]), mode)
    precision.dequantize(layer, other)
    step = {"int8": 127, "int4": 7, "float8": 8}[mode]
    tolerance = np.abs(exact).max() / step
    np.testing.assert_allclose(other.kernel, exact, atol=0.6 * tolerance)
    if layer.bias is not None:
        np.testing.assert_array_equal(other.bias, layer.bias)


def test_dequantize_refuses_einsum_equations_without_a_plain_kernel():
    layer = keras.layers.EinsumDense("bc,bcd->bd", (5,))
    layer.build((3, 7))
    other = keras.layers.EinsumDense("bc,bcd->bd", (5,))
    other.build((3, 7))
    with pytest.raises(ValueError, match="bc,bcd->bd"):
        precision.dequantize(layer, other)


def labeler():
    return ka.models.sequence_labeler(
        *(30, 4),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=8,
        mask="causal",
        position="rotary",
    )


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "to, name", [(export.to_saved_model, "model"), (export.to_litert, "model.tflite")]
)
def test_models_with_memory_are_refused_with_advice(to, name, tmp_path):
    model = ka.attention.with_memory(labeler(), 6, batch_size=2)
    message = r"'recurrence' \(SegmentRecurrence\) keeps state.*without batch_size"
    with pytest.raises(export.ExportError, match=message):
        to(model, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.tensorflow
def test_model_rebuilt_without_batch_size_exports_to_litert(tmp_path):
    stateful = ka.attention.with_memory(labeler(), 6, batch_size=2)
    layer = stateful.get_layer("recurrence")
    model = ka.attention.with_memory(layer.model, layer.memory_length)
    export.to_litert(model, tmp_path / "model.tflite")
    assert model.get_layer("recurrence").model is layer.model


@pytest.mark.tensorflow
def test_keras_layers_with_a_state_are_refused_too(tmp_path):
    x = keras.Input(batch_shape=(2, 3, 4))
    model = keras.Model(x, keras.layers.GRU(5, stateful=True, name="gru")(x))
    with pytest.raises(export.ExportError, match=r"'gru' \(GRU\).*stateful=False"):
        export.to_litert(model, tmp_path / "model.tflite")
