"""`manifest.json` of a model's folder: checked when it is read, changed by one writer at a time."""

import hashlib
import pathlib

from keras_attention.files.fields import Fields
from keras_attention.files.io import UNFINISHED, check_plain, lock_folder, write_json

MANIFEST = "manifest.json"
PREPROCESSING = "preprocessing"  # the key of the config of a preprocessor


def read_manifest(folder, required=False):
    """Read the manifest in `folder` as a dict, which is empty if there is none.

    Raises:
        FileNotFoundError: it is `required` and missing.
        ValueError: it is not a JSON object, or its `files` is not an object of objects under plain
            names.
    """
    path = pathlib.Path(folder) / MANIFEST
    if not (required or path.exists()):
        return {}
    content = Fields.read(path)
    files = content.object("files") if "files" in content else Fields(path, {})
    for name in files.values:
        check_plain(name, f"{path}: a name in files")
        files.object(name)
    return dict(content.values)


def change_manifest(folder, function, before=None):
    """Replace the manifest by `function(old content)`, a dict, under a lock.

    Args:
        before: function, called when the new manifest is written, before it is moved into place. It
            moves the file that the manifest describes.
    """
    folder = pathlib.Path(folder)
    with lock_folder(folder) as alone:
        for leftover in folder.glob(f".{MANIFEST}.*{UNFINISHED}") if alone else ():
            leftover.unlink()  # of a process that was killed
        write_json(folder / MANIFEST, function(read_manifest(folder)), before)


def record_files(folder, *names, **content):
    """Write sizes and digests of files in `folder`, and other entries, into the manifest.

    `check_unchanged` compares them when a file is read. Entries of missing files are dropped.
    """
    folder = pathlib.Path(folder)
    entries = {name: {"path": name, **measure_file(folder / name)} for name in names}
    change_manifest(
        folder, lambda content_before: {**add_files(folder, content_before, entries), **content}
    )


def add_files(folder, content, entries):
    """Return `content`, of a manifest, with `entries` (dict: name -> dict) among its files."""
    files = content.get("files", {})
    existing = {name: entry for name, entry in files.items() if (folder / name).exists()}
    return {**content, "files": {**existing, **entries}}


def save_preprocessing(folder, config, parts):
    """Write `parts`, {file name: object with a `save`}, and put `config` into the manifest.

    Args:
        folder: str or path. It is made if missing.
        config: dict with its `"kind"`. Other entries of the manifest stay.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        part.save(folder / name)
    record_files(folder, *parts, **{PREPROCESSING: config})


def read_preprocessing(folder, kind, *other_kinds):
    """Return the config of this kind (`"tagger"`, `"classifier"`) in the manifest of `folder`.

    Returns:
        `Fields`, which check each value when it is read.
    """
    folder = pathlib.Path(folder)
    content = Fields(folder / MANIFEST, read_manifest(folder, required=True))
    config = content.values.get(PREPROCESSING)
    if not isinstance(config, dict) or config.get("kind") not in (kind, *other_kinds):
        raise ValueError(
            f"{content.path} says nothing about a {kind}'s preprocessing: {folder} holds "
            f"no trained {kind}."
        )
    for name in _list_texts(config) & content.values.get("files", {}).keys():
        check_unchanged(folder / name)
    return content.object(PREPROCESSING)


def _list_texts(value):
    """List every str in nested dicts. The names of files are among them."""
    if isinstance(value, dict):
        return set().union(*map(_list_texts, value.values()))
    return {value} if isinstance(value, str) else set()


def measure_file(path):
    """Return a dict with size and SHA-256 of a file, or of all files in a folder."""
    return {"size": count_bytes(path), "sha256": compute_sha256(path)}


def count_bytes(path):
    """Count the bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in _files(path))


def compute_sha256(path):
    """Compute the SHA-256 of a file, or of the sorted names and contents in a folder."""
    path = pathlib.Path(path)
    digest = hashlib.sha256()
    for file in _files(path):
        if path.is_dir():
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        with open(file, "rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _files(path):
    path = pathlib.Path(path)
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def check_unchanged(path):
    """Raise a ValueError if the manifest beside a file, or folder, has another digest.

    A file without an entry passes, and so does one beside a manifest of something else.
    """
    path = pathlib.Path(path)
    if _is_as_noted(path):
        return
    with lock_folder(path.parent):  # no process is between writing a file and its manifest
        if _is_as_noted(path):
            return
    raise ValueError(
        f"{path} is not what it was when {path.parent / MANIFEST} was written: it is damaged, or "
        "from another model, or was changed. Put the right file back, or write it again; where the "
        f"change is meant, take the sha256 of {path.name} out of the manifest."
    )


def _is_as_noted(path):
    try:
        noted = read_manifest(path.parent).get("files", {}).get(path.name, {}).get("sha256")
    except (OSError, ValueError):
        return True
    return not isinstance(noted, str) or noted == compute_sha256(path)
