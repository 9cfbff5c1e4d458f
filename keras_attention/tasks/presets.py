"""Presets: folders with a trained task each, found by name on this machine or a web server."""

import hashlib
import logging
import os
import pathlib
import shutil
import typing
import urllib.error
import urllib.parse
import urllib.request

from keras_attention.files import manifest
from keras_attention.files.fields import MOST_ID, Fields
from keras_attention.files.io import make_workplace, move_into_place, parse_json, write_json
from keras_attention.tasks.registry import HUB

FOLDERS = "KERAS_ATTENTION_PRESETS"  # environment variable with folders, separated as in PATH
URL = "KERAS_ATTENTION_PRESETS_URL"  # environment variable with the URL of a folder of presets
CACHE = "KERAS_ATTENTION_CACHE"
INDEX = "index.json"
CONFIG = "config.json"  # in the folder of a checkpoint
WHEEL = pathlib.Path(__file__).resolve().parents[1] / "presets"  # filled by setup.py
CLONE = pathlib.Path(__file__).resolve().parents[2] / "saved_models"
ABOUT = ("task", "parameters", "score", "licence", "languages")
SECONDS = 60  # a download fails after so many seconds without data
MOST_BYTES = 1 << 34
LOG = logging.getLogger(__name__)


class PresetInfo(typing.NamedTuple):
    """The description of a preset (a trained task in a folder), as returned by `list_presets`.

    `task` is the name of the task, such as `"text_classifier"`. `score` is a dict of scores on the
    test split. `size` is the total size of the files in bytes. `place` is the folder or the URL of
    the preset. `parameters` is the number of parameters, `licence` the name of a licence, and
    `languages` a tuple of str. `parameters` and `licence` are None if the preset does not state
    them.
    """

    name: str
    task: str
    parameters: int | None
    score: dict
    licence: str | None
    languages: tuple
    size: int
    place: str


def list_presets():
    """List the trained tasks that `from_preset` can open by name, as a list of `PresetInfo`.

    Presets are searched in these places:

    - the folders in the environment variable `KERAS_ATTENTION_PRESETS`, separated as in PATH,
    - the folder `saved_models/`, if the package runs from a clone of its repository,
    - the installed package, which contains `digits-vit` and `pos-tagger-en-ewt`,
    - the URL in the environment variable `KERAS_ATTENTION_PRESETS_URL`.

    If several presets have the same name, the first one is used.

    Example:

    ```python
    import keras_attention as ka

    for preset in ka.tasks.list_presets():
        print(preset.name, preset.task, preset.score)
    ```
    """
    presets = {}
    for folder in _list_folders():
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if (path / manifest.MANIFEST).is_file() and path.name not in presets:
                info = _describe(path)
                if info["task"] is not None:
                    presets[path.name] = _make_info(path.name, info, str(path))
    if url := os.environ.get(URL):
        index = _read_index(url)
        for name in index.values:
            if name not in presets:
                entry = index.object(name)
                files = entry.object("files")
                size = sum(files.object(f).whole("size", most=MOST_BYTES) for f in files.values)
                presets[name] = _make_info(name, {**entry.values, "size": size}, _join(url, name))
    return list(presets.values())


def find_preset(preset):
    """Find a preset by its path or its name, and return the pathlib.Path of its folder or file.

    A preset on a web server is downloaded to a cache, and the SHA-256 of every file is checked.
    Raise a ValueError if the preset does not exist.
    """
    path = pathlib.Path(preset)
    if path.exists():
        return path
    name = str(preset)
    if is_name := path.name == name and not path.suffix:
        for folder in _list_folders():
            if (folder / name / manifest.MANIFEST).is_file():
                return folder / name
        if url := os.environ.get(URL):
            presets = _read_index(url)
            if name in presets:
                return _fetch(url, name, presets.object(name).object("files"))
    raise ValueError(_describe_missing(preset, is_name))


def is_checkpoint(preset):
    """Return whether `preset`, a str or path, is a Hugging Face checkpoint.

    A checkpoint is `hf://...`, or a folder with `config.json` but without `manifest.json`.
    """
    path = pathlib.Path(preset)
    by_files = (path / CONFIG).is_file() and not (path / manifest.MANIFEST).is_file()
    return str(preset).startswith(HUB) or by_files


def _describe_missing(preset, is_name):
    text = f"There is no file or folder {preset}"
    if not is_name:
        return f"{text}."
    names = ", ".join(info.name for info in list_presets()) or "none"
    folders = [*map(str, _list_folders()), *filter(None, [os.environ.get(URL)])]
    return (
        f"{text}, and no preset of that name. Presets in "
        f"{', '.join(folders) or 'no folder'}: {names}. More are in "
        f"saved_models of a clone of keras_attention: set {FOLDERS} to that folder, or {URL} to "
        "the URL of such a folder."
    )


