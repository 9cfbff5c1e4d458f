"""The folder of a trained model: its files, its manifest, and a run that fills it."""

import contextlib
import errno
import json
import pathlib
import shutil

from keras_attention.core.lazy import has_keras
from keras_attention.export.checks.runner import find_format
from keras_attention.files import manifest
from keras_attention.files.fields import Fields
from keras_attention.files.io import move_into_place, write_json
from keras_attention.tasks.registry import TASKS, get_task_class

MODEL, SAVED_MODEL, LITERT, LITERT_INT8 = (
    "model.keras",
    "saved_model",
    "model.tflite",
    "model.int8.tflite",
)
FORMATS = {"keras": MODEL, "saved_model": SAVED_MODEL, "litert": LITERT, "litert-int8": LITERT_INT8}
OF_ANY_LENGTH = ("token_ids", "source_ids", "waveform", "features")  # inputs of a free file
# The options of an export that make the others of the Keras model.
EXPORTED_BY = {
    "saved_model": {"format": "saved_model"},
    "litert": {},
    "litert-int8": {"quantization": "int8_weights"},
}
SCORES, CARD, MANIFEST = "scores.json", "README.md", "manifest.json"
STATE = ".training"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class MissingFileError(ValueError):
    """A preset lacks the file of a format.

    Attributes:
        folder: pathlib.Path, of the preset.
        export: dict, the options of an export that makes the file, or None without `model.keras`.
    """

    def __init__(self, message, folder, export):
        super().__init__(message)
        self.folder, self.export = folder, export


class RunFolder:
    """An output folder while it is being filled.

    Everything is made in `.training/` and moved out when it is complete, so the folder holds a
    whole model or none. An unfinished run is found again by the settings that it was started with.
    """

    def __init__(self, path, settings, *, replace=False):
        """Refuses a folder that holds anything but an unfinished run with these settings.

        Args:
            path: the folder; nothing is written yet.
            settings: dict of the run's options, as JSON can hold it.
            replace: bool, whether a finished model may be replaced.
        """
        self.path = pathlib.Path(path)
        self.state = self.path / STATE
        self.settings = json.loads(json.dumps(settings, default=_describe_part))
        self.resumed = False
        for place in (self.path, *self.path.parents):
            if place.exists() and not place.is_dir():
                raise ValueError(f"{path}: {place} is a file: name a folder.")
        if (self.state / "settings.json").is_file():
            self._check_settings()
            self.resumed = True
        elif self.path.is_dir() and any(self.path.iterdir()):
            self._check_content(replace)

    def _check_settings(self):
        started = flatten(Fields.read(self.state / "settings.json").values)
        given = flatten(self.settings)
        for key in sorted(set(started) | set(given)):
            if started.get(key) != given.get(key):
                raise ValueError(
                    f"{self.path} holds an unfinished run with other settings ({key}: "
                    f"{started.get(key)} there, {given.get(key)} here). Run that command again, "
                    "name another folder, or delete this one."
                )

    def _check_content(self, replace):
        finished = (self.path / SCORES).is_file() and (self.path / MANIFEST).is_file()
        if finished and replace:
            return
        holds = "a finished model" if finished else "other files"
        raise ValueError(
            f"{self.path} already holds {holds}: name another folder, or empty this one."
        )

    def start(self):
        """Makes the folder and notes the settings."""
        self.state.mkdir(parents=True, exist_ok=True)
        write_json(self.state / "settings.json", self.settings)

    @property
    def backup(self):
        """Where the state of the last epoch is kept."""
        return self.state / "backup"

    @property
    def best(self):
        """Where the weights of the best epoch are kept."""
        return self.state / "best.weights.h5"

    @property
    def history(self):
        """Where every epoch's numbers are noted."""
        return self.state / "history.json"

    @contextlib.contextmanager
    def explain_full_disk(self):
        """Inside, a full disk is an error that says how to go on."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise OSError(
                f"{self.path}: {error.strerror}. What was trained is kept there: make room, and "
                "start the same training again to go on."
            ) from error

    @contextlib.contextmanager
    def collect_results(self):
        """Gives an empty folder to put the results in, and moves them into place at the end."""
        result = self.state / "result"
        shutil.rmtree(result, ignore_errors=True)
        result.mkdir()
        yield result
        for old in [p for p in self.path.iterdir() if p.name != STATE]:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for made in result.iterdir():
            move_into_place(made, self.path / made.name)
        shutil.rmtree(self.state)

    @contextlib.contextmanager
    def fill(self):
        """Like `collect_results`, of what is made in one go: an error leaves nothing behind."""
        self.start()
        try:
            with self.collect_results() as result:
                yield result
        except BaseException:
            self.discard()
            raise

    def discard(self):
        """Forgets the run: its state goes, and its folder where nothing else is in there."""
        shutil.rmtree(self.state, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def find_model_file(path, kind=None):
    """Return the folder of a trained model, and which of its files to run.

    Args:
        path: the folder, or a model file or SavedModel in it.
        kind: `"keras"`, `"saved_model"`, `"litert"`, `"litert-int8"`, or None for the first of
            these that is there. Without Keras it is the first LiteRT file.

    Returns:
        The folder and the file, both pathlib.Path.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise ValueError(f"There is no file or folder {path}.")
    inside = path.is_file() or (path / "saved_model.pb").is_file()
    folder = path.parent if inside else path
    if kind is not None:
        if not (folder / FORMATS[kind]).exists():
            raise _report_missing(folder, kind)
        return folder, folder / FORMATS[kind]
    if inside:
        find_format(path)  # a ValueError if it is no model
        return folder, path
    names = [name for name in FORMATS.values() if (folder / name).exists()]
    if not has_keras():
        names.sort(key=lambda name: name not in (LITERT, LITERT_INT8))
    if names:
        return folder, folder / names[0]
    raise ValueError(f"{folder} holds no model: none of {', '.join(FORMATS.values())} is there.")


