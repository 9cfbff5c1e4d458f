"""Errors that name the version of Keras that a feature or a saved file needs."""

import contextlib
import json
import re
import zipfile


def require_keras(version, name):
    """Raise ImportError if Keras is older than `version`, which `name` needs."""
    import keras

    if parse_version(keras.__version__) < parse_version(version):
        raise ImportError(
            f"{name} needs Keras {version} or newer, and this is Keras {keras.__version__}. "
            f"Install a newer one with: pip install 'keras>={version}'"
        )


def explain_newer_file(path):
    """Return how to load a `.keras` file that a newer Keras saved, or "" if that is not so."""
    import keras

    version = ""
    with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
        with zipfile.ZipFile(path) as archive:
            version = str(json.loads(archive.read("metadata.json"))["keras_version"])
    if parse_version(version) <= parse_version(keras.__version__):
        return ""
    return (
        f" Keras {version} saved it, and this is Keras {keras.__version__}, which may not know all "
        f"that is in it: pip install 'keras>={version}', or save it there by save_to_preset of its "
        "task, which leaves out what older versions do not need."
    )


def parse_version(text):
    """Return the numbers of a version: `"3.12.0"` is (3, 12, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
