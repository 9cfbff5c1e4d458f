"""Files on ai_edge_litert's GPU delegate: supported operators, and correct results."""

import dataclasses
import pathlib
import signal

import keras
import numpy as np
import pytest

import keras_attention as ka
import keras_attention.export as export
from keras_attention.export.checks import compiled_model, gpu_delegate
from tests.export.helpers import find_delegate, randomize


@pytest.fixture
def delegate():
    """Return the module `gpu_delegate` if there is a Vulkan driver."""
    return find_delegate()


def images_to_logits():
    images = keras.Input((4, 6, 3), name="images")
    x = keras.layers.Dense(8, activation="relu")(images)
    x = keras.layers.Reshape((24, 8))(x)
    return keras.Model(images, keras.layers.Dense(5, name="logits")(x))


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    """(model, its file of batch 1)."""
    model = images_to_logits()
    path = tmp_path_factory.mktemp("fixed") / "model.tflite"
    export.to_litert(model, path, batch_size=1)
    return model, path


def batches(count, batch_size=1):
    random = np.random.default_rng(1)
    return [{"images": random.normal(size=(batch_size, 4, 6, 3))} for _ in range(count)]


@pytest.mark.slow
def test_batches_equal_the_model(delegate, fixed):
    model, path = fixed
    inputs = batches(3)
    result = delegate.run_signature(path, "serving_default", inputs)
    assert result.fully_accelerated and result.refused == () and result.failure is None
    for batch, outputs in zip(inputs, result.outputs, strict=True):
        np.testing.assert_allclose(outputs["logits"], model(batch["images"]), atol=1e-5)


@pytest.mark.slow
def test_verify_compares_what_the_delegate_gives(delegate, fixed):
    model, path = fixed
    parity = export.verify(model, path, batches(2), runtime="gpu")
    assert parity["logits"].runtime == "GPU delegate" and parity["logits"].max_abs_error < 1e-5
    keras.utils.set_random_seed(5)
    other = images_to_logits()
    randomize(other)
    with pytest.raises(export.ExportError, match="'logits' from GPU delegate at .* is off by"):
        export.verify(other, path, batches(2), runtime="gpu")


def labeler():
    """Return a model for 12 tokens that uses most of the rewritten operators."""
    model = ka.models.sequence_labeler(
        50, 5, num_layers=1, num_heads=2, hidden_dim=64, intermediate_dim=96
    )
    randomize(model)
    random = np.random.default_rng(2)
    return model, {"token_ids": np.where(np.arange(12) < 9, random.integers(1, 50, (1, 12)), 0)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "quantization",
    ["int8_weights", None, "float16"],
)
def test_a_labeler_runs_whole(delegate, quantization, tmp_path):
    model, batch = labeler()
    path, sizes = tmp_path / "m.tflite", {"batch_size": 1, "sequence_length": 12}
    export.to_litert(model, path, quantization=quantization, **sizes)
    result = delegate.run_signature(path, "serving_default", [batch])
    assert result.fully_accelerated, result.refused
    expected = export.load(path)(batch)["logits"]
    close = {None: 1e-5, "float16": 1e-3, "int8_weights": 0.2}[quantization]
    np.testing.assert_allclose(result.outputs[0]["logits"], expected, atol=close)


@pytest.mark.slow
def test_int4_runs_whole_with_a_scale_for_each_row(delegate, tmp_path):
    """Check that the export stores no blocks, because the delegate crashes on them."""
    model, batch = labeler()
    path, sizes = tmp_path / "m.tflite", {"batch_size": 1, "sequence_length": 12}
    report = export.to_litert(
        model, path, quantization="int4_weights", compatible_with="gpu", **sizes
    )
    assert not report.gpu and report.minimum_runtime["ai_edge_litert"] == "1.1.2"
    result = delegate.run_signature(path, "serving_default", [batch])
    assert result.fully_accelerated, result.refused
    expected = export.load(path)(batch)["logits"]
    np.testing.assert_allclose(result.outputs[0]["logits"], expected, atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["cls", "max", "attention"])
def test_the_first_token_runs_whole(delegate, pooling, tmp_path):
    x = keras.Input((5, 12), name="x")
    model = keras.Model(x, ka.blocks.Pooling(pooling, name="y")(x))
    randomize(model)
    export.to_litert(model, tmp_path / "m.tflite", batch_size=1)
    inputs = [{"x": np.random.default_rng(2).normal(size=(1, 5, 12))}]
    parity = export.verify(model, tmp_path / "m.tflite", inputs, runtime="gpu")["y"]
    assert parity.runtime == "GPU delegate" and parity.max_abs_error < 1e-5


