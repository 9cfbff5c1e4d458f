"""Int4 kernels: their rounding, their bytes, and what every runtime computes with them."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.graphs.flatbuffer import GraphFile, get_shape
from keras_attention.export.graphs.kernel_formats import (
    INT8_ROWS,
    Int4Blocks,
    choose_format,
    pack_int4,
    round_blocks,
    round_scales,
)
from keras_attention.export.quantization import INT4_WEIGHTS, INT8_WEIGHTS

RANDOM = np.random.default_rng(0)


def test_a_byte_holds_two_numbers_the_first_in_the_lower_half():
    np.testing.assert_array_equal(pack_int4(np.array([1, -1, -8, 7])), [0xF1, 0x78])
    np.testing.assert_array_equal(pack_int4(np.array([[5], [0], [-2]])), [0x05, 0x0E])


def test_clipping_never_increases_the_error():
    blocks = RANDOM.standard_t(3, size=(700, 3, 32)).astype("float32")
    blocks[5, 1] = 0.0
    numbers, scales = round_blocks(blocks)
    assert numbers.min() >= -8 and numbers.max() <= 7 and not numbers[5, 1].any()
    plain = round_scales(np.abs(blocks).max(-1, keepdims=True) / 7)
    plain = np.square(np.rint(blocks / plain) * plain - blocks).sum(-1)
    error = np.square(numbers * scales[..., None] - blocks).sum(-1)
    assert (error <= plain * 1.001).all() and error.sum() < 0.95 * plain.sum()


def test_scales_are_exact_as_xnnpack_reads_them():
    scales = round_scales(np.array([0.1, 1.0, 3e-9, 1e9, 0.0, 0.3333], "float32"))
    np.testing.assert_array_equal(scales, scales.astype("float16").astype("float32"))
    assert not (scales.view("uint32") & 0xFFFF).any()  # as bfloat16
    np.testing.assert_allclose(scales[[0, 1, 4, 5]], [0.1, 1, 1, 0.3333], rtol=2**-8)


def test_only_files_for_a_gpu_have_no_blocks():
    assert choose_format(INT4_WEIGHTS, ("interpreter",)) == Int4Blocks(32)
    for runtime in ("gpu", "web"):
        assert choose_format(INT4_WEIGHTS, ("interpreter", runtime)) == Int4Blocks(None)
    assert choose_format(INT8_WEIGHTS, ("interpreter", "gpu")) is INT8_ROWS


# depth, outputs, activation, dtype of the kernel in the file, whether it is stored in blocks
PRODUCTS = {
    "relu": (64, 96, "relu", "int4", True),
    "relu6": (64, 33, "relu6", "int4", True),
    "linear": (128, 9, None, "int4", True),
    "few": (512, 3, "relu", "int4", False),
    "short": (50, 24, "relu", "int8", False),
    "odd": (65, 24, "relu", "int8", False),
}


def make_model():
    """Return a model with a dense layer for each of `PRODUCTS`, and inputs for it."""
    keras.utils.set_random_seed(0)
    inputs, outputs = {}, {}
    for name, (depth, width, activation, *_) in PRODUCTS.items():
        inputs[name] = keras.Input((depth,), batch_size=4, name=f"{name}_input")
        layer = keras.layers.Dense(width, activation, bias_initializer="random_normal", name=name)
        outputs[name] = layer(inputs[name])
    model = keras.Model(list(inputs.values()), outputs)
    arrays = {
        f"{k}_input": RANDOM.normal(size=x.shape).astype("float32") for k, x in inputs.items()
    }
    return model, arrays


def read_kernels(path):
    """Return {shape: (dtype, whether in blocks, floats)} of the kernels in a file."""
    file, kernels = GraphFile(path.read_bytes()), {}
    names = {number: name for name, number in vars(file.schema.TensorType).items()}
    (graph,) = file.graphs
    for product in file.of_kind("FULLY_CONNECTED", graph.operators):
        tensor = graph.tensors[product.inputs[1]]
        rows, depth = get_shape(tensor)
        data = np.frombuffer(file.bytes_of(tensor), "uint8")
        if names[tensor.type] == "INT4":
            data = np.stack([data << 4, data], -1).view("int8") >> 4
        numbers = data.view("int8").reshape(rows, depth)
        blocks = tensor.quantization.details
        if blocks is None:
            scales = np.asarray(tensor.quantization.scale, "float32")[:, None]
        else:
            scales = file.value(graph.tensors[blocks.scales]).astype("float32")
        scales = np.repeat(scales, depth // scales.shape[1], axis=1)
        dtype = names[tensor.type].lower()
        kernels[rows, depth] = dtype, blocks is not None, numbers * scales
    return kernels


def test_every_product_equals_that_of_the_stored_numbers(tmp_path):
    """Run in the interpreter with and without XNNPACK, which has errors of its own with blocks."""
    model, arrays = make_model()
    path = tmp_path / "m.tflite"
    ka.export.to_litert(model, path, quantization="int4_weights")
    kernels = read_kernels(path)
    runs = [ka.export.checks.runner.LiteRT(path, xnnpack=xnnpack) for xnnpack in (True, False)]
    results = [run(arrays) for run in runs]
    for name, (depth, width, _, dtype, in_blocks) in PRODUCTS.items():
        *stored, kernel = kernels[width, depth]
        assert stored == [dtype, in_blocks], name
        layer = model.get_layer(name)
        close = 0.3 * np.abs(layer.kernel.numpy()).max()  # large values are clipped
        np.testing.assert_allclose(kernel, layer.kernel.numpy().T, atol=close, err_msg=name)
        expected = arrays[f"{name}_input"] @ kernel.T + layer.bias.numpy()
        expected = np.asarray(layer.activation(expected))
        for result in results:
            error = np.abs(result[name] - expected).max() / expected.std()
            assert error < 0.06, (name, error)


@pytest.mark.slow
def test_compiled_model_runs_blocks(tmp_path):
    model, arrays = make_model()
    path = tmp_path / "m.tflite"
    ka.export.to_litert(model, path, quantization="int4_weights")  # the batch size is fixed
    expected = ka.export.load(path)(arrays)
    (outputs,) = ka.export.checks.compiled_model.run_signature(path, "serving_default", [arrays])
    for name, array in expected.items():
        np.testing.assert_allclose(outputs[name], array, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_all_signatures_of_a_decoder_share_int4_kernels(tmp_path):
    """Check that a tied table stays int8, and that products inside the loop are int4, too."""
    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        211, num_layers=1, num_heads=2, hidden_dim=64, tie_embeddings=True
    )
    ids = RANDOM.integers(1, 211, (2, 9)).astype("int32")
    path = tmp_path / "m.tflite"
    generate = ka.export.Generation("greedy", 16, 3)
    ka.export.to_litert(model, path, quantization="int4_weights", generate=generate)
    file = GraphFile(path.read_bytes())
    types, buffers = file.schema.TensorType, set()
    for graph in file.graphs:
        for product in file.of_kind("FULLY_CONNECTED", graph.operators):
            kernel = graph.tensors[product.inputs[1]]
            tied = get_shape(kernel) == (211, 64)
            assert kernel.type == (types.INT8 if tied else types.INT4)
            buffers.add(kernel.buffer)
    kernels = [weight for weight in model.weights if weight.path.endswith("kernel")]
    assert len(buffers) == len(kernels) + 1
    generated = ka.export.load(path, "generate")({"token_ids": ids})["generated_ids"]
    assert generated.shape == (2, 3)
