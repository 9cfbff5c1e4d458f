"""What `manifest.json`, beside a model, says about the preprocessing."""

import json
import os

MANIFEST, KEY = "manifest.json", "preprocessing"


def write(folder, config):
    """Puts `config`, a dict with its `"kind"`, into the manifest; what else it says stays."""
    path = folder / MANIFEST
    manifest = _manifest(path) if path.exists() else {}
    unfinished = folder / f".{MANIFEST}.unfinished"
    content = json.dumps({**manifest, KEY: config}, indent=2, ensure_ascii=False)
    unfinished.write_text(content + "\n", "utf-8")
    os.replace(unfinished, path)


def read(folder, kind):
    """The config of this kind (`"tagger"`, `"classifier"`) that the manifest in `folder` holds."""
    config = _manifest(folder / MANIFEST).get(KEY)
    if not isinstance(config, dict) or config.get("kind") != kind:
        raise ValueError(
            f"{folder / MANIFEST} says nothing about a {kind}'s preprocessing: {folder} holds "
            f"no trained {kind}."
        )
    return config


def _manifest(path):
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Mend or remove it.") from error
