"""`save`: writes a model that was loaded from a checkpoint in Hugging Face's format."""

import json
import re
import shutil

import keras
import numpy as np
from keras import ops

from keras_attention import models
from keras_attention.blocks import Pooling
from keras_attention.core import keras_internals
from keras_attention.core.checks import check_height_and_width
from keras_attention.files.io import make_workplace, move_into_place, write_json
from keras_attention.pretrained import loading
from keras_attention.pretrained.aligned import copy_aligned
from keras_attention.pretrained.architecture import find_architecture, read_builder
from keras_attention.pretrained.checkpoint import CONFIG, DTYPES, INDEX, WEIGHTS
from keras_attention.pretrained.keras_hub import Preset, read_checkpoint
from keras_attention.pretrained.resized_positions import POSITIONS
from keras_attention.pretrained.sentence_transformers import list_module_folders
from keras_attention.pretrained.settings import SIZED, read_settings
from keras_attention.pretrained.table_entries import get_conversion
from keras_attention.pretrained.weights import compute_weight, name_weights

CODES = {name: code for code, name in DTYPES.items()}
COPIED = ("*.json", "*.txt", "*.model", "*.spm")  # files of tokenizers and preprocessors
REPLACED = ("manifest.json", INDEX, CONFIG)
# Model types whose image size in config.json may be changed.
RESIZED = ("vit", "deit", "dinov2")


def save(model, folder, *, checkpoint=None, labels=None):
    """Save a model in Hugging Face's format, so that `transformers` can load it.

    Weights that did not change are written bit for bit. Changed weights are cast to the dtype of
    the checkpoint. The files of the tokenizer and of Sentence Transformers are copied.

    Args:
        model: functional `keras.Model` from `load`, or made from one by `replace_head` or by the
            `fit` of a task. A task is also accepted, and its labels are saved.
        folder: path of a new or empty folder.
        checkpoint: folder or id of the checkpoint that the model was loaded from. None uses the
            checkpoint that `load` or a task loaded in this Python session.
        labels: list of str, the names of the classes. None keeps the names in the task or in the
            checkpoint, or names the classes of a new head `LABEL_0`, `LABEL_1`, ...

    Raises:
        ValueError: the original checkpoint is unknown, LoRA is still enabled, or Hugging Face does
            not have such a model.

    Example:

        model = ka.pretrained.load("bert-base-uncased", task="text_classifier", num_classes=2)
        model.fit(...)
        ka.pretrained.save(model, "my-bert", labels=["bad", "good"])
    """
    task, model = (None, model) if isinstance(model, keras.Model) else (model, model.model)
    if checkpoint is None and task is not None:
        checkpoint = task.checkpoint
    if checkpoint is None:
        checkpoint = loading.ORIGINS.get(model)
    if checkpoint is None:
        raise ValueError(
            f"{model.name} was not loaded by load() in this session. Give checkpoint=, the folder "
            "or id of the original checkpoint."
        )
    source = read_checkpoint(loading.find_folder(checkpoint))
    if isinstance(source, Preset):
        raise ValueError(
            f"{source.folder} is a preset of KerasHub, which can be loaded but not saved. Save the "
            "model with model.save(path)."
        )
    if task is not None and labels is None and model.name in SIZED:
        labels = task.preprocessor.labels.names
    tensors, config = collect(model, source, labels)
    if task is not None and model.name == "text_classifier":
        multi_label = "multi_label_classification"
        if task.builder == "multi_label_classifier":
            config["problem_type"] = multi_label
        elif config.get("problem_type") == multi_label:
            config["problem_type"] = "single_label_classification"
    with make_workplace(folder) as new:
        new.mkdir()
        for pattern in COPIED:
            for path in source.folder.glob(pattern):
                if path.name not in REPLACED:
                    shutil.copyfile(path, new / path.name)
        for part in list_module_folders(source.folder):
            (new / part.name).mkdir()
            for path in part.iterdir():
                if path.is_file():
                    shutil.copyfile(path, new / part.name / path.name)
        write_tensors(new / WEIGHTS, tensors)
        write_json(new / CONFIG, config)
        pooling = {"pooling": None} if model.name == "text_encoder" else {}
        several = isinstance(read_builder(source), tuple)
        # Raise a ValueError if the new files cannot be loaded.
        loading.describe(new, task=model.name if several else None, **pooling)
        move_into_place(new, folder)


