"""Folders that hold no checkpoint of Orbax are refused."""

import keras
import pytest

import keras_attention as ka


def test_a_folder_without_checkpoints(tmp_path):
    with pytest.raises(ValueError, match="There is no folder .*: expected a folder that"):
        ka.distribution.load_orbax(tmp_path / "no", keras.Sequential())
    with pytest.raises(ValueError, match="has no checkpoint: no checkpoint is complete"):
        ka.distribution.load_orbax(tmp_path, keras.Sequential())
