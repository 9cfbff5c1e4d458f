"""Presets: trained models by name, found in folders, in a clone, or behind a URL."""

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

FOLDERS = "KERAS_ATTENTION_PRESETS"  # folders of presets, as PATH has them
URL = "KERAS_ATTENTION_PRESETS_URL"  # of a folder of presets with an index.json
CACHE = "KERAS_ATTENTION_CACHE"
INDEX = "index.json"
CONFIG = "config.json"  # of a checkpoint
WHEEL = pathlib.Path(__file__).resolve().parents[1] / "presets"  # where setup.py puts some
CLONE = pathlib.Path(__file__).resolve().parents[2] / "saved_models"
ABOUT = ("task", "parameters", "score", "licence", "languages")
SECONDS = 60  # without an answer
MOST_BYTES = 1 << 34
LOG = logging.getLogger(__name__)


class PresetInfo(typing.NamedTuple):
    """A line of `list_presets`.

    `score` is a dict of those on the test part, `size` the bytes of all its files, and `place` the
    folder or URL it is in.
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
    """Return the presets that `from_preset` finds by name, a list of `PresetInfo`.

    They are looked for in the folders that the environment variable `KERAS_ATTENTION_PRESETS` names
    (as PATH does), in `saved_models/` of a clone, in the installed package, which has `digits-vit`
    and `pos-tagger-en-ewt`, and behind `KERAS_ATTENTION_PRESETS_URL`. Of several with one name the
    first counts.

    Example:

    ```python
    import keras_attention as ka

    for preset in ka.tasks.list_presets():
        print(preset.name, preset.task, preset.score)
    ```
    """
    found = {}
    for folder in _list_folders():
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if (path / manifest.MANIFEST).is_file() and path.name not in found:
                info = _describe(path)
                if info["task"] is not None:
                    found[path.name] = _make_info(path.name, info, str(path))
    if url := os.environ.get(URL):
        presets = _read_index(url)
        for name in presets.values:
            if name not in found:
                entry = presets.object(name)
                files = entry.object("files")
                size = sum(files.object(f).whole("size", most=MOST_BYTES) for f in files.values)
                found[name] = _make_info(name, {**entry.values, "size": size}, _join(url, name))
    return list(found.values())


def find_preset(preset):
    """Return the path of a preset: a path that exists, or of a name that `list_presets` has.

    One behind a URL is fetched into a cache, every file checked by its SHA-256.
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
    raise ValueError(_say_what_there_is(preset, is_name))


def is_checkpoint(preset):
    """Return whether a preset is a checkpoint: `hf://...`, or a folder without our manifest."""
    path = pathlib.Path(preset)
    by_files = (path / CONFIG).is_file() and not (path / manifest.MANIFEST).is_file()
    return str(preset).startswith(HUB) or by_files


def _say_what_there_is(preset, is_name):
    text = f"There is no file or folder {preset}"
    if not is_name:
        return f"{text}."
    names = ", ".join(info.name for info in list_presets()) or "none"
    places = [*map(str, _list_folders()), *filter(None, [os.environ.get(URL)])]
    return (
        f"{text}, and no preset of that name. Presets in "
        f"{', '.join(places) or 'no folder'}: {names}. More are in "
        f"saved_models of a clone of keras_attention: let {FOLDERS} name that folder, or {URL} the "
        "address of one."
    )


def _list_folders():
    folders = [pathlib.Path(p) for p in os.environ.get(FOLDERS, "").split(os.pathsep) if p]
    return [*folders, *(folder for folder in (CLONE, WHEEL) if folder.is_dir())]


def _describe(folder):
    """Return what a preset's files say about it, a dict of `ABOUT` and `size`."""
    try:
        said = manifest.read_manifest(folder)
        path = folder / "scores.json"
        scores = Fields.read(path).values if path.is_file() else {}
    except (OSError, ValueError):
        return {"task": None}
    test = scores.get("test")
    first = next(iter(test.values()), {}) if isinstance(test, dict) else {}
    return {
        "task": said.get("task"),
        "parameters": said.get("parameters"),
        "score": first if isinstance(first, dict) else {},
        "licence": said.get("licence"),
        "languages": said.get("languages_of_texts") or [],
        "size": manifest.count_bytes(folder),
    }


