"""Files beside a model, which are complete or not there, and the manifest that names them."""

import json
import os
import pathlib

MANIFEST, KEY = "manifest.json", "preprocessing"


def write_whole(path, content):
    """Writes the bytes `content`; the file is complete or not there."""
    path = pathlib.Path(path)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def write_json(path, content):
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_whole(path, (text + "\n").encode("utf-8"))


def read_json(path):
    path = pathlib.Path(path)
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Mend or remove it.") from error


def write_preprocessing(folder, config):
    """Says `config` in the manifest of `folder`; what else the manifest says stays as it is."""
    path = pathlib.Path(folder) / MANIFEST
    manifest = read_json(path) if path.exists() else {}
    write_json(path, {**manifest, KEY: config})


def read_preprocessing(folder, kind, name):
    """What the manifest of `folder` says about the preprocessing of a `kind`, called `name`."""
    path = pathlib.Path(folder) / MANIFEST
    config = read_json(path).get(KEY)
    if not isinstance(config, dict) or config.get("kind") != kind:
        raise ValueError(
            f"{path} says nothing about a {name}'s preprocessing: {folder} holds no trained {name}."
        )
    return config
