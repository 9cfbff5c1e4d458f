"""Functions that read the files of Sentence Transformers (Reimers and Gurevych, 2019)."""

import pathlib

from keras_attention.pretrained.checkpoint import CheckpointError, read_content

MODULES, LENGTH = "modules.json", "sentence_bert_config.json"
POOLINGS = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}


def read_pooling(folder):
    """Return a dict with the `"pooling"` of a sentence encoder, and the bool `"unit_length"`.

    `"unit_length"` says whether the vectors are scaled to length 1. Without a file `modules.json`
    in `folder`, the dict is empty. Raise a CheckpointError if the files name a pooling that is not
    supported.
    """
    path = folder / MODULES
    if not path.is_file():
        return {}
    modules = read_content(path, list)
    kinds = [module.get("type") if isinstance(module, dict) else None for module in modules]
    names = [str(kind).rpartition(".")[2] for kind in kinds]
    if names[:2] != ["Transformer", "Pooling"] or names[2:] not in ([], ["Normalize"]):
        raise CheckpointError(
            f"{path} names {', '.join(names):.80}: expected Transformer, Pooling and perhaps "
            "Normalize. Give pooling=None to load only the encoder."
        )
    path = folder / _read_path(path, modules[1]) / "config.json"
    settings = read_content(path)
    poolings = [kind for name, kind in POOLINGS.items() if settings.get(name)]
    modes = [k for k, value in settings.items() if k.startswith("pooling_mode_") and value is True]
    if len(poolings) != 1 or len(modes) != 1:
        raise CheckpointError(
            f"{path} pools by {', '.join(modes):.120}: expected one of {', '.join(POOLINGS)}."
        )
    return {"pooling": poolings[0], "unit_length": len(names) == 3}


def read_length(folder):
    """Return the maximum number of tokens per input, or None if no file limits it.

    `folder` is the path of the checkpoint's folder.
    """
    path = folder / LENGTH
    length = read_content(path).get("max_seq_length") if path.is_file() else None
    return length if type(length) is int and length > 0 else None


def list_module_folders(folder):
    """Return a list of the folders that `modules.json` in `folder` names, such as `1_Pooling`.

    Without this file the list is empty.
    """
    path = folder / MODULES
    modules = read_content(path, list) if path.is_file() else []
    parts = [module for module in modules[1:] if isinstance(module, dict)]
    folders = [folder / _read_path(path, part) for part in parts]
    return [one for one in folders if one.is_dir()]  # often `Normalize` has no folder


def _read_path(path, module):
    """Return the name of the folder of a module, which must be a plain name without slashes."""
    name = module.get("path")
    if not isinstance(name, str) or pathlib.PurePath(name).name != name or name in ("", ".."):
        raise CheckpointError(f"{path} has the path {name!r:.80}: expected a plain name.")
    return name
