"""`Preset`: a folder of KerasHub, whose weights are HDF5 and whose settings are those of a class.

KerasHub itself is not needed. A class is a name that is looked up in a table; nothing is imported
by what a file says.
"""

import pathlib
import re

from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CONFIG, Checkpoint, CheckpointError
from keras_attention.pretrained.hdf5 import read_datasets

WEIGHTS, SHARDS = "model.weights.h5", "model.weights.json"
TASK, TASK_WEIGHTS = "task.json", "task.weights.h5"
TASK_PREFIX = "task/"  # begins the names of a head's tensors
OLDER = "_layer_checkpoint_dependencies"  # what "layers" was called until Keras 3.3
# Settings of every class that are about the object, or how it computes.
IRRELEVANT = ("name", "trainable", "dtype", "head_dtype")


def is_preset(config):
    """Return whether the content of a `config.json` is of a class of KerasHub."""
    module = config.get("module")
    return isinstance(module, str) and module.split(".")[0] in ("keras_hub", "keras_nlp")


class Preset(Checkpoint):
    """The settings and tensors of a folder that `save_to_preset` wrote.

    Args:
        folder: path of a folder with `config.json` and `model.weights.h5`, or shards of it; with
            `task.json` and `task.weights.h5` where a head goes with it.

    Attributes:
        folder: pathlib.Path.
        config: dict, the settings of the backbone; `"model_type"` is its class, and `"task"` holds
            the settings of the head, its class under `"model_type"`.
        tensors: dict, name -> `StoredTensor`; the names are the paths in the files, without
            underscores in front, those of a head after `"task/"`.

    Raises:
        CheckpointError: a file is missing, damaged, or holds more than plain arrays.
    """

    def _read_config(self):
        kind, config = self._read_object(CONFIG)
        config = config | {"model_type": kind}
        if (self.folder / TASK).is_file():
            task, settings = self._read_object(TASK)
            settings = {k: v for k, v in settings.items() if k not in ("backbone", "preprocessor")}
            config["task"] = settings | {"model_type": task}
        return config

    def _read_object(self, name):
        """(class, settings) of a file that holds a serialized object."""
        found = self._read_dict(name)
        kind, config = found.get("class_name"), found.get("config")
        if not isinstance(kind, str) or not isinstance(config, dict):
            raise CheckpointError(
                f"{self.folder / name} is damaged: expected a class_name and its config."
            )
        return kind, config

    def _find_files(self):
        task = [self.folder / TASK_WEIGHTS] if (self.folder / TASK_WEIGHTS).is_file() else []
        if (self.folder / WEIGHTS).is_file():
            return [self.folder / WEIGHTS, *task]
        if not (self.folder / SHARDS).is_file():
            raise CheckpointError(f"{self.folder} holds no {WEIGHTS}, and no {SHARDS} of shards.")
        places = self._read_dict(SHARDS).get("weight_map")
        if not isinstance(places, dict):
            raise CheckpointError(f"{self.folder / SHARDS} is damaged: it has no weight_map.")
        names = [n for x in places.values() for n in (x if isinstance(x, list) else [x])]
        if not all(isinstance(name, str) for name in names):
            raise CheckpointError(f"{self.folder / SHARDS} is damaged: its weight_map is none.")
        return [*self._check_shards(SHARDS, set(names), ".weights.h5"), *task]

    def _read_header(self, path):
        prefix = TASK_PREFIX if path.name == TASK_WEIGHTS else ""
        found = {}
        for name, tensor in read_datasets(path).items():
            plain = re.sub(rf"^{OLDER}(?=/)", "layers", name)
            plain = "/".join(part.lstrip("_") for part in plain.split("/"))
            if plain in found:
                raise CheckpointError(f"{path} is damaged: it has two arrays called {plain:.80}.")
            found[plain] = tensor
        return {f"{prefix}{name}": tensor for name, tensor in found.items()}


def read_checkpoint(folder):
    """Return the `Checkpoint` of a folder, or its `Preset` where KerasHub wrote it.

    Raises:
        CheckpointError: a file is missing, damaged, or of a kind that could run code.
    """
    path = pathlib.Path(folder) / CONFIG
    try:
        config = read_json(path) if path.is_file() else {}
    except ValueError:
        config = {}  # `Checkpoint` says what is wrong
    return Preset(folder) if isinstance(config, dict) and is_preset(config) else Checkpoint(folder)
