"""`Architecture`: how to read one kind of checkpoint, such as BERT or Llama.

Each module in `architectures/` defines one kind.
"""

import importlib
import re

from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.config import read_config

ARCHITECTURES = (
    *("albert", "bart", "bert", "clip", "deit", "dinov2", "distilbert", "electra", "gemma"),
    *("gpt2", "llama", "modernbert", "roberta", "siglip", "t5", "vit", "whisper"),
)
# timm and KerasHub have their own names for files and settings.
FOREIGN = ("timm", "keras_hub_decoders", "keras_hub_encoders", "keras_hub_images")


class Architecture:
    """The rules for reading one kind of checkpoint, from a module of `architectures/`.

    A builder is the name of a function in `ka.models`, such as `"text_encoder"`. A head is the
    layers after the last block, which compute the output. Every module must define `MODEL_TYPES`,
    `IRRELEVANT`, `IGNORED` and `table`. The other names have defaults.

    Args:
        module: the module.

    Attributes:
        MODEL_TYPES: tuple of str, the values of `model_type` in config.json for this kind.
        IRRELEVANT: tuple of str, settings in config.json that do not change the model.
        IGNORED: tuple of regular expressions for tensors that are not loaded. If a file holds
            several models, a dict from builder to such a tuple.
        table: function `(config, builder, keywords, tensors)`. It returns a dict from the name of a
            weight in our model to the name of its tensor in the file, or to a `Conversion` of
            several tensors.
        HEADS: dict from the last part of a Hugging Face class name to a builder. None if the files
            do not name a class.
        BASE: str, the prefix that names of tensors below the head have in files with a head.
        OTHER_HEADS: regular expression for the tensors of heads, to skip a head in the file that is
            not loaded.
        SINGLE_TOWERS: tuple of str, model types of files with only the image encoder or only the
            text encoder of a pair. Such files cannot hold a head.
        ANTIALIAS: bool, whether the original resizes position embeddings with antialiasing.
        POOLINGS: dict from the `pooling` of a `text_classifier` to the dict that config.json then
            contains.
        read_padding: function from the content of config.json to the padding id, for models that
            attend to padding, else None.
    """

    HEADS = None
    BASE = ""
    OTHER_HEADS = (
        r"(cls|lm_head|classifier|vocab_\w+|pre_classifier|predictions|qa_outputs"
        r"|sop_classifier)\..*|(cls_|distillation_)classifier\..*|(generator|discriminator)_\w+\..*"
        r"|(\w+\.)?pooler\..*|(\w+\.)?pooler|head(_dist)?\..*|task/.*"
    )
    SINGLE_TOWERS = ()
    ANTIALIAS = False
    POOLINGS = {"first": {}}
    read_padding = None

    def __init__(self, module):
        vars(self).update(vars(module))

    def settings(self, config):
        """Return the settings of the model without its head, a dict for `parts.build_model`.

        `config` is a `Fields` with the content of config.json.
        """
        return {}

    def head(self, config, builder, keywords, tensors):
        """Return the settings of the model that depend on the head or on the tensors, a dict.

        `config` is a `Fields` with the content of config.json, `builder` the name of a function in
        `ka.models`, `keywords` the result of `settings`, and `tensors` the tensors of the file by
        name.
        """
        return {}

    def find_builder(self, config, tensors):
        """Return the name of the function in `ka.models` that builds the model in a file.

        The name depends on the head, the layers after the last block. `config` is a `Fields` with
        the content of config.json, and `tensors` a dict of the tensors by name. If the file holds
        several models, the result is a tuple of names. This method reads the class that Hugging
        Face's config.json names under `architectures`. The modules for timm and KerasHub replace
        this method by a function.
        """
        classes = config.get("architectures") or []
        name = classes[0] if classes and isinstance(classes[0], str) else "Model"
        for ending in sorted(self.HEADS, key=len, reverse=True):
            if name.endswith(ending):
                return self.HEADS[ending]
        endings = ", ".join(f"*{ending}" for ending in self.HEADS)
        raise CheckpointError(f"{config.path} is for a {name:.60}: expected one of {endings}.")


def find_architecture(model_type, path):
    """Return the `Architecture` for a `model_type` of config.json.

    An unknown type raises a CheckpointError that names the file `path`.
    """
    foreign = isinstance(model_type, str) and re.fullmatch("timm|.*Backbone", model_type)
    model_types = []
    for name in FOREIGN if foreign else ARCHITECTURES:
        module = importlib.import_module(f"keras_attention.pretrained.architectures.{name}")
        if model_type in module.MODEL_TYPES:
            return Architecture(module)
        model_types += module.MODEL_TYPES
    kind = f"has the class {model_type:.60}" if foreign else f"has model_type={model_type!r:.60}"
    raise CheckpointError(f"{path} {kind}: expected one of {', '.join(sorted(model_types))}.")


def read_builder(checkpoint):
    """Return the name of the function in `ka.models` that builds the model of a `Checkpoint`.

    If the checkpoint holds several models, the result is a tuple of names.
    """
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    return architecture.find_builder(read_config(checkpoint.config, path), checkpoint.tensors)
