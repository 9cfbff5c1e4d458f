"""`load` and `describe`: a checkpoint of others as a functional model of our layers."""

import contextlib
import dataclasses
import functools
import importlib
import math
import pathlib
import re
import weakref

import keras

from keras_attention.core import keras_internals
from keras_attention.core.checks import check_whole_number
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.config import read_config
from keras_attention.pretrained.image_processing import read_image_processing
from keras_attention.pretrained.keras_hub import read_checkpoint
from keras_attention.pretrained.parts import build_model
from keras_attention.pretrained.resized_positions import (
    POSITIONS,
    check_image_size,
    find_grid,
    resize_positions,
)
from keras_attention.pretrained.sentence_transformers import read_pooling
from keras_attention.pretrained.sound_processing import read_sound_processing
from keras_attention.pretrained.weights import match_weights

ARCHITECTURES = (
    *("albert", "bart", "bert", "clip", "deit", "dinov2", "distilbert", "electra", "gemma"),
    *("gpt2", "llama", "modernbert", "roberta", "siglip", "t5", "vit", "whisper"),
)
# Of timm and of KerasHub, whose files have names of their own.
FOREIGN = ("timm", "keras_hub_decoders", "keras_hub_encoders", "keras_hub_images")
# Builders that an encoder's weights fit under, whatever head its file has.
ENCODERS = (
    *("text_encoder", "masked_language_model", "text_classifier", "sequence_labeler"),
    "question_answerer",
)
IMAGE_ENCODERS = ("image_encoder", "vision_transformer")
SIZED = {"text_classifier": "num_classes", "sequence_labeler": "num_labels",
         "vision_transformer": "num_classes"}  # fmt: skip
HEAD_BIASES = (
    *("classifier.out_proj.bias", "classifier.bias", "cls_classifier.bias"),
    *("head.bias", "task/layers/dense_1/vars/1", "task/layers/dense/vars/1"),  # timm, KerasHub
)
HEADS = (*SIZED, "question_answerer")  # builders whose last layer may be a new one
ORIGINS = weakref.WeakKeyDictionary()  # model -> the folder that `load` made it of, for `save`
# Tensors of heads that a file may have where another one is wanted.
OTHER_HEADS = (
    r"(cls|lm_head|classifier|vocab_\w+|pre_classifier|predictions|qa_outputs|sop_classifier)\..*"
    r"|(cls_|distillation_)classifier\..*|(generator|discriminator)_\w+\..*|(\w+\.)?pooler\..*|(\w+\.)?pooler"
    r"|head(_dist)?\..*|task/.*"
)

NEAR_HEADS = {"pooler", "transform"}  # layers before the logits of some heads


@dataclasses.dataclass(frozen=True)
class Description:
    """What `load` would build of a checkpoint.

    Attributes:
        model_type: str, the architecture by its own name.
        builder: str, the function in `ka.models`.
        keywords: dict, the settings of the checkpoint that it is built by.
        parameters: int, numbers in the model's weights.
        dtypes: tuple of str, the types in which the file has them.
        unused: tuple of str, tensors of the file that the model has no use for, such as another
            head, or what is stored twice.
        fresh_head: bool, whether the head is a new one that is to be trained.
    """

    model_type: str
    builder: str
    keywords: dict
    parameters: int
    dtypes: tuple
    unused: tuple
    fresh_head: bool