def answers_alike(folder):
    """Return whether the float32 LiteRT file of a preset answers as its Keras model does.

    The export must have compared their numbers. The file must take inputs of any number and
    length. The task must not draw at random.
    """
    if not (folder / LITERT).is_file():
        return False
    manifest = read_task_manifest(folder)
    entry = manifest.get("files", {}).get(LITERT, {})
    if get_task_class(manifest["task"]).draws:
        return False
    return bool(entry.get("parity")) and not entry.get("quantization") and _takes_all(entry)


def _takes_all(entry):
    """Return whether the manifest's entry of a file says that it takes inputs of any size."""
    try:
        inputs = [
            (tensor["shape"], tensor["name"] in OF_ANY_LENGTH)
            for signature in entry["signatures"]
            for tensor in signature["inputs"]
            if signature["name"] != "step"
        ]
        return all(shape[0] is None and (not long or shape[1] is None) for shape, long in inputs)
    except (KeyError, IndexError, TypeError):  # damaged, or of an old version
        return False


def _report_missing(folder, kind):
    """Make the error about a format that is not in `folder`."""
    text = f"{folder} holds no {FORMATS[kind]}"
    there = [f"file={k!r} ({name})" for k, name in FORMATS.items() if (folder / name).exists()]
    if not there:
        return MissingFileError(f"{text}.", folder, None)
    if (folder / MODEL).exists():
        mend, export = f"Export {MODEL} to make it.", EXPORTED_BY[kind]
    else:
        mend, export = "Its README.md names the command that makes all of them.", None
    return MissingFileError(f"{text}; it has {', '.join(there)}. {mend}", folder, export)


def _describe_part(part):
    """Return what JSON can hold of a part or a function in the keywords of a model.

    Names and dtypes are left out: they are given by number, and a run that goes on has others.
    """
    if not hasattr(part, "get_config"):
        return getattr(part, "__name__", type(part).__name__)
    return {"class_name": type(part).__name__, "config": _drop_names(part.get_config())}


def _drop_names(config):
    """Return a config without the names and dtypes of layers, at any depth."""
    if isinstance(config, list | tuple):
        return [_drop_names(value) for value in config]
    if not isinstance(config, dict):
        return config
    left_out = ("name", "dtype", "trainable", "build_config", "shared_object_id")
    return {key: _drop_names(value) for key, value in config.items() if key not in left_out}


def flatten(settings, prefix=""):
    """Nested dicts as one: `{"recipe": {"seed": 0}}` is `{"recipe.seed": 0}`."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= flatten(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


SOURCE = ("dataset", "label_column", "text_column", "languages", "encoding")


def refuse_links(folder):
    """Raises ValueError if a file of the preset `folder` is a link to a place outside of it."""
    root = folder.resolve()
    for path in (*folder.iterdir(), *(folder / SAVED_MODEL).rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise ValueError(
                f"{path} is a link to {path.resolve()}: expected a file in the folder of the "
                "preset, as nothing outside of it is read. Copy the file there."
            )


def read_task_manifest(folder):
    """Return the manifest of a folder that `train` or `demo` made, as a dict; else a ValueError.

    The fields that its task reads have the right types and bounds then: files may be damaged, or
    come from anywhere.
    """
    fields = _fields(folder)
    if "task" not in fields:
        raise ValueError(
            f"{folder} holds no {MANIFEST} that says what its model is for: it was not "
            "made by `keras-attention train` or a task's `save_to_preset`."
        )
    refuse_links(folder)
    return _checked(fields)


def read_any_manifest(folder):
    """Return the manifest of any folder, as a dict. Without a task it is not checked."""
    fields = _fields(folder)
    return _checked(fields) if "task" in fields else fields.values


def _fields(folder):
    return Fields(folder / MANIFEST, manifest.read_manifest(folder))


def _checked(fields):
    builder = fields.one_of("task", [*TASKS])
    for name in (*SOURCE, "example"):
        fields.text(name, default=None)
    if "pretrained" in fields:
        fields.flag("pretrained")
    get_task_class(builder).read_settings(fields)
    return fields.values
