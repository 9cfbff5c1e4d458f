"""`save`: a model that began as a checkpoint, back under the names of its files."""

import json
import re
import shutil

import keras
import numpy as np
from keras import ops

from keras_attention import models
from keras_attention.core import keras_internals
from keras_attention.core.checks import check_height_and_width
from keras_attention.files.io import make_workplace, move_into_place, write_json
from keras_attention.pretrained import loading
from keras_attention.pretrained.aligned import copy_aligned
from keras_attention.pretrained.architecture import find_architecture, read_builder
from keras_attention.pretrained.checkpoint import CONFIG, DTYPES, INDEX, WEIGHTS
from keras_attention.pretrained.keras_hub import Preset, read_checkpoint
from keras_attention.pretrained.resized_positions import POSITIONS
from keras_attention.pretrained.sentence_transformers import list_parts
from keras_attention.pretrained.settings import SIZED, read_settings
from keras_attention.pretrained.weights import Fold, arrange, name_weights

CODES = {name: code for code, name in DTYPES.items()}
COPIED = ("*.json", "*.txt", "*.model", "*.spm")  # of tokenizers and pictures
OURS = ("manifest.json", INDEX, CONFIG)
# Those whose config.json says, in one place, a size that positions of patches may be changed to.
RESIZED = ("vit", "deit", "dinov2")


def save(model, folder, *, checkpoint=None, labels=None):
    """Writes a model as Hugging Face's files: `transformers` loads what was fine-tuned here.

    Weights that were not changed are written as they were, to the bit; the others in the type that
    the checkpoint has. Files of the tokenizer are copied, and the folders of Sentence Transformers.

    Args:
        model: functional `keras.Model` that `load` gave, or that was made of such a one, by
            `replace_head` or a task's `fit`; or the task, whose labels are written along.
        folder: path, new or empty.
        checkpoint: folder or id of the checkpoint that it began as; None where `load` gave this
            very model, or where the task was opened from the checkpoint in this session.
        labels: list of str, the names of the classes or labels; None for those of a task or of the
            file, and for `LABEL_0`, ... of a new head.

    Raises:
        ValueError: it is not known what the model began as, it is adapted by LoRA, or Hugging Face
            has no such model.

    Example:

        model = ka.pretrained.load("bert-base-uncased", task="text_classifier", num_classes=2)
        model.fit(...)
        ka.pretrained.save(model, "my-bert", labels=["bad", "good"])
    """
    task, model = (None, model) if isinstance(model, keras.Model) else (model, model.model)
    if checkpoint is None:
        checkpoint = getattr(task, "checkpoint", None) or loading.ORIGINS.get(model)
    if checkpoint is None:
        raise ValueError(
            f"{model.name} is no model that load() gave: say checkpoint=, the folder or id of the "
            "checkpoint that it began as."
        )
    source = read_checkpoint(loading.find_folder(checkpoint))
    if isinstance(source, Preset):
        raise ValueError(
            f"{source.folder} is a preset of KerasHub, which is read and not written: keep the "
            "model by model.save(path)."
        )
    if task is not None and labels is None and model.name in SIZED:
        labels = task.preprocessor.labels.names
    tensors, config = collect(model, source, labels)
    if task is not None and model.name == "text_classifier":
        several = "multi_label_classification"  # labels that are decisions of their own
        if task.builder == "multi_label_classifier":
            config["problem_type"] = several
        elif config.get("problem_type") == several:
            config["problem_type"] = "single_label_classification"
    with make_workplace(folder) as new:
        new.mkdir()
        for pattern in COPIED:
            for path in source.folder.glob(pattern):
                if path.name not in OURS:
                    shutil.copyfile(path, new / path.name)
        for part in list_parts(source.folder):
            (new / part.name).mkdir()
            for path in part.iterdir():
                if path.is_file():
                    shutil.copyfile(path, new / part.name / path.name)
        write_tensors(new / WEIGHTS, tensors)
        write_json(new / CONFIG, config)
        asked = {"pooling": None} if model.name == "text_encoder" else {}
        several = isinstance(read_builder(source), tuple)
        task_name = model.name if several else None
        loading.describe(new, task=task_name, **asked)  # a ValueError if damaged
        move_into_place(new, folder)


