import pathlib
import sys

import keras
import numpy as np
import pytest

import keras_attention.export as export
from keras_attention.export import saved_model
from keras_attention.files.manifest import compute_sha256, count_bytes
from tests.export.conftest import make_labeler

FREE = (export.Tensor("token_ids", (None, None), "int32"),)


def test_the_report_describes_the_folder(exported, labeler):
    folder, report, _ = exported
    (signature,) = report.signatures
    assert signature.name == "serving_default" and signature.inputs == FREE
    assert signature.outputs == (export.Tensor("logits", (None, None, 3), "float32"),)
    assert report.max_abs_error <= 1e-5 and report.argmax_agreement == 1.0
    assert report.size == count_bytes(folder / "saved_model")
    assert report.sha256 == compute_sha256(folder / "saved_model")
    assert report.weights_bytes == 4 * labeler.count_params()
    assert {"token_ids (1, 12)", "token_ids (3, 12)", "token_ids (2, 6)"} == {
        parity.batch for parity in report.parity
    }
    assert report.ops["Softmax"] == 1 and not any("Save" in kind for kind in report.ops)


def test_every_variable_is_stored_once(exported, labeler):
    folder, *_ = exported
    values = saved_model.count_values(folder / "saved_model")
    assert values in (labeler.count_params(), labeler.count_params() + 1)


def test_the_reload_cannot_import_keras(exported, monkeypatch, new_process):
    """Check that the new process blocks these imports."""
    folder, *_ = exported
    script = pathlib.Path(saved_model._SCRIPT).read_text("utf-8")
    probe = folder / "probe.py"
    probe.write_text(script.replace("import tensorflow as tf", "import keras.layers"))
    monkeypatch.setattr(saved_model, "_SCRIPT", probe)
    with pytest.raises(export.ExportError, match="does not run without Keras: .*keras"):
        saved_model.run_without_keras(folder / "saved_model", [])


@pytest.fixture
def without_reload(monkeypatch):
    """Compute the outputs of the new process in this process, to save seconds."""

    def run(folder, calls):
        return [export.load(folder, signature)(batch) for signature, batch in calls]

    monkeypatch.setattr(saved_model, "run_without_keras", run)


def test_given_sizes_are_fixed(labeler, tmp_path, without_reload):
    report = export.to_saved_model(labeler, tmp_path / "m", batch_size=2, sequence_length=5)
    assert report.signatures[0].inputs[0].shape == (2, 5)
    assert report.signatures[0].outputs[0].shape == (2, 5, 3)
    assert export.inspect(tmp_path / "m").signatures == report.signatures


def test_several_inputs_and_outputs_go_by_name(tmp_path, without_reload):
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    features = keras.Input((None, 4), name="features")
    x = keras.layers.Embedding(9, 4)(ids) + features
    model = keras.Model(
        {"token_ids": ids, "features": features},
        {"wide": keras.layers.Dense(5)(x), "same": x, "ids": ids},
    )
    report = export.to_saved_model(model, tmp_path / "m")
    names = [tensor.name for tensor in report.signatures[0].outputs]
    assert set(names) == {"wide", "same", "ids"}
    batch = {"features": np.ones((1, 2, 4), "float32"), "token_ids": np.array([[3, 0]])}
    outputs = export.load(tmp_path / "m")(batch)
    np.testing.assert_array_equal(outputs["ids"], [[3, 0]])
    np.testing.assert_allclose(outputs["same"], model(batch)["same"], atol=1e-6)


def test_failed_export_keeps_only_the_old_model_and_manifest(
    labeler, tmp_path, without_reload, monkeypatch
):
    path = tmp_path / "m"
    wrong = {"logits": np.zeros((1, 1, 3), "float32")}
    export.to_saved_model(labeler, path, metadata={"labels": ["A"]})
    before, manifest = compute_sha256(path), (tmp_path / "manifest.json").read_text()
    monkeypatch.setattr(
        saved_model, "run_without_keras", lambda folder, calls: [wrong] * len(calls)
    )
    with pytest.raises(export.ExportError, match="Wrong shape of 'logits'"):
        export.to_saved_model(make_labeler(), path, metadata={"labels": ["B"]})
    assert compute_sha256(path) == before
    assert (tmp_path / "manifest.json").read_text() == manifest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "manifest.json"]


def test_a_folder_without_a_saved_model_is_never_replaced(labeler, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="exists and is not a SavedModel. Nothing was changed"):
        export.to_saved_model(labeler, tmp_path)
    with pytest.raises(ValueError, match="exists and is not a SavedModel"):
        export.to_saved_model(labeler, tmp_path / "thesis.txt")
    with pytest.raises(ValueError, match="names a LiteRT file"):
        export.to_saved_model(labeler, tmp_path / "m.tflite")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_doubled_variables_are_refused(labeler, tmp_path, monkeypatch):
    """Simulate Keras's own Model.export (keras issue 23553)."""
    monkeypatch.setattr(saved_model, "count_values", lambda folder: 2 * labeler.count_params())
    with pytest.raises(export.ExportError, match="checkpoint holds .* values for .* of the model"):
        export.to_saved_model(labeler, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_variables_that_are_not_weights_are_stored(tmp_path, without_reload):
    class Noisy(keras.layers.Layer):
        """Draws numbers in inference, too, and so reads the state of its seed."""

        def __init__(self):
            super().__init__()
            self.seed = keras.random.SeedGenerator(1)

        def call(self, x):
            return x + 0.0 * keras.random.normal(keras.ops.shape(x), seed=self.seed)

    inputs = keras.Input((3,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(2, name="y")(Noisy()(inputs)))
    assert export.to_saved_model(model, tmp_path / "m").max_abs_error < 1e-6


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
def test_a_full_disk_is_an_error(tmp_path):
    """Simulate a full disk with a limit on file sizes."""
    import resource

    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(2000, name="y")(inputs))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        for write, name in ((export.to_saved_model, "m"), (export.to_litert, "m.tflite")):
            with pytest.raises(export.ExportError, match="could not be written: .*File too large"):
                write(model, tmp_path / "deep" / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