def load(
    folder,
    *,
    task=None,
    num_classes=None,
    pooling="auto",
    normalize_pixels=False,
    image_size=None,
    waveform=False,
    revision=None,
    dtype=None,
):
    """A functional model of our layers, with the weights of a checkpoint.

    Its outputs are those of the original. It trains in `fit`, generates with a cache, shows its
    attention, saves and exports as every model here. Checkpoints are those of Hugging Face, files
    of timm's vision transformers, and presets of KerasHub. Only settings and files of numbers
    (safetensors, HDF5) are read; nothing of a checkpoint is run.

    Args:
        folder: path of a folder with the files, or the id of a repository on the Hugging Face Hub,
            such as `"distilbert-base-uncased"`, which `huggingface_hub` fetches.
        task: str, a builder in `ka.models`, where it is to be another than that of the file's head:
            a text encoder becomes `"text_encoder"`, `"text_classifier"`, `"sequence_labeler"`,
            `"question_answerer"` or `"masked_language_model"`, one of images `"image_encoder"` or
            `"vision_transformer"`. A head that the file does not have is new, to be trained. Of a
            file with two towers (CLIP, SigLIP) it says which: `"image_encoder"` or
            `"text_encoder"`.
        num_classes: int, the classes or labels of a new head; None for those of the file.
        pooling: of a `text_encoder` and a new head of texts, as there; `"auto"` for what the files
            of Sentence Transformers beside it say, and without such files for a vector of each
            token, or before a head BERT's first token.
        normalize_pixels: bool, of images: whether the model takes pixels from 0 to 1, and itself
            does with them what `preprocessor_config.json` says.
        image_size: int or (height, width), of images of another size than the file says, such as
            224 for DINOv2, which was trained with 518: the positions are resized as the original
            does it. A multiple of the patch size; None for the file's.
        waveform: bool, of speech: whether the model takes samples, and itself makes the spectrogram
            that `preprocessor_config.json` describes.
        revision: str, of a repository: a branch, a tag or a commit.
        dtype: a Keras dtype or policy for the layers, such as `"mixed_bfloat16"`; None for the
            global one. Weights are float32 unless it says otherwise.

    Returns:
        A functional `keras.Model`, as the builder makes it.

    Raises:
        CheckpointError: a ValueError: the checkpoint is damaged, or says something that no builder
            here does. Nothing is loaded in part.
    """
    checkpoint = read_checkpoint(find_folder(folder, revision))
    model, variables, match, _ = _build(
        checkpoint, task, num_classes, pooling, image_size, dtype, normalize_pixels, waveform
    )
    match.fill()
    for variable in variables:  # of a new head, and the seeds of dropout
        if not keras_internals.has_value(variable):
            keras_internals.give_value(variable)
    ORIGINS[model] = checkpoint.folder
    return model


@contextlib.contextmanager
def _dtype_policy(dtype):
    """Inside, layers are made with this policy, if it is not None."""
    before = keras.config.dtype_policy()
    if dtype is not None:
        keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def describe(
    folder, *, task=None, num_classes=None, pooling="auto", image_size=None, revision=None
):
    """What `load` would build of a checkpoint; no weight is read.

    Args: as for `load`.

    Returns:
        `Description`.
    """
    checkpoint = read_checkpoint(find_folder(folder, revision))
    return _build(checkpoint, task, num_classes, pooling, image_size)[-1]