@pytest.mark.slow
def test_jobs_that_cannot_run_do_not_stop_the_others(delegate, fixed, tmp_path):
    model, path = fixed
    export.to_litert(model, tmp_path / "free.tflite")
    jobs = [
        delegate.Job(tmp_path / "free.tflite", "serving_default", batches(1)),
        delegate.Job(path, "other", batches(1)),
        delegate.Job(path, "serving_default", batches(1, batch_size=2)),
        delegate.Job(path, "serving_default", batches(1)),
    ]
    *unfit, fit = delegate.run_jobs(jobs)
    for result, reason in zip(
        unfit, ("its shapes are free", "no signature", "it takes"), strict=True
    ):
        assert reason in result.failure and result.outputs == ()
    assert fit.failure is None and len(fit.outputs) == 1
    with pytest.raises(export.ExportError, match="its shapes are free.*batch_size="):
        export.verify(model, tmp_path / "free.tflite", batches(1), runtime="gpu")


@pytest.mark.slow
def test_a_crash_fails_only_its_own_job(delegate, fixed, monkeypatch, tmp_path):
    """Simulate a driver's crash with a process that kills itself at the second of three jobs."""
    script = pathlib.Path(compiled_model._SCRIPT).read_text("utf-8")
    place = '        os.write(2, f"\\njob {number}\\n".encode())\n'
    assert place in script
    dying = place + "        if number == 1:\n            os.kill(os.getpid(), 4)\n"
    (tmp_path / "dying.py").write_text(script.replace(place, dying), "utf-8")
    monkeypatch.setattr(compiled_model, "_SCRIPT", tmp_path / "dying.py")
    job = delegate.Job(fixed[1], "serving_default", batches(1))
    first, second, third = delegate.run_jobs([job, job, job])
    assert second.failure == f"the process ended with {signal.Signals(4).name}."
    assert first.failure is None and third.failure is None
    np.testing.assert_array_equal(first.outputs[0]["logits"], third.outputs[0]["logits"])


def test_a_missing_driver_is_an_error(fixed, monkeypatch):
    missing = "No GPU delegate runs here: No adapters found. On Debian and Ubuntu, ..."
    monkeypatch.setattr(gpu_delegate, "_find_driver", lambda: (None, missing))
    assert not gpu_delegate.is_available() and gpu_delegate.explain_missing() == missing
    with pytest.raises(export.ExportError, match="No GPU delegate runs here"):
        export.verify(*fixed, batches(1), runtime="gpu")


def test_a_driver_without_a_gpu_does_not_count(monkeypatch, tmp_path):
    """Named drivers are the only ones that are tried."""
    for name in gpu_delegate._DRIVER_VARIABLES:
        monkeypatch.setenv(name, str(tmp_path / "nothing.json"))
    environment, missing = gpu_delegate._find_driver.__wrapped__()
    assert environment is None and "apt install chromium-common libvulkan1" in missing


def test_runtimes_are_checked(fixed, tmp_path):
    model, path = fixed
    with pytest.raises(
        ValueError, match="runtime='tpu' is unknown. Use one of None, 'compiled_model', 'gpu'"
    ):
        export.verify(model, path, batches(1), runtime="tpu")
    model.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="runtime='gpu' runs .tflite files, but .* is keras"):
        export.verify(model, tmp_path / "model.keras", batches(1), runtime="gpu")


def test_the_log_lists_refused_operators():
    log = (
        "INFO: Created\nERROR: Following operations are not supported by GPU delegate:\n"
        "DEQUANTIZE: \nGATHER: Only support 1D indices\n"
        "99 operations will run on the GPU, and the remaining 43 operations will run on the CPU.\n"
        "ERROR: Following operations are not supported by GPU delegate:\n"
        "GATHER: Only support 1D indices\n"
        "1 operations will run on the GPU, and the remaining 2 operations will run on the CPU.\n"
    )
    result = gpu_delegate.Delegation(**gpu_delegate._read_verdict(log))
    assert result.refused == ("DEQUANTIZE", "GATHER: Only support 1D indices")
    assert (result.on_gpu, result.on_cpu) == (100, 45)
    assert dataclasses.replace(result, fully_accelerated=True).runtime == "GPU delegate"
    assert result.runtime == "GPU delegate and CPU"
