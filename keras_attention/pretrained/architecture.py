"""`Architecture`: what is known of one kind of checkpoint, by its module in `architectures/`."""

import importlib
import re

from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError
from keras_attention.pretrained.config import read_config

ARCHITECTURES = (
    *("albert", "bart", "bert", "clip", "deit", "dinov2", "distilbert", "electra", "gemma"),
    *("gpt2", "llama", "modernbert", "roberta", "siglip", "t5", "vit", "whisper"),
)
# Of timm and of KerasHub, whose files have names of their own.
FOREIGN = ("timm", "keras_hub_decoders", "keras_hub_encoders", "keras_hub_images")
# Tensors of heads that a file may have where another one is wanted.
OTHER_HEADS = (
    r"(cls|lm_head|classifier|vocab_\w+|pre_classifier|predictions|qa_outputs|sop_classifier)\..*"
    r"|(cls_|distillation_)classifier\..*|(generator|discriminator)_\w+\..*|(\w+\.)?pooler\..*|(\w+\.)?pooler"
    r"|head(_dist)?\..*|task/.*"
)


class Architecture:
    """A module of `architectures/`, and the defaults of what it leaves out.

    A module has `MODEL_TYPES`, `IRRELEVANT` settings, `IGNORED` tensors (a dict by builder, where
    a file holds several models), and the functions `settings`, `head` and `table`.

    Args:
        module: the module.

    Attributes:
        HEADS: dict, ending of a class's name -> its builder; None where no class is named.
        BASE: str, what the names of tensors below a head begin with.
        OTHER_HEADS: pattern of the tensors of heads.
        ALONE: model types of one tower of two, which has no head.
        ANTIALIASES: bool, whether the original resizes positions with antialiasing.
        POOLINGS: dict, pooling of a classifier of texts -> its entries of config.json.
        read_padding: function of config.json to the id that fills texts up, where that is a token
            to the model; or None.
    """

    HEADS = None
    BASE = ""
    OTHER_HEADS = OTHER_HEADS
    ALONE = ()
    ANTIALIASES = False
    POOLINGS = {"first": {}}
    read_padding = None

    def __init__(self, module):
        vars(self).update(vars(module))

    def find_builder(self, config, tensors):
        """Return the builder for the head of a file; a tuple of them where it holds several models.

        Hugging Face names the class in `architectures`. The modules of timm and KerasHub have a
        function of this name.
        """
        named = config.get("architectures") or []
        name = named[0] if named and isinstance(named[0], str) else "Model"
        for ending in sorted(self.HEADS, key=len, reverse=True):
            if name.endswith(ending):
                return self.HEADS[ending]
        known = ", ".join(f"*{ending}" for ending in self.HEADS)
        raise CheckpointError(f"{config.path} is of a {name:.60}: expected one of {known}.")


def find_architecture(model_type, path):
    """Return the `Architecture` of a checkpoint by its `model_type`; `path` is named in errors."""
    foreign = isinstance(model_type, str) and re.fullmatch("timm|.*Backbone", model_type)
    known = []
    for name in FOREIGN if foreign else ARCHITECTURES:
        module = importlib.import_module(f"keras_attention.pretrained.architectures.{name}")
        if model_type in module.MODEL_TYPES:
            return Architecture(module)
        known += module.MODEL_TYPES
    kind = f"is of the class {model_type:.60}" if foreign else f"says model_type={model_type!r:.60}"
    raise CheckpointError(f"{path} {kind}: expected one of {', '.join(sorted(known))}.")


def read_builder(checkpoint):
    """Return the builder of a `Checkpoint`, as `Architecture.find_builder` finds it."""
    path = checkpoint.folder / CONFIG
    architecture = find_architecture(checkpoint.model_type, path)
    return architecture.find_builder(read_config(checkpoint.config, path), checkpoint.tensors)
