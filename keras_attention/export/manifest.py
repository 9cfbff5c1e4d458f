"""Check the target path of an export, and add the exported file to `manifest.json`."""

import json
import os
import pathlib

from keras_attention.files import manifest
from keras_attention.files.io import move_into_place


def check_target(path):
    """Raise a ValueError if the path to export to is a symbolic link.

    The export would replace the link, and not the file that the link points to.
    """
    if pathlib.Path(path).is_symlink():
        raise ValueError(
            f"path={str(path)!r} is a link to {os.readlink(path)}. Use the path of the target."
        )


def check_metadata(folder, metadata):
    """Raise a ValueError if the manifest in `folder` is invalid or cannot store `metadata`."""
    if metadata is not None and "files" in metadata:
        raise ValueError(
            'metadata= has a key "files", which the manifest uses for the exports. Rename the key.'
        )
    try:
        json.dumps(metadata, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"metadata= cannot be written as JSON: {error}. Use plain numbers, strings, lists and "
            "dicts."
        ) from error
    manifest.read_manifest(folder)


def publish_export(new, report, metadata=None):
    """Move a new file or folder to the path in its report, and add the report to the manifest.

    The exports of a model share a folder and a manifest. The manifest contains `metadata` (labels,
    vocabulary, lengths and so on) and `files`, a dict from the name of each export to its
    `ExportReport`, and from the names of other files to their size and digest. Entries of deleted
    files are removed. Paths are relative, so that the folder can be moved.

    Args:
        new: temporary path of the new file or folder.
        report: `ExportReport` of the file.
        metadata: dict of entries for the manifest, or None.
    """
    path = pathlib.Path(report.path)
    entry = {**report.as_dict(), "path": path.name}

    def add(content):
        content = manifest.add_files(path.parent, content, {path.name: entry})
        return {**content, **(metadata or {}), "files": content["files"]}

    # The manifest is locked meanwhile, so that no other process can export to the same path.
    manifest.change_manifest(path.parent, add, before=lambda: move_into_place(new, path))
