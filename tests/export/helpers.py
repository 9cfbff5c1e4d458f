"""A quick export of anything, for every test that asks whether something exports."""

import dataclasses
import pathlib
import tempfile

import keras
import numpy as np
import pytest

from keras_attention.export import convert, endpoint
from keras_attention.export.checks import cases, gpu_delegate, graph_checks, parity
from keras_attention.export.graphs import flatbuffer

MASK_CONSTANT = -1e9


def assert_exports(target, *, batch_size=1, sequence_length=8, examples=None):
    """Assert that `target` exports with free and with fixed shapes, and keeps its results.

    The file has two signatures, built-in ops only, and at most four axes. TensorFlow and the stock
    LiteRT runtime (XNNPACK on and off) run both signatures on several batches, with errors of at
    most 1e-5 and 1e-4. Weights are random, because zeros would hide errors. Only the full export
    also loads the file in a process without Keras.

    Args:
        target: a functional `keras.Model`, or a `Case` of `tests.contract`.
        batch_size, sequence_length: the fixed shapes of a model. A case has its own.
        examples: batches to check a model with, as in `ka.export.to_litert`.

    Returns:
        `flatbuffer.Flatbuffer` of the LiteRT file.
    """
    if isinstance(target, keras.Model):
        randomize(target)
        checked = _of_model(target, batch_size, sequence_length, examples)
        model = target
    else:
        model, checked = _of_case(target)
    with tempfile.TemporaryDirectory() as folder:
        return _check(model, checked, pathlib.Path(folder))


def find_delegate():
    """Return the module `gpu_delegate`, or skip the test without a Vulkan driver.

    With the driver of Debian's Chromium, as on CI, a skip is a failure.
    """
    if missing := gpu_delegate.explain_missing():
        (pytest.fail if gpu_delegate._SWIFTSHADER.exists() else pytest.skip)(missing)
    return gpu_delegate


def randomize(model):
    """Draw all weights randomly, because zeros and ones would hide errors."""
    random = np.random.default_rng(3)
    for weight in model.weights:
        if "float" in weight.dtype and "variance" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.5))


def _of_model(model, batch_size, sequence_length, examples):
    """(endpoint, cases) with free and with fixed shapes."""
    has_length = any(None in tensor.shape[1:] for tensor in model.inputs)
    fixed = endpoint.make_endpoint(model, batch_size, sequence_length if has_length else None)
    points = [endpoint.make_endpoint(model), dataclasses.replace(fixed, name="fixed")]
    return [(point, cases.make_cases(model, point, examples)[0]) for point in points]


def _of_case(case):
    """Return a model with the layer, and (endpoint, cases) with free and with fixed shapes."""
    from tests.contract import OTHER_SIZES, SIZES

    layer = case.make()
    free, fixed = case.model(layer), case.model(layer, sizes=SIZES)
    randomize(free)
    points = (
        endpoint.make_endpoint(free),
        dataclasses.replace(endpoint.make_endpoint(fixed), name="fixed"),
    )
    batches = [case.arrays(sizes) for sizes in ({**SIZES, "B": 1}, SIZES, OTHER_SIZES)]
    checked = [
        (points[0], _cases(points[0], batches)),
        (points[1], _cases(points[1], batches[1:2])),
    ]
    return free, checked


def _cases(point, batches):
    named = [
        {t.name: x.astype(t.dtype) for t, x in zip(point.inputs, arrays, strict=True)}
        for arrays in batches
    ]
    return [cases.Case(batch, cases.run_model(point, batch)) for batch in named]


def _check(model, checked, folder):
    points, path = [point for point, _ in checked], folder / "model.tflite"
    endpoint.save_endpoints(model, points, folder / "saved_model", MASK_CONSTANT)
    content = convert.convert_saved_model(folder / "saved_model", points, model)
    path.write_bytes(content)
    graph = flatbuffer.read_graph(path)
    assert not graph_checks.check_ops(graph, model)
    _check_saved_model(folder / "saved_model", checked)
    shapes = {signature.name: signature.inputs for signature in graph.signatures}
    for point, several in checked:
        assert set(shapes[point.name]) == set(point.inputs)
        parity.measure_litert(path, point, several)
    return graph


def _check_saved_model(folder, checked):
    import tensorflow as tf

    signatures = tf.saved_model.load(str(folder)).signatures
    for point, several in checked:
        for case in several:
            outputs = signatures[point.name](**{k: tf.constant(v) for k, v in case.inputs.items()})
            measured = parity.measure_parity(
                case, outputs, signature=point.name, runtime="TensorFlow"
            )
            parity.check_parity(case, measured, tolerance=parity.SAVED_MODEL_TOLERANCE)
