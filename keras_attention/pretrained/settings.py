"""`read_settings`: finds out which function of `ka.models` builds a checkpoint's model, and how."""

import dataclasses

from keras_attention.core.checks import check_whole_number
from keras_attention.files.fields import Fields
from keras_attention.pretrained.architecture import Architecture, find_architecture
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError, report_invalid
from keras_attention.pretrained.config import read_config
from keras_attention.pretrained.sentence_transformers import read_pooling

# Builders that can load a text encoder from a checkpoint with any head.
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
HEADS = (*SIZED, "question_answerer")  # builders whose head may be randomly initialized


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of the model of a checkpoint, read before the model is built.

    Attributes:
        architecture: `Architecture`, the rules for this kind of checkpoint.
        config: `Fields`, the settings in config.json.
        builder: str, the name of a function in `ka.models`.
        keywords: dict, the settings of the model.
        fresh: bool, whether the head is randomly initialized.
    """

    architecture: Architecture
    config: Fields
    builder: str
    keywords: dict
    fresh: bool


def read_settings(checkpoint, task=None, num_classes=None, pooling="auto"):
    """Return the `Settings` of the model in `checkpoint`, a `Checkpoint`.

    `task`, `num_classes` and `pooling` are the arguments of `load`, which choose another head.
    """
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    config = read_config(checkpoint.config, path, architecture.IRRELEVANT)
    of_file = architecture.find_builder(config, checkpoint.tensors)
    ignored = architecture.IGNORED  # a dict with a key per builder if files hold several models
    if isinstance(of_file, tuple):
        if task not in ignored:
            raise ValueError(
                f"task={task!r}: {path} holds several models. Give one of {', '.join(ignored)}."
            )
        builder = task
    else:
        builder = of_file if task is None else _check_task(task, of_file, ignored)
    fresh = builder in HEADS and (builder != of_file or num_classes is not None)
    with report_invalid(f"{path} has an invalid setting"):
        keywords = architecture.settings(config)
        keywords |= architecture.head(config, builder, keywords, checkpoint.tensors)
    keywords |= _choose_pooling(checkpoint, builder, keywords, fresh, pooling)
    config.finish()
    if builder in SIZED:
        if num_classes is None:
            num_classes = _count_classes(checkpoint, fresh)
        keywords[SIZED[builder]] = check_whole_number("load", "num_classes", num_classes)
    elif num_classes is not None:
        raise ValueError(f"num_classes={num_classes} is for {', '.join(SIZED)}, not {builder}.")
    return Settings(architecture, config, builder, keywords, fresh)


def _choose_pooling(checkpoint, builder, keywords, fresh, pooling):
    """Return a dict with settings for the pooling of a text encoder or a new text head, else {}.

    `builder` is the name of a function in `ka.models`, `keywords` are the settings without the
    head, `fresh` tells whether the head is new, and `pooling` is the argument of `load`.
    """
    if "pooling" in keywords and builder == "text_encoder":  # a text tower has its own pooling
        return {}
    if builder != "text_encoder" and not (builder == "text_classifier" and fresh):
        if pooling != "auto":
            raise ValueError(
                f"pooling={pooling!r} is only for text encoders and new text heads. Leave it out."
            )
        return {}
    if pooling == "auto":
        new = read_pooling(checkpoint.folder)
    else:
        new = {"pooling": pooling, "unit_length": False}
    if builder == "text_encoder" or not new:
        return new
    if pooling is None:
        raise ValueError("pooling=None: a text head needs one vector. Give another, as 'first'.")
    if new["pooling"] == keywords["pooling"]:
        return {}  # keeps the architecture's pooler
    return {"pooling": new["pooling"], "pooler_activation": None}


def _check_task(task, of_file, ignored):
    """Return `task`, or raise a ValueError if it cannot use the weights of the checkpoint.

    `of_file` is the function of `ka.models` for the model in the checkpoint.
    """
    families = [family for family in (ENCODERS, IMAGE_ENCODERS) if of_file in family]
    (choices,) = families or [(of_file,)]
    if isinstance(ignored, dict):
        choices = [name for name in choices if name in ignored]
    if task not in choices:
        raise ValueError(f"task={task!r}: a {of_file} loads as one of {', '.join(choices)}.")
    if task == "masked_language_model" != of_file:
        raise ValueError(f"task={task!r}: the file holds a {of_file}, which has no such head.")
    return task


def _count_classes(checkpoint, fresh):
    """Return the number of classes of the head in a checkpoint.

    If the head is new (`fresh`), a ValueError asks for `num_classes`.
    """
    if fresh:
        raise ValueError("A new head needs num_classes=, the number of classes or labels.")
    for name in HEAD_BIASES:
        if name in checkpoint.tensors:
            return checkpoint.tensors[name].shape[0]
    raise CheckpointError(f"{checkpoint.folder} has no head. Give task= and num_classes=.")
