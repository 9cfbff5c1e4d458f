"""The place of an export: its target, and its entry in `manifest.json` beside it."""

import json
import os
import pathlib

from keras_attention.files import manifest
from keras_attention.files.io import move_into_place


def check_target(path):
    """Refuses a link as the target of an export, which would replace the link, not its target."""
    if pathlib.Path(path).is_symlink():
        raise ValueError(
            f"path={str(path)!r} is a link to {os.readlink(path)}: name the file or folder itself."
        )


def check_metadata(folder, metadata):
    """Raises ValueError, before any work is done, if the manifest could not be written later."""
    if metadata is not None and "files" in metadata:
        raise ValueError('metadata= has a key "files", which the manifest uses for the exports.')
    try:
        json.dumps(metadata, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata= cannot be written as JSON: {error}") from error
    manifest.read_manifest(folder)


def publish_export(new, report, metadata=None):
    """Moves the file or folder `new` to where `report` says, and adds the report to the manifest.

    The exports of one model share a folder and a manifest. Its keys are those of `metadata`
    (labels, vocabulary, padding id, lengths, ...), and `files`, a dict from file name to the
    `ExportReport` of that file, or to the size and digest of another one. Entries of files that
    are gone are dropped. Paths are relative, so the folder can be moved.
    """
    path = pathlib.Path(report.path)
    entry = {**report.as_dict(), "path": path.name}

    def add(content):
        content = manifest.add_files(path.parent, content, {path.name: entry})
        return {**content, **(metadata or {}), "files": content["files"]}

    # In one step: another process that exports to the same path must not come between.
    manifest.change_manifest(path.parent, add, before=lambda: move_into_place(new, path))
