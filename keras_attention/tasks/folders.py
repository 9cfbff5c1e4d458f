"""The folder of a preset: its files and manifest, and how a run writes to it."""

import contextlib
import errno
import json
import pathlib
import shutil
import types
import typing

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
OF_ANY_LENGTH = ("token_ids", "source_ids", "waveform", "features")  # inputs with a length axis
# The options of `keras-attention export` that export the Keras model to each file.
EXPORTED_BY = {
    "saved_model": {"format": "saved_model"},
    "litert": {},
    "litert-int8": {"quantization": "int8_weights"},
}
SCORES, CARD, MANIFEST = "scores.json", "README.md", "manifest.json"
STATE = ".training"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class MissingFileError(ValueError):
    """Raised if a preset (the folder of a trained task) has no file of the requested format.

    Attributes:
        folder: pathlib.Path of the preset.
        export: dict, the options of `keras-attention export` that create the file. None if the file
            cannot be created, because the preset has no `model.keras`.
    """

    def __init__(self, message, folder, export):
        super().__init__(message)
        self.folder, self.export = folder, export


class RunFolder:
    """The output folder of a training run.

    Files are first written to the subfolder `.training/`, and moved to the folder when all of them
    are complete. So the folder never contains an incomplete model. An unfinished run can only be
    resumed with the same settings.
    """

    def __init__(self, path, settings, *, replace=False):
        """Check that the folder is new or empty, or contains an unfinished run to resume.

        Nothing is written yet.

        Args:
            path: path of the folder.
            settings: dict of the settings of the run. An unfinished run is resumed only if its
                settings are equal.
            replace: bool, whether the folder may contain a finished model, which is replaced.
        """
        self.path = pathlib.Path(path)
        self.state = self.path / STATE
        self.backup = self.state / "backup"  # the state after the last epoch
        self.best = self.state / "best.weights.h5"  # the weights of the best epoch
        self.history = self.state / "history.json"  # the metrics of every epoch
        self.settings = json.loads(json.dumps(settings, default=_describe_part))
        self.resumed = False
        for folder in (self.path, *self.path.parents):
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{path}: {folder} is a file: name a folder.")
        if (self.state / "settings.json").is_file():
            self._check_settings()
            self.resumed = True
        elif self.path.is_dir() and any(self.path.iterdir()):
            self._check_content(replace)

    def _check_settings(self):
        started = flatten(Fields.read(self.state / "settings.json").values)
        current = flatten(self.settings)
        for key in sorted(set(started) | set(current)):
            if started.get(key) != current.get(key):
                raise ValueError(
                    f"{self.path} has an unfinished run with other settings ({key}: "
                    f"{started.get(key)} there, {current.get(key)} here). Run that command again, "
                    "name another folder, or delete this one."
                )

    def _check_content(self, replace):
        finished = (self.path / SCORES).is_file() and (self.path / MANIFEST).is_file()
        if finished and replace:
            return
        content = "a finished model" if finished else "other files"
        raise ValueError(
            f"{self.path} already contains {content}: name another folder, or empty this one."
        )

    def start(self):
        """Create the folder, and write the settings of the run to `.training/settings.json`."""
        self.state.mkdir(parents=True, exist_ok=True)
        write_json(self.state / "settings.json", self.settings)

    @contextlib.contextmanager
    def explain_full_disk(self):
        """Context manager: if the disk is full, raise an OSError that explains how to resume."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise OSError(
                f"{self.path}: {error.strerror}. The training so far is saved there. Free some "
                "space, and start the same training again to resume it."
            ) from error

    @contextlib.contextmanager
    def collect_results(self):
        """Context manager that yields the path of an empty folder for the files of the result.

        At the end, these files replace the content of the output folder.
        """
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
        """Context manager that calls `start`, and yields the folder of `collect_results`.

        If an exception is raised inside, everything that was written is deleted.
        """
        self.start()
        try:
            with self.collect_results() as result:
                yield result
        except BaseException:
            self.discard()
            raise

    def discard(self):
        """Delete the state of the run, and then also the output folder if it is empty."""
        shutil.rmtree(self.state, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def find_model_file(path, kind=None):
    """Choose the model file of a preset to run, and return (folder, file), two pathlib.Path.

    Args:
        path: path of the folder of the preset, or of a model in this folder.
        kind: str, the format of the file, a name in `FORMATS`. None selects the model at `path`, or
            the first file in the order of `FORMATS` if `path` is a folder. If Keras is not
            installed, LiteRT files come first.

    Raises:
        ValueError: the folder or the file does not exist, or it is not a model.
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
        find_format(path)  # raises a ValueError if the file is not a model
        return folder, path
    names = [name for name in FORMATS.values() if (folder / name).exists()]
    if not has_keras():
        names.sort(key=lambda name: name not in (LITERT, LITERT_INT8))
    if names:
        return folder, folder / names[0]
    raise ValueError(f"{folder} has no model: expected one of {', '.join(FORMATS.values())}.")