def _build(
    checkpoint,
    task,
    num_classes,
    pooling,
    image_size=None,
    dtype=None,
    normalize_pixels=False,
    waveform=False,
):
    """A model without values, its variables, the `Match` with tensors, and the `Description`."""
    architecture, config, builder, keywords, fresh = read_settings(
        checkpoint, task, num_classes, pooling
    )
    of_file, more = keywords, {}
    if image_size is not None:
        size = check_image_size(image_size, builder, keywords, checkpoint)
        keywords = keywords | {"image_size": size}
    if waveform:
        if builder != "speech_to_text":
            raise ValueError(f"waveform=True is for speech, and this is a {builder}.")
        more = read_sound_processing(checkpoint.folder, keywords)
    if normalize_pixels:
        if builder not in IMAGE_ENCODERS:
            raise ValueError(f"normalize_pixels=True is for images, and this is a {builder}.")
        found = read_image_processing(checkpoint.folder)
        more = {"pixel_mean": found.mean, "pixel_std": found.std}
    build = functools.partial(build_model, builder, keywords | more)
    try:
        with _dtype_policy(dtype):
            model, variables = keras_internals.build_without_values(build)
            keras_internals.choose_layouts(model)
    except (TypeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise CheckpointError(
            f"{checkpoint.folder / CONFIG} describes a model that cannot be built: {reason}"
        ) from error
    table = architecture.table(config, builder, of_file, checkpoint.tensors)
    if image_size is not None and find_grid(keywords) != find_grid(of_file):
        antialias = getattr(architecture, "ANTIALIASES", False)
        table[POSITIONS] = resize_positions(table[POSITIONS], of_file, keywords, antialias)
    new, ignored = (), architecture.IGNORED
    if isinstance(ignored, dict):
        ignored = ignored[builder]
    elif fresh or builder in ("text_encoder", "image_encoder"):
        ignored = (*ignored, get_other_heads(architecture))
    if fresh:  # a pooler or transform that the file has is kept, as it is pretrained, too
        kept = {name for name in NEAR_HEADS if _is_in_file(table, name, checkpoint)}
        new = ("logits/", *(f"{name}{end}/" for name in NEAR_HEADS - kept for end in ("", "_norm")))
    match = match_weights(model, checkpoint, table, ignored=ignored, fresh=new)
    found = Description(
        model_type=checkpoint.model_type,
        builder=builder,
        keywords=keywords,
        parameters=sum(math.prod(variable.shape) for variable in match.weights.values()),
        dtypes=tuple(sorted({tensor.dtype for tensor in checkpoint.tensors.values()})),
        unused=tuple(match.unused),
        fresh_head=fresh,
    )
    return model, variables, match, found


def find_folder(folder, revision=None):
    """The folder of a checkpoint: one that is there, or one that is fetched by its id."""
    path = pathlib.Path(folder)
    if path.is_dir():
        return path
    name = str(folder).removeprefix("hf://")
    if name.count("/") > 1 or name.startswith((".", "/", "~")) or not name:
        raise CheckpointError(f"There is no folder {folder}.")
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"There is no folder {folder}, and to fetch {name} from the Hugging Face Hub "
            "huggingface_hub is needed: pip install 'keras-attention-zoo[pretrained]'."
        ) from error
    patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "*.spm", "*.weights.h5"]
    fetched = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=patterns)
    return pathlib.Path(fetched)


def find_architecture(model_type, path):
    """The module of an architecture by the `model_type` of a checkpoint."""
    foreign = isinstance(model_type, str) and re.fullmatch("timm|.*Backbone", model_type)
    known = []
    for name in FOREIGN if foreign else ARCHITECTURES:
        module = importlib.import_module(f"keras_attention.pretrained.architectures.{name}")
        if model_type in module.MODEL_TYPES:
            return module
        known += module.MODEL_TYPES
    kind = f"is of the class {model_type:.60}" if foreign else f"says model_type={model_type!r:.60}"
    raise CheckpointError(f"{path} {kind}: expected one of {', '.join(sorted(known))}.")


def read_settings(checkpoint, task=None, num_classes=None, pooling="auto"):
    """What `config.json` says, and what was asked for.

    Returns:
        (module of the architecture, `Fields`, builder, its keywords, whether a head is new).
    """
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    config = read_config(checkpoint.config, path, architecture.IRRELEVANT)
    of_file = find_builder(architecture, config, checkpoint.tensors)
    own = architecture.IGNORED  # by builder, where a file may hold several models
    if isinstance(of_file, tuple):
        builder = _choose_tower(own, task, path)
    else:
        builder = of_file if task is None else _check_task(task, of_file, own)
    fresh = builder in HEADS and (builder != of_file or num_classes is not None)
    try:
        keywords = architecture.settings(config)
        keywords |= architecture.head(config, builder, keywords, checkpoint.tensors)
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} holds what is no setting: {error!r:.200}") from error
    keywords |= _choose_pooling(checkpoint, builder, keywords, fresh, pooling)
    config.finish()
    if builder in SIZED:
        if num_classes is None:
            num_classes = _count_classes(checkpoint, config, fresh)
        keywords[SIZED[builder]] = check_whole_number("load", "num_classes", num_classes)
    elif num_classes is not None:
        raise ValueError(f"num_classes={num_classes} is for {', '.join(SIZED)}, not {builder}.")
    return architecture, config, builder, keywords, fresh