def collect(model, source, labels=None):
    """({name: array}, the content of config.json) of a model that began as `source`."""
    builder = model.name
    if any(map(keras_internals.has_low_rank, keras_internals.all_layers(model))):
        raise ValueError(
            f"{builder} is adapted by LoRA, whose matrices Hugging Face's files of a model do not "
            "have: call ka.training.merge_lora(model) first, which adds them to the kernels."
        )
    if builder not in models.__all__:
        raise ValueError(f"{builder} is no model of a builder in ka.models: its name is another.")
    path = source.folder / CONFIG
    module = find_architecture(source.model_type, path)
    fresh = _is_other(model, source)
    if fresh and source.model_type in module.ALONE:
        raise ValueError(
            f"{path} is of one tower alone, which Hugging Face gives no head: fine-tune the file "
            "of both towers."
        )
    sized = builder in SIZED and fresh
    count = {"num_classes": model.output_shape[-1]} if sized else {}
    asked = {"pooling": "first"} if builder == "text_classifier" and fresh else {}
    asked = {"pooling": None} if builder == "text_encoder" else asked  # it has no weights
    settings = read_settings(source, builder, **count, **asked)
    config, keywords = settings.config, settings.keywords
    pooling = _find_pooling(model, module) if builder == "text_classifier" else {}
    if fresh and module.HEADS is None:
        raise ValueError(
            f"{source.folder} is of {source.model_type}, whose files are written with the head "
            "that they have, and this model has another: keep it by model.save(path)."
        )
    size = _find_new_size(model, keywords, source)
    table = module.table(config, builder, keywords, source.tensors)
    names = _rename(source, module, fresh, table)
    table = module.table(config, builder, keywords, names)
    tensors, used = {}, set()
    for name, variable in name_weights(model).items():
        fold = table[name] if isinstance(table[name], Fold) else Fold((table[name],), lambda x: x)
        used |= set(fold.names)
        known = [tensors.get(n, names[n].read()) for n in fold.names if names.get(n) is not None]
        if sized and not known and len(fold.names) > 1:  # a new head in the place of two
            shapes = [source.tensors[n].shape[1:] for n in fold.names]
            known = [np.zeros((model.output_shape[-1], *shape), "float32") for shape in shapes]
        value = ops.convert_to_numpy(variable).astype("float32")
        if size and name == POSITIONS:  # as many as the file has not
            tensors[table[name]] = value[None].astype(known[0].dtype)
            continue
        tensors |= dict(zip(fold.names, restore(value, name, fold, known), strict=True))
    content = dict(source.config) | pooling
    for name, stored in names.items():
        if stored is not None and name not in used and not _is_copy(stored, names, used):
            tensors[name] = stored.read()
    if size:
        content["image_size"] = size[0] if size[0] == size[1] else list(size)
    if fresh:
        content |= _write_class(module, source, builder)
    if builder in SIZED and (fresh or labels is not None):
        content |= _write_labels(model, labels)
    return tensors, content


def _find_new_size(model, keywords, source):
    """(height, width) of a model's images where the file's are of another size; else None."""
    if "image_size" not in keywords:
        return None
    size, of_file = tuple(model.input_shape[1:3]), keywords["image_size"]
    if size == check_height_and_width(source.folder, "image_size", of_file):
        return None
    if source.model_type not in RESIZED:
        raise ValueError(
            f"{model.name} takes images of {size} pixels, and {source.folder} is of a "
            f"{source.model_type} for {of_file}, whose files are written in their own size: keep "
            "the model by model.save(path)."
        )
    return size


