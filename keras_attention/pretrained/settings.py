"""`read_settings`: the builder of a checkpoint and its keywords, by `config.json`."""

import dataclasses

from keras_attention.core.checks import check_whole_number
from keras_attention.files.fields import Fields
from keras_attention.pretrained.architecture import Architecture, find_architecture
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.config import read_config
from keras_attention.pretrained.sentence_transformers import read_pooling

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


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `config.json` says of a model, and what was asked for.

    Attributes:
        architecture: `Architecture`. config: `Fields` of config.json.
        builder: str, a function in `ka.models`. keywords: dict, its settings.
        fresh: bool, whether the head is a new one.
    """

    architecture: Architecture
    config: Fields
    builder: str
    keywords: dict
    fresh: bool


def read_settings(checkpoint, task=None, num_classes=None, pooling="auto"):
    """Return the `Settings` of a `Checkpoint` for what was asked for, as in `load`."""
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    config = read_config(checkpoint.config, path, architecture.IRRELEVANT)
    of_file = architecture.find_builder(config, checkpoint.tensors)
    own = architecture.IGNORED  # by builder, where a file may hold several models
    if isinstance(of_file, tuple):
        if task not in own:
            raise ValueError(f"task={task!r}: {path} becomes {' or '.join(own)}: say which.")
        builder = task
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
    return Settings(architecture, config, builder, keywords, fresh)


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


def _check_task(task, of_file, ignored):
    """Return the builder that `task` names, if the weights of the file fit under it."""
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
    """Return the outputs of the head of a file."""
    if fresh:
        raise ValueError("A new head needs num_classes=, how many classes or labels there are.")
    for name in HEAD_BIASES:
        if name in checkpoint.tensors:
            return checkpoint.tensors[name].shape[0]
    raise CheckpointError(f"{checkpoint.folder} has no head: give task= and num_classes=.")