def _make_info(name, about, place):
    return PresetInfo(
        name=name,
        task=about["task"],
        parameters=about.get("parameters"),
        score=about.get("score") or {},
        licence=about.get("licence"),
        languages=tuple(about.get("languages") or ()),
        size=about["size"],
        place=place,
    )


# Behind a URL. Not by keras.utils.get_file: a device without Keras fetches LiteRT presets, too.


def write_index(folder):
    """Writes `index.json` into a folder of presets, so that a web server can offer them.

    It has the size and the SHA-256 of every file. Put the folder behind any web server, and let
    `KERAS_ATTENTION_PRESETS_URL` name it.

    Args:
        folder: path of a folder with a folder for each preset.
    """
    folder, presets = pathlib.Path(folder), {}
    for path in sorted(folder.iterdir()):
        if not (path / manifest.MANIFEST).is_file():
            continue
        files = sorted(file for file in path.rglob("*") if file.is_file())
        about = _describe(path)
        presets[path.name] = {name: about.get(name) for name in ABOUT} | {
            "files": {
                file.relative_to(path).as_posix(): manifest.measure_file(file) for file in files
            }
        }
    if not presets:
        raise ValueError(f"{folder} holds no preset: expected folders with a manifest.json.")
    write_json(folder / INDEX, {"presets": presets})


def _read_index(url):
    place = _join(url, INDEX)
    content = _download(place)
    try:
        index = parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"{place} is no JSON ({error}): check {URL}.") from error
    return Fields(place, index).object("presets")


def _join(url, *names):
    parts = "/".join(urllib.parse.quote(name) for name in names)
    return f"{url.rstrip('/')}/{parts}"


def _download(place):
    if urllib.parse.urlsplit(place).scheme not in ("http", "https"):
        raise ValueError(f"{URL}: {place} is no address that begins with http:// or https://.")
    try:
        with urllib.request.urlopen(place, timeout=SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise ValueError(f"{place} answers {error.code} {error.reason}: check {URL}.") from error
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ValueError(f"{place} cannot be reached ({reason}): check {URL}.") from error


def _cache_folder(url):
    """Where what is behind `url` is kept."""
    given = os.environ.get(CACHE) or os.environ.get("XDG_CACHE_HOME")
    cache = pathlib.Path(given).expanduser() if given else pathlib.Path.home() / ".cache"
    return cache / "keras_attention" / "presets" / hashlib.sha256(url.encode()).hexdigest()[:16]


def _fetch(url, name, files):
    """Return the folder of a preset in the cache, with its files as the index has them."""
    folder = _cache_folder(url) / name
    wanted = {path: _read_entry(files, path) for path in files.values}
    if folder.is_dir():
        if all(_is_right(folder / path, *entry) for path, entry in wanted.items()):
            return folder
        shutil.rmtree(folder)
    LOG.info("fetching %s from %s", name, url)
    with make_workplace(folder) as new:
        for path, (_, sha256) in wanted.items():
            content = _download(_join(url, name, *path.split("/")))
            if (found := hashlib.sha256(content).hexdigest()) != sha256:
                raise ValueError(
                    f"{_join(url, name, path)} has the SHA-256 {found[:16]}..., and {INDEX} says "
                    f"{sha256[:16]}...: it was damaged on the way, or changed. Nothing is kept."
                )
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(content)
        move_into_place(new, folder)
    return folder


def _read_entry(files, path):
    """Return (size, SHA-256) of a file, after a check that it lies inside the preset."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise ValueError(f"{files.path}: {path!r} is no path inside a preset.")
    entry = files.object(path)
    return entry.whole("size", least=0, most=MOST_ID * 8), entry.text("sha256")


def _is_right(path, size, sha256):
    return (
        path.is_file() and path.stat().st_size == size and manifest.compute_sha256(path) == sha256
    )
