"""Errors that name the required version of Keras."""

import json
import zipfile

import keras
import pytest

import keras_attention as ka
from keras_attention.core import versions
from keras_attention.distribution import role_parallel


@pytest.mark.parametrize(
    ("text", "numbers"), [("3.12.0", (3, 12, 0)), ("3.14.0rc1", (3, 14, 0)), ("3.9", (3, 9))]
)
def test_versions_are_compared_as_numbers(text, numbers):
    assert versions.parse_version(text) == numbers
    assert versions.parse_version("3.9") < versions.parse_version("3.12")


def test_features_of_newer_keras_are_refused_on_use(monkeypatch, tmp_path):
    monkeypatch.setattr(keras, "__version__", "3.12.4")
    with pytest.raises(
        ImportError,
        match="OrbaxBackup needs Keras 3.14 or newer, and this is Keras 3.12.4. Install a newer "
        "one with: pip install 'keras>=3.14'",
    ):
        ka.distribution.OrbaxBackup(tmp_path)
    monkeypatch.setattr(role_parallel, "_check_backend", lambda: None)
    with pytest.raises(ImportError, match="RoleParallel needs Keras 3.15 or newer, and this is"):
        ka.distribution.RoleParallel({"data": 1})
    versions.require_keras("3.12", "ka.attention")


@pytest.mark.parametrize(("saved_by", "says"), [("99.1.0", True), ("3.12.0", False)])
def test_the_error_of_a_newer_file_names_its_keras_version(tmp_path, saved_by, says):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": saved_by}))
        archive.writestr("config.json", "{}")
    with pytest.raises(ValueError, match="could not be loaded as a Keras model") as error:
        ka.export.load(path)
    text = f"Keras 99.1.0 saved it, and Keras {keras.__version__} may not"
    assert (text in str(error.value)) == says