def collect(model, source, labels=None):
    """Return the tensors and the settings that `save` writes for a model.

    `model` is the `keras.Model`, and `source` the `Checkpoint` that it was loaded from. `labels`
    are the names of the classes, or None to keep them.

    Returns:
        Two dicts: {name of a tensor: array}, and the content of config.json.
    """
    builder = model.name
    if any(map(keras_internals.has_low_rank, keras_internals.all_layers(model))):
        raise ValueError(
            f"{builder} has LoRA weights, which Hugging Face's model files do not hold. First call "
            "ka.training.merge_lora(model), which adds them to the kernels."
        )
    if builder not in models.__all__:
        raise ValueError(
            f"The model's name is {builder!r}: expected the name of a function in ka.models."
        )
    path = source.folder / CONFIG
    architecture = find_architecture(source.model_type, path)
    fresh = _has_other_head(model, source)
    if fresh and source.model_type in architecture.SINGLE_TOWERS:
        raise ValueError(
            f"{path} describes only one tower, for which Hugging Face has no head. Fine-tune the "
            "checkpoint with both towers."
        )
    sized = builder in SIZED and fresh
    count = {"num_classes": model.output_shape[-1]} if sized else {}
    pooling = {"pooling": "first"} if builder == "text_classifier" and fresh else {}
    pooling = {"pooling": None} if builder == "text_encoder" else pooling  # it has no weights
    settings = read_settings(source, builder, **count, **pooling)
    config, keywords = settings.config, settings.keywords
    content = dict(source.config)
    if builder == "text_classifier":
        content |= _find_pooling(model, architecture)
    if fresh and architecture.HEADS is None:
        raise ValueError(
            f"{source.folder} is a {source.model_type} checkpoint, which can only be saved with "
            "its original head. Save the model with model.save(path)."
        )
    size = _find_new_size(model, keywords, source)
    table = architecture.table(config, builder, keywords, source.tensors)
    stored = _select_tensors(source, architecture, fresh, table)
    table = architecture.table(config, builder, keywords, stored)
    tensors, used = {}, set()
    for name, variable in name_weights(model).items():
        conversion = get_conversion(table[name])
        used |= set(conversion.names)
        before = [tensors.get(n, stored[n].read()) for n in conversion.names if n in stored]
        if sized and not before and len(conversion.names) > 1:  # one new head for two in the file
            shapes = [source.tensors[n].shape[1:] for n in conversion.names]
            before = [np.zeros((model.output_shape[-1], *shape), "float32") for shape in shapes]
        value = ops.convert_to_numpy(variable).astype("float32")
        if size and name == POSITIONS:  # the number of positions changed
            tensors[table[name]] = value[None].astype(before[0].dtype)
            continue
        arrays = _restore(value, name, conversion, before)
        tensors |= dict(zip(conversion.names, arrays, strict=True))
    for name, tensor in stored.items():
        if name not in used and not _is_copy(tensor, stored, used):
            tensors[name] = tensor.read()
    if size:
        content["image_size"] = size[0] if size[0] == size[1] else list(size)
    if fresh:
        content |= _write_class(architecture, source, builder)
    if builder in SIZED and (fresh or labels is not None):
        content |= _write_labels(model, labels)
    return tensors, content


def _find_new_size(model, keywords, source):
    """Return the image size (height, width) of a model, or None if the checkpoint has the same.

    `keywords` are the settings of the checkpoint's model, and `source` is the `Checkpoint`.
    """
    if "image_size" not in keywords:
        return None
    size, of_file = tuple(model.input_shape[1:3]), keywords["image_size"]
    if size == check_height_and_width(source.folder, "image_size", of_file):
        return None
    if source.model_type not in RESIZED:
        raise ValueError(
            f"{model.name} takes images of {size} pixels, but {source.folder} is a "
            f"{source.model_type} for {of_file}, which can only be saved in its own size. Save "
            "the model with model.save(path)."
        )
    return size


def _find_pooling(model, architecture):
    """Return a dict with the entries of config.json for the pooling of a text classifier."""
    layer = model.get_layer("pooling")
    mode = layer.mode if isinstance(layer, Pooling) else "map"
    mode = "first" if mode == "cls" else mode
    if mode not in architecture.POOLINGS:
        choices = " or ".join(f"pooling={name!r}" for name in architecture.POOLINGS)
        raise ValueError(
            f"Hugging Face's text classifiers of this kind take {choices}, but this model has "
            f"pooling={mode!r}. Fine-tune the checkpoint again with a supported pooling, by "
            "ka.pretrained.load or the task's from_preset."
        )
    return architecture.POOLINGS[mode]


