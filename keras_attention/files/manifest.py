"""Read and change `manifest.json`, which describes the files in the folder of a model."""

import hashlib
import pathlib

from keras_attention.files.fields import Fields
from keras_attention.files.io import UNFINISHED, check_plain, lock_folder, write_json

MANIFEST = "manifest.json"
PREPROCESSING = "preprocessing"  # key of a preprocessor's config
ORDER = ("task", PREPROCESSING, "", "files")  # of the entries in a manifest, "" for all others


def read_manifest(folder, required=False):
    """Return the content of `manifest.json` in `folder` as a dict.

    The entry `"files"` is a dict {file name: dict}, which describes the files of a model.

    Args:
        folder: str or path of the model's folder.
        required: bool, whether a missing manifest is an error. Otherwise {} is returned.

    Raises:
        FileNotFoundError: the manifest is `required` and missing.
        ValueError: the manifest is not a JSON object, or its entry `"files"` is not an object whose
            keys are plain file names and whose values are objects.
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
    """Replace the content of the manifest by `function(content)`, while the folder is locked.

    The task and the preprocessing stand first in the file, and the long entry `"files"` last.

    Args:
        folder: str or path of the model's folder.
        function: function from the old content to the new content, both dicts.
        before: function without arguments, called before the new manifest is moved into place, for
            example to move a file that it describes. None calls nothing.
    """
    folder = pathlib.Path(folder)
    with lock_folder(folder) as locked:
        for leftover in folder.glob(f".{MANIFEST}.*{UNFINISHED}") if locked else ():
            leftover.unlink()  # from a killed process
        content = function(read_manifest(folder))
        names = sorted(content, key=lambda name: ORDER.index(name if name in ORDER else ""))
        write_json(folder / MANIFEST, {name: content[name] for name in names}, before)


def record_files(folder, *names, **content):
    """Add the sizes and SHA-256 digests of files, and other entries, to the manifest.

    `check_unchanged` compares the digests with the files later. Entries of files that no longer
    exist are dropped.

    Args:
        folder: str or path of the model's folder.
        *names: names of files in `folder`.
        **content: other entries of the manifest, which are added or replaced.
    """
    folder = pathlib.Path(folder)
    entries = {name: {"path": name, **measure_file(folder / name)} for name in names}
    change_manifest(
        folder, lambda content_before: {**add_files(folder, content_before, entries), **content}
    )


def add_files(folder, content, entries):
    """Return the content of a manifest with `entries` added to its entry `"files"`.

    Entries of files that no longer exist are dropped.

    Args:
        folder: path of the model's folder.
        content: dict, the content before.
        entries: dict {file name: dict that describes the file}.
    """
    files = content.get("files", {})
    existing = {name: entry for name, entry in files.items() if (folder / name).exists()}
    return {**content, "files": {**existing, **entries}}


def save_preprocessing(folder, config, contents):
    """Save the vocabularies of a preprocessor to files, and its config to the manifest.

    Args:
        folder: str or path. It is created if it is missing.
        config: dict, the entry `"preprocessing"` of the manifest. Its key `"kind"` says which
            preprocessor it is, such as `"tagger"`.
        contents: dict {file name: object with a method `save(path)`, such as a vocabulary}.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        content.save(folder / name)
    record_files(folder, *contents, **{PREPROCESSING: config})


def read_preprocessing(folder, kind, *other_kinds):
    """Read the config of a preprocessor from the manifest in `folder`, and check its files.

    Args:
        folder: str or path of the model's folder.
        kind, *other_kinds: str, the accepted values of `"kind"`, the entry of the config that says
            which preprocessor it is, such as `"tagger"` or `"classifier"`.

    Returns:
        The `Fields` of the config, which validate each value when it is read.

    Raises:
        ValueError: the config is missing or of another kind, or a file was changed.
    """
    folder = pathlib.Path(folder)
    content = Fields(folder / MANIFEST, read_manifest(folder, required=True))
    config = content.values.get(PREPROCESSING)
    if not isinstance(config, dict) or config.get("kind") not in (kind, *other_kinds):
        raise ValueError(
            f"{content.path} has no preprocessing for a {kind}: {folder} holds no trained {kind}."
        )
    for name in _list_texts(config) & content.values.get("files", {}).keys():
        check_unchanged(folder / name)
    return content.object(PREPROCESSING)


def _list_texts(value):
    """Return the set of all strings in nested dicts. Some of them are names of files."""
    if isinstance(value, dict):
        return set().union(*map(_list_texts, value.values()))
    return {value} if isinstance(value, str) else set()


def measure_file(path):
    """Return a dict with the `size` in bytes and the `sha256` of a file or of a whole folder."""
    return {"size": count_bytes(path), "sha256": compute_sha256(path)}


def count_bytes(path):
    """Count the bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in _files(path))


def compute_sha256(path):
    """Compute the SHA-256 of a file, or of the names and contents of all files in a folder."""
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
    """Raise a ValueError if a file or folder differs from its SHA-256 digest in the manifest.

    The manifest is in the same folder. If it is missing or damaged, or has no digest of the file,
    nothing is checked.
    """
    path = pathlib.Path(path)
    if _equals_digest(path):
        return
    with lock_folder(path.parent):  # wait for a process that is writing it
        if _equals_digest(path):
            return
    raise ValueError(
        f"{path} differs from the file that {path.parent / MANIFEST} describes: it was changed, is "
        "damaged, or belongs to another model. Restore the file or write it again. To keep the "
        f"change, remove the sha256 of {path.name} from the manifest."
    )


def _equals_digest(path):
    try:
        noted = read_manifest(path.parent).get("files", {}).get(path.name, {}).get("sha256")
    except (OSError, ValueError):
        return True
    return not isinstance(noted, str) or noted == compute_sha256(path)
