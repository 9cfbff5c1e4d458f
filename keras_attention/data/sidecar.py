"""What `manifest.json`, beside a model, says about the preprocessing."""

from keras_attention.data.files import read_json, write_json

MANIFEST, KEY = "manifest.json", "preprocessing"


def write(folder, config):
    """Puts `config`, a dict with its `"kind"`, into the manifest; what else it says stays."""
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
