"""Files of people that one does not trust run no code (SECURITY.md)."""

import json
import os
import shutil

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.conftest import ROOT


def test_a_preset_with_a_lambda_is_refused_and_runs_nothing(tmp_path):
    folder = tmp_path / "digits-vit"
    shutil.copytree(ROOT / "saved_models" / "digits-vit", folder)
    inputs = keras.Input((8, 8, 1), name="images")
    trap = str(tmp_path / "trap")
    run_code = lambda x: (open(trap, "w").close(), x)[1]  # noqa: E731
    logits = keras.layers.Lambda(run_code, output_shape=(8, 8, 1))(inputs)
    keras.Model(inputs, logits).save(folder / "model.keras")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["model.keras"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="safe_mode"):
        ka.tasks.from_preset(folder, file="keras").predict([np.zeros((8, 8), "float32")])
    assert not os.path.exists(trap)
    unsafe = keras.saving.load_model(folder / "model.keras", safe_mode=False)
    unsafe(np.zeros((1, 8, 8, 1), "float32"))  # the trap works
    assert os.path.exists(trap)
