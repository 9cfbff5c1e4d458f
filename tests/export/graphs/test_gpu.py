"""Graphs as GPU delegates want them: each operator that was refused or wrong, one by one."""

import numpy as np
import pytest

from keras_attention.export import backend
from keras_attention.export.checks import runner
from keras_attention.export.graphs.gpu import adapt_to_gpu
from tests.export.helpers import find_delegate

pytestmark = pytest.mark.tensorflow


def constant(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def cases():
    """Return {name: (function of tensors, shapes of its inputs)}.

    Without the rewriting, the delegate refused the cases that are marked so, and computed the
    others wrongly. Sums along the last of four axes crashed the process.
    """
    import tensorflow as tf

    return {
        "halves change places": (lambda x: tf.concat(tf.split(x, 2, 3)[::-1], 3), (1, 5, 2, 8)),
        "unequal parts change places": (
            lambda x: tf.concat(tf.split(x, [2, 6], 3)[::-1], 3),
            (1, 5, 2, 8),
        ),
        "two parts of four": (
            lambda x: tf.concat([tf.split(x, 4, 3)[i] for i in (2, 0)], 3),
            (1, 5, 2, 8),
        ),
        "constants with more axes": (
            lambda x: tf.nn.relu(x) * constant(1, 5, 1, 2),
            (5, 3, 2),
        ),
        "rows and constants with more axes": (lambda x: tf.nn.relu(x) + constant(1, 5, 4), (5, 4)),
        "products with fewer axes": (lambda x: tf.matmul(x, constant(1, 12, 5)), (1, 3, 5, 12)),
        "products along a batch of one": (lambda x, y: x @ y, (1, 3, 5, 12), (1, 1, 12, 5)),
        "constants on the left, refused": (
            lambda x: constant(1, 1, 1, 8) @ tf.transpose(tf.nn.relu(x), (0, 2, 3, 1)),
            (1, 5, 1, 8),
        ),
        "the largest of 5": (lambda x: tf.math.top_k(x, 3)[0], (1, 3, 4, 5)),
        "the order of 5": (lambda x: tf.math.top_k(x, 5)[0], (1, 3, 4, 5)),
        "which are the largest": (lambda x: tf.cast(tf.math.top_k(x, 2)[1], "float32"), (5, 3)),
        "running sums": (lambda x: tf.cumsum(x, -1), (1, 3, 5, 5)),
        "running sums of three axes": (lambda x: tf.cumsum(x, -1), (1, 5, 8)),
        "the largest sum": (lambda x, y: tf.reduce_max(x + y, 1), (1, 6, 64), (1, 6, 64)),
        "the smallest sum": (
            lambda x, y: tf.reduce_min(x + y, 3, keepdims=True),
            (1, 2, 6, 8),
            (1, 2, 6, 8),
        ),
        "rows of a table, refused": (
            lambda x: tf.gather(constant(9, 16), tf.cast(tf.abs(x), "int32")),
            (1, 12),
        ),
        "the first of an axis, refused": (
            lambda x: tf.nn.relu(tf.gather(tf.nn.relu(x), 0, axis=1)),
            (1, 5, 8),
        ),
        "the last of an axis, refused": (lambda x: tf.nn.relu(tf.nn.relu(x)[:, -1]), (1, 5, 8)),
        "waves of large angles": (
            lambda x: tf.concat([tf.sin(x * 700), tf.cos(x * 700), tf.sin(x / 9)], 1),
            (1, 5, 1, 8),
        ),
        "waves of rows": (lambda x: tf.cos(tf.reshape(tf.nn.relu(x) * 99, (15, 8))), (3, 5, 8)),
        "padded rows, refused": (
            lambda x: tf.nn.relu(tf.pad(tf.nn.relu(x), ((0, 0), (1, 2)), constant_values=3.0)),
            (1, 5),
        ),
        "padded truth, refused": (
            lambda x: tf.cast(tf.pad(x > 0, ((0, 0), (1, 2)), constant_values=True), "float32"),
            (1, 5),
        ),
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """(path as converted, path written anew, inputs) of one file with an output for each case."""
    import tensorflow as tf

    computed, specs, inputs = cases(), [], {}
    for i, (_, *shapes) in enumerate(computed.values()):
        for k, shape in enumerate(shapes):
            name = f"x{i}_{k}"
            specs.append(tf.TensorSpec(shape, name=name))
            inputs[name] = constant(*shape, seed=len(specs))

    def compute(*tensors):
        left, results = list(tensors), {}
        for name, (function, *shapes) in computed.items():
            results[name.replace(" ", "_").replace(",", "")] = function(*left[: len(shapes)])
            left = left[len(shapes) :]
        return results

    module = tf.Module()
    module.serve = tf.function(compute, input_signature=specs, autograph=False)
    with backend.hide_stderr():
        concrete = module.serve.get_concrete_function()
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], module)
        content = converter.convert()
    folder = tmp_path_factory.mktemp("graphs")
    before, after = folder / "before.tflite", folder / "after.tflite"
    before.write_bytes(content)
    after.write_bytes(adapt_to_gpu(content))
    return before, after, inputs


@pytest.mark.parametrize("xnnpack", [True, False])
def test_the_cpu_computes_the_same(file, xnnpack):
    before, after, inputs = file
    expected, got = (runner.LiteRT(path, xnnpack=xnnpack)(inputs) for path in (before, after))
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_the_delegate_computes_it_all(file):
    _, path, inputs = file
    result = find_delegate().run_signature(path, "serving_default", [inputs])
    assert result.fully_accelerated, result.refused
    for name, expected in runner.LiteRT(path)(inputs).items():
        np.testing.assert_allclose(result.outputs[0][name], expected, atol=1e-5, err_msg=name)


def test_free_shapes_stay_as_they_are():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 3))], autograph=False)
    def serve(x):
        return tf.concat(tf.split(x, 3, 1)[::-1], 1)

    concrete = serve.get_concrete_function()
    with backend.hide_stderr():
        content = tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    assert adapt_to_gpu(content) is content
