"""What `manifest.json`, beside a model, says about the preprocessing."""

import pathlib

from keras_attention.data.files import read_json, write_json

MANIFEST, KEY = "manifest.json", "preprocessing"


def save(folder, config, parts):
    """Writes `parts`, {file name: what has a `save`}, and puts `config` into the manifest.

    Args:
        folder: str or path; it is made if it is not there.
        config: dict with its `"kind"`. What else the manifest says stays.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        part.save(folder / name)
    path = folder / MANIFEST
    manifest = read_json(path) if path.exists() else {}
    write_json(path, {**manifest, KEY: config})


def read(folder, kind):
    """The config of this kind (`"tagger"`, `"classifier"`) that the manifest in `folder` holds."""
    config = read_json(folder / MANIFEST).get(KEY)
    if not isinstance(config, dict) or config.get("kind") != kind:
        raise ValueError(
            f"{folder / MANIFEST} says nothing about a {kind}'s preprocessing: {folder} holds "
            f"no trained {kind}."
        )
    return config
