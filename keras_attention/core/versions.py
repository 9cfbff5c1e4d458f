"""Errors for features and saved files that need a newer version of Keras."""

import contextlib
import json
import re
import zipfile


def require_keras(version, name):
    """Raise an ImportError if Keras is older than `version`, which the feature `name` needs."""
    import keras

    if parse_version(keras.__version__) < parse_version(version):
        raise ImportError(
            f"{name} needs Keras {version} or newer, and this is Keras {keras.__version__}. "
            f"Install a newer one with: pip install 'keras>={version}'"
        )


def explain_newer_file(path):
    """Return a sentence for an error message if a newer version of Keras saved the file `path`.

    Return "" for files of this or an older version, and for files that are not `.keras` files.
    """
    import keras

    version = ""
    with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile):
        with zipfile.ZipFile(path) as archive:
            version = str(json.loads(archive.read("metadata.json"))["keras_version"])
    if parse_version(version) <= parse_version(keras.__version__):
        return ""
    return (
        f" Keras {version} saved it, and Keras {keras.__version__} may not read all of it. Install "
        f"the newer one with: pip install 'keras>={version}'. Or save it with save_to_preset of "
        "its task, which older versions can read."
    )


def parse_version(text):
    """Parse the first three numbers of a version: `"3.12.0"` becomes (3, 12, 0)."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
