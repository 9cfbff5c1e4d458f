"""Pooling and length by files of Sentence Transformers (Reimers and Gurevych, 2019)."""

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
    """Keywords of `text_encoder` by `modules.json`: `pooling`, `unit_length`; {} without the file.

    Raises:
        CheckpointError: it is damaged, or names a part that `text_encoder` does not have.
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
            "Normalize. Give pooling=None to load the encoder alone."
        )
    place = _read_place(path, modules[1])
    said = read_content(folder / place / "config.json")
    chosen = [kind for name, kind in POOLINGS.items() if said.get(name)]
    others = [name for name, on in said.items() if name.startswith("pooling_mode_") and on is True]
    if len(chosen) != 1 or len(others) != 1:
        raise CheckpointError(
            f"{folder / place / 'config.json'} pools by {', '.join(others):.120}: expected one of "
            f"{', '.join(POOLINGS)}."
        )
    return {"pooling": chosen[0], "unit_length": len(names) == 3}


def read_length(folder):
    """Return the tokens of a text at most, or None where nothing is said."""
    path = folder / LENGTH
    said = read_content(path).get("max_seq_length") if path.is_file() else None
    return said if type(said) is int and said > 0 else None


def list_parts(folder):
    """The folders inside one of Sentence Transformers, such as `1_Pooling`; [] without its file."""
    path = folder / MODULES
    modules = read_content(path, list) if path.is_file() else []
    parts = [module for module in modules[1:] if isinstance(module, dict)]
    places = [folder / _read_place(path, part) for part in parts]
    return [place for place in places if place.is_dir()]  # a Normalize often has no file


def _read_place(path, module):
    """Return the name of a module's folder."""
    place = module.get("path")
    if not isinstance(place, str) or pathlib.PurePath(place).name != place or place in ("", ".."):
        raise CheckpointError(f"{path} has the path {place!r:.80}: expected a plain name.")
    return place
