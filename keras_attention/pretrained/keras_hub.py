"""`Preset`: a model folder that KerasHub saved, with HDF5 weights and the config of a class.

KerasHub need not be installed. The name of the class is only compared with known names, so a file
cannot make Python import anything.
"""

import pathlib
import re

from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CONFIG, Checkpoint, CheckpointError
from keras_attention.pretrained.hdf5 import read_datasets

WEIGHTS, SHARDS = "model.weights.h5", "model.weights.json"
TASK, TASK_WEIGHTS = "task.json", "task.weights.h5"
TASK_PREFIX = "task/"  # prefix of the names of a head's tensors
OLDER = "_layer_checkpoint_dependencies"  # what "layers" was called until Keras 3.3
IRRELEVANT = ("name", "trainable", "dtype", "head_dtype")  # settings of every Keras object


class Preset(Checkpoint):
    """The settings and tensors of a folder written by KerasHub's `save_to_preset`.

    The folder has `config.json` and `model.weights.h5` or its shards. If the model has a head, it
    also has `task.json` and `task.weights.h5`.

    Attributes:
        config: dict, the settings of the backbone, with its class name under `"model_type"`. The
            settings of the head, if any, are under `"task"`.
        tensors: dict from the name of a tensor to a `StoredTensor`. Names are paths in the file
            without leading underscores. Names of the head's tensors start with `"task/"`.
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
        """Return the class name and the config of the serialized Keras object in a JSON file."""
        content = self._read_dict(name)
        kind, config = content.get("class_name"), content.get("config")
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
        weight_map = self._read_dict(SHARDS).get("weight_map")
        if not isinstance(weight_map, dict):
            raise CheckpointError(f"{self.folder / SHARDS} is damaged: it has no weight_map.")
        names = [n for x in weight_map.values() for n in (x if isinstance(x, list) else [x])]
        if not all(isinstance(name, str) for name in names):
            raise CheckpointError(f"{self.folder / SHARDS} is damaged: its weight_map is invalid.")
        return [*self._check_shards(SHARDS, set(names), ".weights.h5"), *task]

    def _read_tensors(self, path):
        prefix = TASK_PREFIX if path.name == TASK_WEIGHTS else ""
        tensors = {}
        for stored_name, tensor in read_datasets(path).items():
            name = re.sub(rf"^{OLDER}(?=/)", "layers", stored_name)
            name = prefix + "/".join(part.lstrip("_") for part in name.split("/"))
            if name in tensors:
                raise CheckpointError(f"{path} is damaged: it has two arrays called {name:.80}.")
            tensors[name] = tensor
        return tensors


def read_checkpoint(folder):
    """Return a `Preset` for a folder that KerasHub wrote, a `Checkpoint` for any other folder."""
    path = pathlib.Path(folder) / CONFIG
    try:
        config = read_json(path) if path.is_file() else {}
    except ValueError:
        config = {}  # `Checkpoint` then raises the error
    module = config.get("module") if isinstance(config, dict) else None
    is_preset = isinstance(module, str) and module.split(".")[0] in ("keras_hub", "keras_nlp")
    return Preset(folder) if is_preset else Checkpoint(folder)
