"""`manifest.json`: what an app must know about the exported files of one model."""

import json
import os
import pathlib

NAME = "manifest.json"


def check(folder, metadata):
    """Raises ValueError, before any work is done, if the manifest could not be written later."""
    if metadata is not None and "files" in metadata:
        raise ValueError('metadata= has a key "files", which the manifest uses for the exports.')
    try:
        json.dumps(metadata)
    except TypeError as error:
        raise ValueError(f"metadata= cannot be written as JSON: {error}") from error
    read(folder)


def read(folder):
    """The manifest in `folder` as a dict, empty if there is none.

    Its keys are those of `metadata` (labels, vocabulary, padding id, lengths, ...), and `files`,
    a dict from file name to the `ExportReport` of that file.
    """
    path = pathlib.Path(folder) / NAME
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Mend or remove it.") from error


def write(report, metadata=None):
    """Adds `report` to the manifest beside its file, and brings the metadata up to date.

    The exports of one model share a folder and a manifest. Entries of files that are gone are
    dropped. Paths are relative, so the folder can be moved.
    """
    path = pathlib.Path(report.path)
    manifest = read(path.parent)
    files = {k: v for k, v in manifest.get("files", {}).items() if (path.parent / k).exists()}
    files[path.name] = {**report.as_dict(), "path": path.name}
    content = json.dumps({**manifest, **(metadata or {}), "files": files}, indent=2)
    unfinished = path.parent / f".{NAME}.unfinished"
    unfinished.write_text(content + "\n", "utf-8")
    os.replace(unfinished, path.parent / NAME)
