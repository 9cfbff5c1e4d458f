"""timm's vision transformers: ViT, DeiT and DeiT III, DINOv2, image encoders of CLIP and SigLIP.

config.json names an architecture and its size, such as `vit_base_patch16_224`. The number of heads
follows from this name. All other sizes follow from the shapes of the tensors (Wightman, 2019,
*PyTorch Image Models*).
"""

import re

import numpy as np

from keras_attention.pretrained.architectures import deit
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import (
    Conversion,
    dense,
    feed_forward,
    joined,
    layer_norm,
    split_dense,
)

MODEL_TYPES = ("timm",)
# Settings about image preprocessing, class names and files.
IRRELEVANT = (
    *("architecture", "classifier", "crop_mode", "crop_pct", "custom_load", "first_conv"),
    *("fixed_input_size", "input_size", "interpolation", "label_descriptions", "label_names"),
    *("license", "mean", "num_classes", "num_features", "pool_size", "pretrained_cfg"),
    *("std", "tag"),
)
# `model_args` that only matter in training, or that follow from the tensors.
IRRELEVANT_ARGUMENTS = (
    *("class_token", "depth", "drop_path_rate", "dynamic_img_pad", "dynamic_img_size", "embed_dim"),
    *("fc_norm", "fix_init", "global_pool", "img_size", "in_chans", "init_values", "mlp_ratio"),
    *("no_embed_class", "num_classes", "patch_drop_rate", "patch_size", "pos_drop_rate"),
    *("pre_norm", "proj_drop_rate", "qkv_bias", "reg_tokens", "strict_img_size", "weight_init"),
)
IGNORED = ()
ANTIALIAS = True  # as in `resample_abs_pos_embed`

# A name that does not match, such as one with another word, is a model that is not supported.
NAMES = re.compile(
    r"(?P<family>vit|deit3?)_(?P<size>so\d+m2?|[a-z]+)(_distilled)?_patch\d+(_plus)?"
    r"(?P<clip>_clip)?(?P<quick>_quickgelu)?(?P<registers>_reg\d+)?(_siglip)?(_gap|_map|_dinov2)?"
    r"(_\d+)?(_miil)?"
)
# The SigLIP models with the approximate GELU.
APPROXIMATE = re.compile(
    r"vit_((base_patch32|(so400m|giantopt)_patch16)_siglip.*|large_patch16_siglip(_gap)?_512)"
)
# {size: {width: heads}}
SIZES = {
    "tiny": {192: 3},
    "xsmall": {256: 4},
    "small": {384: 6},
    "wee": {256: 4},
    "little": {320: 5},
    "medium": {512: 8},
    "mediumd": {512: 8},
    "betwixt": {640: 10},
    "base": {768: 12, 896: 14},
    "so150m": {896: 14},
    "so150m2": {832: 13},
    "large": {1024: 16},
    "so400m": {1152: 16},
    "huge": {1280: 16},
    "giant": {1408: 16},
    "gigantic": {1664: 16},
    "giantopt": {1536: 16},
}
UNUSUAL = {"vit_base_patch16_gap_224": 16}  # the other models of this size have 12
POOLINGS = {"token": "cls", "avg": "mean", "max": "max", "map": "map", "": None}


def find_builder(config, tensors):
    return "vision_transformer" if "head.weight" in tensors else "image_encoder"