def _list_folders():
    folders = [pathlib.Path(p) for p in os.environ.get(FOLDERS, "").split(os.pathsep) if p]
    return [*folders, *(folder for folder in (CLONE, WHEEL) if folder.is_dir())]


def _describe(folder):
    """Read the description of a preset from its files: a dict with the keys `size` and `ABOUT`."""
    try:
        entries = manifest.read_manifest(folder)
        path = folder / "scores.json"
        scores = Fields.read(path).values if path.is_file() else {}
    except (OSError, ValueError):
        return {"task": None}
    test = scores.get("test")
    first = next(iter(test.values()), {}) if isinstance(test, dict) else {}
    return {
        "task": entries.get("task"),
        "parameters": entries.get("parameters"),
        "score": first if isinstance(first, dict) else {},
        "licence": entries.get("licence"),
        "languages": entries.get("languages_of_texts") or [],
        "size": manifest.count_bytes(folder),
    }


def _make_info(name, entries, place):
    return PresetInfo(
        name=name,
        task=entries["task"],
        parameters=entries.get("parameters"),
        score=entries.get("score") or {},
        licence=entries.get("licence"),
        languages=tuple(entries.get("languages") or ()),
        size=entries["size"],
        place=place,
    )


# Downloads. `keras.utils.get_file` is not used, because devices without Keras download LiteRT
# presets, too.


def write_index(folder):
    """Write `index.json` to a folder of presets, so that a web server can offer the presets.

    The index contains the size and the SHA-256 of every file. Copy the folder to any web server,
    and set `KERAS_ATTENTION_PRESETS_URL` to its URL. Raise a ValueError if the folder contains no
    presets.
    """
    folder, presets = pathlib.Path(folder), {}
    for path in sorted(folder.iterdir()):
        if not (path / manifest.MANIFEST).is_file():
            continue
        files = sorted(file for file in path.rglob("*") if file.is_file())
        entries = _describe(path)
        presets[path.name] = {name: entries.get(name) for name in ABOUT} | {
            "files": {
                file.relative_to(path).as_posix(): manifest.measure_file(file) for file in files
            }
        }
    if not presets:
        raise ValueError(f"{folder} has no preset: expected folders with a manifest.json.")
    write_json(folder / INDEX, {"presets": presets})


def _read_index(url):
    address = _join(url, INDEX)
    content = _download(address)
    try:
        index = parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"{address} is not JSON ({error}): check {URL}.") from error
    return Fields(address, index).object("presets")


def _join(url, *names):
    parts = "/".join(urllib.parse.quote(name) for name in names)
    return f"{url.rstrip('/')}/{parts}"


def _download(address):
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"{URL}: {address} must begin with http:// or https://.")
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise ValueError(f"{address} answers {error.code} {error.reason}: check {URL}.") from error
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ValueError(f"{address} cannot be reached ({reason}): check {URL}.") from error


def _fetch(url, name, files):
    """Return the folder of a preset in the cache, after downloading its `files` if necessary."""
    cache_path = os.environ.get(CACHE) or os.environ.get("XDG_CACHE_HOME")
    cache = pathlib.Path(cache_path).expanduser() if cache_path else pathlib.Path.home() / ".cache"
    url_hash = hashlib.sha256(url.encode()).hexdigest()[:16]
    folder = cache / "keras_attention" / "presets" / url_hash / name
    entries = {path: _read_entry(files, path) for path in files.values}
    if folder.is_dir():
        if all(_is_complete(folder / path, *entry) for path, entry in entries.items()):
            return folder
        shutil.rmtree(folder)
    LOG.info("fetching %s from %s", name, url)
    with make_workplace(folder) as new:
        for path, (_, sha256) in entries.items():
            content = _download(_join(url, name, *path.split("/")))
            if (actual := hashlib.sha256(content).hexdigest()) != sha256:
                raise ValueError(
                    f"{_join(url, name, path)} has the SHA-256 {actual[:16]}..., and {INDEX} has "
                    f"{sha256[:16]}...: it was damaged or changed. Nothing is written."
                )
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(content)
        move_into_place(new, folder)
    return folder


def _read_entry(files, path):
    """Return (size, SHA-256) of a file in the index. Its path must be inside the preset."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise ValueError(f"{files.path}: {path!r} is not a path inside a preset.")
    entry = files.object(path)
    return entry.whole("size", least=0, most=MOST_ID * 8), entry.text("sha256")


def _is_complete(path, size, sha256):
    return (
        path.is_file() and path.stat().st_size == size and manifest.compute_sha256(path) == sha256
    )