def answers_alike(folder):
    """Return whether the float32 LiteRT file of a preset can replace its Keras model.

    `folder` is the path of the preset. Three conditions must hold: the outputs of file and model
    were compared after the export, the file accepts any batch size and sequence length, and the
    task does not sample at random.
    """
    if not (folder / LITERT).is_file():
        return False
    manifest = read_task_manifest(folder)
    entry = manifest.get("files", {}).get(LITERT, {})
    if get_task_class(manifest["task"]).draws:
        return False
    return bool(entry.get("parity")) and not entry.get("quantization") and _takes_all(entry)


def _takes_all(entry):
    """Return whether a model file accepts any batch size and sequence length.

    `entry` is a dict, the entry for this file in `manifest.json`.
    """
    try:
        inputs = [
            (tensor["shape"], tensor["name"] in OF_ANY_LENGTH)
            for signature in entry["signatures"]
            for tensor in signature["inputs"]
            if signature["name"] != "step"
        ]
        return all(shape[0] is None and (not long or shape[1] is None) for shape, long in inputs)
    except (KeyError, IndexError, TypeError):  # a damaged manifest, or one from an old version
        return False


def _report_missing(folder, kind):
    """Return a `MissingFileError` for a missing format `kind`, with the formats that exist."""
    text = f"{folder} has no {FORMATS[kind]}"
    existing = [f"file={k!r} ({name})" for k, name in FORMATS.items() if (folder / name).exists()]
    if not existing:
        return MissingFileError(f"{text}.", folder, None)
    if (folder / MODEL).exists():
        fix, export = f"Export {MODEL} to make it.", EXPORTED_BY[kind]
    else:
        fix, export = "Its README.md names the command that makes all files.", None
    return MissingFileError(f"{text}. It has {', '.join(existing)}. {fix}", folder, export)


@typing.runtime_checkable
class Configurable(typing.Protocol):
    """A layer, an initializer, or another object with a Keras config."""

    def get_config(self):
        """Return the config as a dict."""


def _describe_part(part):
    """Convert an argument of a model, such as a layer or a function, to a dict or str for JSON.

    Layer names and dtypes are left out, because Keras may name layers differently in a resumed run.
    """
    if isinstance(part, Configurable):
        return {"class_name": type(part).__name__, "config": _drop_names(part.get_config())}
    is_named = isinstance(part, types.FunctionType | types.BuiltinFunctionType | type)
    return part.__name__ if is_named else type(part).__name__


def _drop_names(config):
    """Return a Keras config without names and dtypes, also in the configs of nested layers."""
    if isinstance(config, list | tuple):
        return [_drop_names(value) for value in config]
    if not isinstance(config, dict):
        return config
    left_out = ("name", "dtype", "trainable", "build_config", "shared_object_id")
    return {key: _drop_names(value) for key, value in config.items() if key not in left_out}


def flatten(settings, prefix=""):
    """Flatten `settings`, a nested dict: `{"recipe": {"seed": 0}}` becomes `{"recipe.seed": 0}`.

    `prefix` is put in front of all keys.
    """
    flat = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


SOURCE = ("dataset", "label_column", "text_column", "languages", "encoding")


def refuse_links(folder):
    """Raise a ValueError if a file in a preset's folder is a symbolic link to a path outside it."""
    root = folder.resolve()
    for path in (*folder.iterdir(), *(folder / SAVED_MODEL).rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise ValueError(
                f"{path} is a link to {path.resolve()}: expected a file in the folder of the "
                "preset, because no file outside of it is read. Copy the file there."
            )


def read_task_manifest(folder):
    """Read and check `manifest.json` of a trained task, and return its content as a dict.

    Raises:
        ValueError: `folder` is not a preset, or an entry has a wrong type or value.
    """
    fields = _read_fields(folder)
    if "task" not in fields:
        raise ValueError(
            f"{folder} has no {MANIFEST} that names a task: it was not made by "
            "`keras-attention train` or a task's `save_to_preset`."
        )
    refuse_links(folder)
    return _checked(fields)


def read_any_manifest(folder):
    """Read `manifest.json` of a folder with any exported model, and return its content as a dict.

    The entries are checked only if the file names a task.
    """
    fields = _read_fields(folder)
    return _checked(fields) if "task" in fields else fields.values


def _read_fields(folder):
    return Fields(folder / MANIFEST, manifest.read_manifest(folder))


def _checked(fields):
    builder = fields.one_of("task", [*TASKS])
    for name in (*SOURCE, "example"):
        fields.text(name, default=None)
    if "pretrained" in fields:
        fields.flag("pretrained")
    get_task_class(builder).read_settings(fields)
    return fields.values