def head(config, builder, keywords, tensors):
    name = config.need("architecture")
    match = NAMES.fullmatch(name) if isinstance(name, str) else None
    if match is None or match["size"] not in SIZES:
        raise CheckpointError(
            f"{config.path} says architecture={name!r:.60}: expected a vit, deit or deit3 in "
            f"one of the sizes {', '.join(SIZES)}, such as vit_base_patch16_224."
        )
    arguments = config.object("model_args", {}, IRRELEVANT_ARGUMENTS)
    width, channels, *patch_size = _read_shape(config, tensors, "patch_embed.proj.weight", 4)
    gelu = "gelu_tanh" if APPROXIMATE.fullmatch(name) else "gelu"
    gelu = "quick_gelu" if match["quick"] else gelu
    pooling = _find_pooling(config, arguments, tensors, builder)
    registers = match["registers"] and not match["size"].startswith("so150m")
    patches_only = bool(match["family"] == "deit3" or registers)
    patches_only = arguments.flag("no_embed_class", patches_only)
    blocks = [re.match(r"blocks\.(\d{1,9})\.", tensor) for tensor in tensors]
    keywords = {
        "image_size": _find_image_size(config, arguments, tensors, patch_size, patches_only),
        "patch_size": tuple(patch_size),
        "num_channels": channels,
        "num_layers": max((int(block[1]) + 1 for block in blocks if block), default=0),
        "num_heads": _find_heads(config, arguments, name, match["size"], width),
        "hidden_dim": width,
        "intermediate_dim": _read_shape(config, tensors, "blocks.0.mlp.fc1.weight", 2)[0],
        "qkv_bias": None if "blocks.0.attn.qkv.bias" in tensors else False,
        "layer_scale": 1.0 if "blocks.0.ls1.gamma" in tensors else None,
        "activation": arguments.one_of("act_layer", ACTIVATIONS | {"gelu_tanh": "gelu_tanh"}, gelu),
        "dropout": arguments.number("drop_rate", 0.0),
        "attention_dropout": arguments.number("attn_drop_rate", 0.0),
        "epsilon": 1e-5 if match["clip"] else 1e-6,
        "normalize_embeddings": "norm_pre.weight" in tensors,
        "normalize_pooled": "fc_norm.weight" in tensors and pooling in ("mean", "max", "map"),
        "patch_bias": "patch_embed.proj.bias" in tensors,
        "pooling": pooling,
        "num_registers": _count_prefix(tensors) - (pooling in ("cls", "prefix")),
    }
    arguments.one_of("final_norm", {True: None}, True)
    arguments.one_of("proj_bias", {True: None}, True)
    arguments.one_of("pos_embed", {"learn": None}, "learn")
    arguments.refuse("qk_norm", "scale_attn_norm", "scale_mlp_norm", "pool_include_prefix")
    arguments.finish()
    return keywords


def _read_shape(config, tensors, name, axes):
    """Return the shape of the tensor `name`, which must have `axes` axes.

    If the tensor is missing or has another shape, a CheckpointError is raised.
    """
    shape = tensors[name].shape if name in tensors else ()
    if len(shape) != axes or 0 in shape:
        raise CheckpointError(
            f"{config.path} is for a {config.get('architecture')!r:.60}, but the file has no "
            f"tensor {name} with {axes} axes."
        )
    return shape


def _count_prefix(tensors):
    """Return the number of tokens before the patches: class, distillation and register tokens."""
    return sum(tensors[name].shape[1] for name in _list_prefix(tensors))


def _list_prefix(tensors):
    names = ("cls_token", "dist_token", "reg_token")
    return [name for name in names if name in tensors and len(tensors[name].shape) == 3]


def _find_heads(config, arguments, name, size, width):
    """Return the number of heads, from `model_args` or the name of the architecture.

    `arguments` is the dict `model_args` in config.json, `size` the part of the name that stands for
    a size, such as `"base"`, and `width` the width of the model.
    """
    heads = arguments.whole("num_heads", None)
    heads = heads or UNUSUAL.get(name) or SIZES[size].get(width)
    if heads is None:
        raise CheckpointError(
            f"{config.path} says architecture={name!r:.60}, but the file has a width of {width}: "
            f"expected {' or '.join(map(str, SIZES[size]))}, or num_heads in its model_args."
        )
    return heads


def _find_pooling(config, arguments, tensors, builder):
    """Return the `pooling` of the model, an argument of `ka.models.image_encoder`.

    `config` is a `Fields` with the content of config.json, and `arguments` its entry `model_args`.
    """
    name = config.get("global_pool", arguments.get("global_pool", "token"))
    pooling = config.one_of("global_pool", POOLINGS, name)
    if builder == "vision_transformer" and "head_dist.weight" in tensors:
        return "prefix"  # two tokens, each with a head
    if pooling == "cls" and "cls_token" not in tensors:
        raise CheckpointError(
            f"{config.path} says global_pool={name!r}, but the file has no cls_token."
        )
    return pooling


