"""Files and folders: what they are, how big, and how new ones take their place in one move."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile
import zipfile


def kind(path):
    """`"keras"`, `"saved_model"` or `"litert"`, by content; anything else is a ValueError."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return "saved_model"
    elif _starts_as_flatbuffer(path):
        return "litert"
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "config.json" in archive.namelist():
                return "keras"
    raise ValueError(
        f"{path} is no model: expected a .keras file, a SavedModel folder (one that holds "
        "saved_model.pb) or a .tflite file."
    )


def _starts_as_flatbuffer(path):
    with open(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3"


def size(path):
    """Bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in _files(path))


def sha256(path):
    """SHA-256 of a file; of a folder, over the sorted names and contents of its files."""
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


@contextlib.contextmanager
def replacing(path):
    """Gives a temporary path to write to, and moves it to `path` when the block ends well.

    The temporary path lies beside `path`, so that the move is one rename. When the block raises,
    what was written is removed, and what was at `path` before is still there.
    """
    path = pathlib.Path(path)
    made = _make_folders(path.parent)
    workplace = pathlib.Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield workplace / path.name
        _move(workplace / path.name, path, workplace / "previous")
    except BaseException:
        shutil.rmtree(workplace)
        for folder in made:
            folder.rmdir()
        raise
    shutil.rmtree(workplace)


def _make_folders(folder):
    """Makes `folder` and its parents; returns those that were missing, innermost first."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _move(new, path, previous):
    if not path.is_dir():
        os.replace(new, path)
        return
    os.rename(path, previous)  # a folder that is not empty cannot be replaced in one step
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(previous, path)
        raise