def _choose_pooling(checkpoint, builder, keywords, fresh, pooling):
    """Keywords of how a text's vector is made, where it is not the file's own head."""
    if "pooling" in keywords and builder == "text_encoder":  # of a tower
        return {}
    if builder != "text_encoder" and not (builder == "text_classifier" and fresh):
        if pooling != "auto":
            raise ValueError(f"pooling={pooling!r} is for text encoders and new heads of texts.")
        return {}
    if pooling == "auto":
        found = read_pooling(checkpoint.folder)
    else:
        found = {"pooling": pooling, "unit_length": False}
    if builder == "text_encoder" or not found:
        return found
    if pooling is None:
        raise ValueError("pooling=None: a head of texts needs one vector, such as that of 'first'.")
    if found["pooling"] == keywords["pooling"]:
        return {}  # with the pooler of the architecture
    return {"pooling": found["pooling"], "pooler_activation": None}


def get_other_heads(architecture):
    """A pattern of the tensors of heads."""
    return getattr(architecture, "OTHER_HEADS", OTHER_HEADS)


def find_builder(architecture, config, tensors):
    """The builder for the head of a file, by the class that `architectures` names.

    A tuple of them where the file holds several models. Files of timm and KerasHub say it in ways
    of their own.
    """
    if hasattr(architecture, "find_builder"):
        return architecture.find_builder(config, tensors)
    named = config.get("architectures") or []
    name = named[0] if named and isinstance(named[0], str) else "Model"
    for ending in sorted(architecture.HEADS, key=len, reverse=True):
        if name.endswith(ending):
            return architecture.HEADS[ending]
    known = ", ".join(f"*{ending}" for ending in architecture.HEADS)
    raise CheckpointError(f"{config.path} is of a {name:.60}: expected one of {known}.")


def list_towers(checkpoint):
    """The builders of a file that holds several models; an empty tuple where it holds one."""
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    found = find_builder(architecture, read_config(checkpoint.config, path), checkpoint.tensors)
    return found if isinstance(found, tuple) else ()


def _is_in_file(table, name, checkpoint):
    """Whether a file has the layer called `name` before its logits."""
    kernel = table.get(f"{name}/kernel")
    return set(getattr(kernel, "names", [kernel])) <= checkpoint.tensors.keys()


def _choose_tower(towers, task, path):
    """The builder that `task` names, of a file that holds several models."""
    if task not in towers:
        raise ValueError(f"task={task!r}: {path} becomes {' or '.join(towers)}: say which.")
    return task


def _check_task(task, of_file, ignored):
    """The builder that `task` names, if the weights of the file fit under it."""
    families = [family for family in (ENCODERS, IMAGE_ENCODERS) if of_file in family]
    (choices,) = families or [(of_file,)]
    if isinstance(ignored, dict):
        choices = [name for name in choices if name in ignored]
    if task not in choices:
        raise ValueError(f"task={task!r}: a {of_file} becomes one of {', '.join(choices)}.")
    if task == "masked_language_model" != of_file:
        raise ValueError(f"task={task!r}: the file is of a {of_file}, and has no such head.")
    return task


def _count_classes(checkpoint, config, fresh):
    """The outputs of the head of a file."""
    if fresh:
        raise ValueError("A new head needs num_classes=, how many classes or labels there are.")
    for name in HEAD_BIASES:
        if name in checkpoint.tensors:
            return checkpoint.tensors[name].shape[0]
    raise CheckpointError(f"{checkpoint.folder} has no head: give task= and num_classes=.")
