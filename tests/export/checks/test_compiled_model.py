"""`CompiledModel`: the same files give the same numbers, and what would crash is refused."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export.checks import compiled_model
from keras_attention.export.graphs import flatbuffer
from tests.browser.test_builders import (
    LENGTH,
    WHOLE,
    WRITING,
    draw,
    export_whole,
    export_writing,
)
from tests.export.conftest import vary
from tests.grids import sampled

SHIPPED = sorted((pathlib.Path(ka.__file__).parents[1] / "saved_models").glob("*/*.tflite"))


def run_signatures(path):
    """Return {signature: (the interpreter's outputs for two draws, the `Execution`)} of a file."""
    runs = {s.name: ka.export.load(path, s.name) for s in flatbuffer.read_graph(path).signatures}
    inputs = {name: tuple(draw(run, seed) for seed in (0, 1)) for name, run in runs.items()}
    jobs = [compiled_model.Job(path, name, batches) for name, batches in inputs.items()]
    result = dict(zip(runs, compiled_model.run_jobs(jobs), strict=True))
    return {n: ([runs[n](batch) for batch in inputs[n]], result[n]) for n in runs}


def assert_equal(path, *, atol=1e-5):
    """Assert that every signature equals the interpreter, to `atol` times the largest number."""
    for name, (expected, result) in run_signatures(path).items():
        assert result.failure is None, (name, result.failure)
        for target, outputs in zip(expected, result.outputs, strict=True):
            assert outputs.keys() == target.keys(), name
            for key, array in target.items():
                assert outputs[key].dtype == array.dtype and outputs[key].shape == array.shape
                if array.dtype == np.float32:
                    allowed = atol * max(1.0, np.abs(array).max())
                    np.testing.assert_allclose(outputs[key], array, atol=allowed, err_msg=key)
                else:
                    np.testing.assert_array_equal(outputs[key], array, err_msg=key)


@pytest.mark.slow
def test_fixed_shapes_run_and_free_ones_are_refused(tmp_path):
    features = keras.Input((3,), name="features")
    dense = keras.layers.Dense(2, name="logits")(features)
    model = keras.Model(features, {"logits": dense, "shares": keras.ops.softmax(dense)})
    fixed, free = tmp_path / "fixed.tflite", tmp_path / "free.tflite"
    ka.export.to_litert(model, fixed, batch_size=2)
    ka.export.to_litert(model, free)
    assert_equal(fixed)
    batch = {"features": np.ones((2, 3), "float32")}
    (outputs,) = compiled_model.run_signature(fixed, "serving_default", [batch])
    np.testing.assert_allclose(outputs["logits"], model(batch["features"])["logits"], atol=1e-6)
    jobs = [
        compiled_model.Job(free, "serving_default", (batch,)),
        compiled_model.Job(fixed, "other", (batch,)),
        compiled_model.Job(fixed, "serving_default", ({"features": np.ones((1, 3))},)),
    ]
    reasons = [result.failure for result in compiled_model.run_jobs(jobs)]
    assert "free shapes run only in the interpreter. CompiledModel crashes" in reasons[0]
    assert "no signature 'other'" in reasons[1] and "it takes" in reasons[2]
    with pytest.raises(ka.export.ExportError, match="free.tflite does not run in CompiledModel: "):
        compiled_model.run_signature(free, "serving_default", [batch])


@pytest.mark.slow
@pytest.mark.parametrize("quantization", sampled(["int8_weights", None, "float16"]))
@pytest.mark.parametrize("name", WHOLE)
def test_whole_models(name, quantization, tmp_path_factory):
    assert_equal(export_whole(tmp_path_factory, name, quantization))


@pytest.mark.slow
@pytest.mark.parametrize("quantization", sampled(["int8_weights", None]))
@pytest.mark.parametrize("name", sampled(WRITING, 1))
def test_models_that_write(name, quantization, tmp_path_factory):
    """Run every signature, and a caller's loop around `step`."""
    assert_equal(export_writing(tmp_path_factory, name, quantization))


@pytest.mark.slow
def test_draws_of_a_decoder(tmp_path):
    """`uniform` among the inputs, and a batch of two."""
    make, settings = WRITING["causal_language_model"]
    sampler = ka.generation.Sample(0.8, top_k=9)
    path, sizes = tmp_path / "m.tflite", {"batch_size": 2, "sequence_length": LENGTH}
    generate = ka.export.Generation(sampler, end_token_id=2, **settings)
    ka.export.to_litert(vary(make()), path, generate=generate, **sizes)
    assert_equal(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shipped_files(path):
    """Files of fixed shape run. Files of free shape are refused, because they would crash."""
    if any(None in t.shape for s in flatbuffer.read_graph(path).signatures for t in s.inputs):
        name = flatbuffer.read_graph(path).signatures[0].name
        with pytest.raises(ka.export.ExportError, match="free shapes run only in the interpreter"):
            compiled_model.run_signature(path, name, [])
        return
    assert_equal(path)
