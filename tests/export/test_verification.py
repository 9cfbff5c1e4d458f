import keras
import numpy as np
import pytest

import keras_attention.export as export
from tests.export.conftest import make_labeler

BATCHES = [{"token_ids": np.array([[3, 4, 5, 0]])}, {"token_ids": np.ones((2, 9), "int32")}]


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.tflite"])
def test_files_equal_their_model(exported, labeler, name):
    folder, *_ = exported
    parity = export.verify(labeler, folder / name, BATCHES)
    assert list(parity) == ["logits"]
    assert parity["logits"].max_abs_error < 1e-5 and parity["logits"].argmax_agreement == 1


@pytest.mark.parametrize("name", ["saved_model", "model.tflite"])
def test_files_differ_from_another_model(exported, name):
    folder, *_ = exported
    keras.utils.set_random_seed(1)
    other = make_labeler()
    with pytest.raises(export.ExportError, match="'logits' from .* is off by"):
        export.verify(other, folder / name, BATCHES)
    parity = export.verify(other, folder / name, BATCHES, tolerance=100.0)
    singles = [export.verify(other, folder / name, [b], tolerance=100.0)["logits"] for b in BATCHES]
    assert parity["logits"].max_abs_error == max(p.max_abs_error for p in singles)
    assert parity["logits"].argmax_agreement == min(p.argmax_agreement for p in singles)


def test_what_is_expected_of_a_file_follows_its_weights(labeler, tmp_path):
    export.to_litert(labeler, tmp_path / "m.tflite", quantization="float16")
    error = export.verify(labeler, tmp_path / "m.tflite", BATCHES)["logits"].max_abs_error
    assert 0 < error < 1e-2
    with pytest.raises(export.ExportError, match="is off by"):
        export.verify(labeler, tmp_path / "m.tflite", BATCHES, tolerance=error / 100)


def test_other_inputs_are_refused(exported, labeler):
    folder, *_ = exported
    with pytest.raises(ValueError, match="inputs= has a batch with words"):
        export.verify(labeler, folder / "model.tflite", {"words": [[1]]})
    with pytest.raises(ValueError, match="is no model"):
        export.verify(labeler, folder / "manifest.json", BATCHES)
    images = keras.Input((None,), dtype="int32", name="images")
    other = keras.Model(images, keras.layers.Embedding(9, 3, name="logits")(images))
    with pytest.raises(ValueError, match="takes the inputs token_ids; received images"):
        export.verify(other, folder / "model.tflite", [[[1]]])