def _find_pooling(model, module):
    """Return the entries of config.json that say how a classifier of texts pools."""
    known = module.POOLINGS
    mode = getattr(model.get_layer("pooling"), "mode", "map")
    mode = "first" if mode == "cls" else mode
    if mode not in known:
        choices = " or ".join(f"pooling={name!r}" for name in known)
        raise ValueError(
            f"Hugging Face's classifiers of texts of this kind take {choices}, and this one pools "
            f"by {mode!r}: load the checkpoint with it to fine-tune it, by ka.pretrained.load or "
            "by from_preset of the task."
        )
    return known[mode]


def _is_other(model, source):
    """Return whether the head of a model is another than that of its checkpoint."""
    of_file = read_builder(source)
    if isinstance(of_file, tuple):
        return model.name not in of_file
    if of_file != model.name or of_file not in SIZED:
        return of_file != model.name
    found = loading.describe(source.folder)
    return found.keywords[SIZED[of_file]] != model.output_shape[-1]


def _rename(source, module, fresh, table):
    """{name: `StoredTensor`} of a checkpoint; under a new head all names begin with its base."""
    base = module.BASE
    if not fresh:
        return dict(source.tensors)
    near = {table.get(f"{n}/{w}") for n in ("pooler", "transform") for w in ("kernel", "bias")}
    near |= {table.get(f"transform_norm/{weight}") for weight in ("gamma", "beta")}
    kept = {
        name: tensor
        for name, tensor in source.tensors.items()
        if not re.fullmatch(module.OTHER_HEADS, name) or ".pooler." in f".{name}" or name in near
    }
    if not base or any(name.startswith(base) for name in kept):
        return kept
    return {f"{base}{name}": tensor for name, tensor in kept.items()}


def _is_copy(stored, names, used):
    """Whether a tensor without a use is a copy of one that has one, such as of tied logits."""
    others = (names[other] for other in used if names.get(other) is not None)
    return any(
        other.shape == stored.shape
        and other.dtype == stored.dtype
        and other.read().tobytes() == stored.read().tobytes()
        for other in others
        if stored.shape and len(stored.shape) > 1
    )


def restore(value, name, fold, known):
    """The tensors of a file that make a weight; those that made it before, where it is the same.

    Args:
        value: float32 array, of the weight. name: str, of the weight.
        fold: `Fold`. known: list of the arrays of its tensors; empty where the file has none.
    """
    if not known:
        return [value.T if name.endswith("/kernel") else value]
    before = copy_aligned(arrange(value.shape, name, fold, known))
    if np.array_equal(before.reshape(value.shape), value):
        return known
    if fold.turn:  # what `turn` would be given
        first = known[0]
        value = turn_back(value, name, fold.function(*known).shape, first.ndim)
    new = fold.invert(value, *known)
    return [np.asarray(x).astype(k.dtype).reshape(k.shape) for x, k in zip(new, known, strict=True)]


def turn_back(value, name, shape, axes):
    """Return an array of our layout as one of the shape that it has in the file."""
    if not name.endswith("/kernel"):
        return value.reshape(shape)
    if axes == 4:
        return value.transpose(3, 2, 0, 1)
    if axes == 3:
        return value.T
    return value.reshape(shape[::-1]).T if len(shape) == 2 else value.reshape(shape)


def _write_class(module, source, builder):
    """Return the entry of config.json that names the class of a new head."""
    before = (source.config.get("architectures") or ["Model"])[0]
    family = re.sub(r"(For\w+|LMHeadModel|Model)$", "", before)
    endings = [end for end, kind in module.HEADS.items() if kind == builder]
    kept = [end for end in endings if before == f"{family}{end}"]  # of the same kind as before
    return {"architectures": [f"{family}{(kept or endings)[0]}"]}


def _write_labels(model, labels):
    """Return the entries of config.json that name labels."""
    count = model.output_shape[-1]
    labels = [f"LABEL_{i}" for i in range(count)] if labels is None else list(labels)
    if len(set(labels)) != count or len(labels) != count:
        raise ValueError(f"labels has {len(labels)} names: expected {count} different ones.")
    return {
        "num_labels": count,
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def write_tensors(path, tensors):
    """Writes {name: array} as a safetensors file."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        code = CODES[array.dtype.name]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