def _has_other_head(model, source):
    """Return whether the head of a model, or its number of classes, differs from the checkpoint."""
    of_file = read_builder(source)
    if isinstance(of_file, tuple):
        return model.name not in of_file
    if of_file != model.name or of_file not in SIZED:
        return of_file != model.name
    keywords = loading.describe(source.folder).keywords
    return keywords[SIZED[of_file]] != model.output_shape[-1]


def _select_tensors(source, architecture, fresh, table):
    """Return the tensors of the checkpoint that are saved again, {name: `StoredTensor`}.

    `source` is the `Checkpoint`, and `table` a dict from the names of weights to the names of
    tensors. If the model has a new head (`fresh`), the tensors of the old head are dropped, and the
    names get the prefix `architecture.BASE`, as in every file with a head.
    """
    base = architecture.BASE
    if not fresh:
        return dict(source.tensors)
    near = {table.get(f"{n}/{w}") for n in ("pooler", "transform") for w in ("kernel", "bias")}
    near |= {table.get(f"transform_norm/{weight}") for weight in ("gamma", "beta")}
    tensors = {
        name: tensor
        for name, tensor in source.tensors.items()
        if not re.fullmatch(architecture.OTHER_HEADS, name)
        or ".pooler." in f".{name}"
        or name in near
    }
    if not base or any(name.startswith(base) for name in tensors):
        return tensors
    return {f"{base}{name}": tensor for name, tensor in tensors.items()}


def _is_copy(tensor, stored, used):
    """Return whether an unused tensor is a copy of a tensor that the model uses.

    Some files store tied logits as a copy of the embeddings. `stored` are all tensors, and `used`
    the names of the used tensors.
    """
    return len(tensor.shape) > 1 and any(
        other.shape == tensor.shape
        and other.dtype == tensor.dtype
        and other.read().tobytes() == tensor.read().tobytes()
        for name, other in stored.items()
        if name in used
    )


def _restore(value, name, conversion, before):
    """Return the tensors of the file for a weight of the model, the opposite of loading it.

    Args:
        value: float32 array, the weight.
        name: str, the name of the weight.
        conversion: `Conversion` that loads the weight.
        before: list of the original arrays, which are returned if the weight did not change. It is
            empty for a weight that the checkpoint does not have.

    Returns:
        A list of arrays, in the order of `conversion.names`.
    """
    if not before:
        return [value.T if name.endswith("/kernel") else value]
    original = copy_aligned(compute_weight(value.shape, name, conversion, before))
    if np.array_equal(original.reshape(value.shape), value):
        return before
    if conversion.transpose:
        shape = conversion.convert(*before).shape
        value = _transpose_back(value, name, shape, before[0].ndim)
    new = conversion.invert(value, *before)
    pairs = zip(new, before, strict=True)
    return [np.asarray(x).astype(old.dtype).reshape(old.shape) for x, old in pairs]


def _transpose_back(value, name, shape, axes):
    """Return a weight in the layout of the file, the opposite of `weights.transpose`.

    `shape` is the shape in this layout, and `axes` the rank of the tensor in the file.
    """
    if not name.endswith("/kernel"):
        return value.reshape(shape)
    if axes == 4:
        return value.transpose(3, 2, 0, 1)
    if axes == 3:
        return value.T
    return value.reshape(shape[::-1]).T if len(shape) == 2 else value.reshape(shape)


def _write_class(architecture, source, builder):
    """Return a dict with the entry of config.json that names Hugging Face's class of a new head.

    `source` is the `Checkpoint`, and `builder` the name of the function in `ka.models`.
    """
    before = (source.config.get("architectures") or ["Model"])[0]
    family = re.sub(r"(For\w+|LMHeadModel|Model)$", "", before)
    endings = [end for end, kind in architecture.HEADS.items() if kind == builder]
    ending = next((end for end in endings if before == f"{family}{end}"), endings[0])
    return {"architectures": [f"{family}{ending}"]}


def _write_labels(model, labels):
    """Return a dict of the entries of config.json with the names of the classes."""
    count = model.output_shape[-1]
    labels = [f"LABEL_{i}" for i in range(count)] if labels is None else list(labels)
    if len(set(labels)) != count or len(labels) != count:
        raise ValueError(f"labels has {len(labels)} names: expected {count} different names.")
    return {
        "num_labels": count,
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }


def write_tensors(path, tensors):
    """Write `tensors`, {name: array}, as a safetensors file."""
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