def _find_image_size(config, arguments, tensors, patch_size, patches_only):
    """Return the (height, width) of images that fits the number of positions in the file.

    `arguments` is the dict `model_args` in config.json. With `patches_only`, only patches have
    positions. If the size in config.json does not fit, images are squares.
    """
    _, count, _ = _read_shape(config, tensors, "pos_embed", 3)
    count -= 0 if patches_only else _count_prefix(tensors)
    of_file = config.object("pretrained_cfg", {}).get("input_size", [None, None, None])
    size = arguments.get("img_size", of_file[1:])
    size = [size, size] if type(size) is int else list(size)
    valid = len(size) == 2 and all(type(x) is int for x in size)
    if not valid or _count_patches(size, patch_size) != count:
        side = round(max(count, 0) ** 0.5)
        size = [side * patch for patch in patch_size]
    if _count_patches(size, patch_size) != count:
        raise CheckpointError(
            f"{config.path}: the file has positions for {count} patches of {patch_size}. They do "
            "not make a square image, nor one of img_size in model_args or input_size in "
            "pretrained_cfg."
        )
    return tuple(size)


def _count_patches(size, patch_size):
    return size[0] // patch_size[0] * (size[1] // patch_size[1])


def table(config, builder, keywords, tensors):
    # Either normalization follows the last block: `fc_norm` after the pooling, `norm` before it.
    norm = "fc_norm" if "fc_norm.weight" in tensors else "norm"
    entries = layer_norm("final_norm", norm) | dense("patches/projection", "patch_embed.proj")
    entries |= layer_norm("embedding_norm", "norm_pre")
    entries |= _list_tokens(tensors, keywords) | _list_pooling("attn_pool")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"blocks.{i}"
        layers = ("query", "key", "value")
        entries |= split_dense(f"{ours}/attention", f"{theirs}.attn.qkv.", layers)
        entries |= dense(f"{ours}/attention/attention_output", f"{theirs}.attn.proj")
        entries |= feed_forward(f"{ours}/feed_forward", f"{theirs}.mlp", ("fc1", "fc2"))
        for k, branch in enumerate(("attention", "feed_forward"), start=1):
            entries |= layer_norm(f"{ours}/{branch}_norm", f"{theirs}.norm{k}")
            entries[f"{ours}/{branch}_scale/scale"] = f"{theirs}.ls{k}.gamma"
    if keywords["pooling"] == "prefix":
        return entries | deit.join_heads("head", "head_dist")
    return entries | dense("logits", "head")


def _list_pooling(theirs):
    """Return {weight name: tensor name} for attention pooling. `theirs` is its prefix."""
    return (
        {"pooling/query": f"{theirs}.latent"}
        | dense("pooling/attention/query", f"{theirs}.q")
        | split_dense("pooling/attention", f"{theirs}.kv.", ("key", "value"))
        | dense("pooling/attention/attention_output", f"{theirs}.proj")
        | layer_norm("pooling/norm", f"{theirs}.norm")
        | feed_forward("pooling/feed_forward", f"{theirs}.mlp", ("fc1", "fc2"))
    )


def _list_tokens(tensors, keywords):
    """Return {weight name: tensor names} for the prefix tokens and the position embeddings.

    In some models only patches have positions. Then the positions of the other tokens are zero.
    """
    names, count = _list_prefix(tensors), _count_prefix(tensors)
    prefix = {"patches/prefix": joined(names)} if names else {}
    height, width = keywords["image_size"]
    patches = _count_patches((height, width), keywords["patch_size"])
    if not names or tensors["pos_embed"].shape[1] != patches:
        return prefix | {"patches/positions/table": "pos_embed"}

    def put_zeros(table, *tokens):
        return np.pad(np.asarray(table, "float32"), ((0, 0), (count, 0), (0, 0)))

    def take_out(value, table, *tokens):
        ends = np.cumsum([token.shape[1] for token in tokens])
        *changes, value = np.split(value, ends, axis=1)
        return [value, *(token + change for token, change in zip(tokens, changes, strict=True))]

    positions = Conversion(("pos_embed", *names), put_zeros, invert=take_out)
    return prefix | {"patches/positions/table": positions}
