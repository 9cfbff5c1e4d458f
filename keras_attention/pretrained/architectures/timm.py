"""timm's vision transformers: ViT, DeiT (distilled, and III), DINOv2, towers of CLIP and SigLIP.

A file of timm names a size, as `vit_base_patch16_224`. The shapes of its tensors say all else but
the number of heads, which is in timm's source by that name, and here (Wightman, 2019, *PyTorch
Image Models*).
"""

import re

import numpy as np

from keras_attention.pretrained.architectures import deit
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import Fold, dense, joined, layer_norm, part_of

MODEL_TYPES = ("timm",)
# Of the pictures and their colours, of the classes' names, of files.
IRRELEVANT = (
    *("architecture", "classifier", "crop_mode", "crop_pct", "custom_load", "first_conv"),
    *("fixed_input_size", "input_size", "interpolation", "label_descriptions", "label_names"),
    *(
        "license",
        "mean",
        "num_classes",
        "num_features",
        "pool_size",
        "pretrained_cfg",
        "std",
        "tag",
    ),
)
# Of `model_args`: of training, and what the tensors say.
IRRELEVANT_ARGUMENTS = (
    *("class_token", "depth", "drop_path_rate", "dynamic_img_pad", "dynamic_img_size", "embed_dim"),
    *("fc_norm", "fix_init", "global_pool", "img_size", "in_chans", "init_values", "mlp_ratio"),
    *("no_embed_class", "num_classes", "patch_drop_rate", "patch_size", "pos_drop_rate"),
    *("pre_norm", "proj_drop_rate", "qkv_bias", "reg_tokens", "strict_img_size", "weight_init"),
)
IGNORED = ()
ANTIALIASES = True  # where it resizes positions, in `resample_abs_pos_embed`

# What a name may say beside a size; with any other word it is another model.
NAMES = re.compile(
    r"(?P<family>vit|deit3?)_(?P<size>so\d+m2?|[a-z]+)(_distilled)?_patch\d+(_plus)?"
    r"(?P<clip>_clip)?(?P<quick>_quickgelu)?(?P<registers>_reg\d+)?(_siglip)?(_gap|_map|_dinov2)?"
    r"(_\d+)?(_miil)?"
)
# Of SigLIP's, those with the approximate gelu.
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
UNUSUAL = {"vit_base_patch16_gap_224": 16}  # not 12, as all others of this size
POOLINGS = {"token": "cls", "avg": "mean", "max": "max", "map": "map", "": None}


def find_builder(config, tensors):
    """Return the builder for the head of a file: timm has one where there are classes."""
    return "vision_transformer" if "head.weight" in tensors else "image_encoder"


def settings(config):
    """Nothing: what is to be built says `head`, which knows the shapes of the tensors."""
    return {}


def head(config, builder, keywords, tensors):
    name = config.need("architecture")
    said = NAMES.fullmatch(name) if isinstance(name, str) else None
    if said is None or said["size"] not in SIZES:
        raise CheckpointError(
            f"{config.path} says architecture={name!r:.60}: expected a vit, deit or deit3 of a "
            f"size among {', '.join(SIZES)}, such as vit_base_patch16_224."
        )
    arguments = config.object("model_args", {}, IRRELEVANT_ARGUMENTS)
    width, channels, *patch_size = _read_shape(config, tensors, "patch_embed.proj.weight", 4)
    gelu = "gelu_tanh" if APPROXIMATE.fullmatch(name) else "gelu"
    gelu = "quick_gelu" if said["quick"] else gelu
    pooling = _find_pooling(config, arguments, tensors, builder)
    alone = said["registers"] and not said["size"].startswith("so150m")
    apart = arguments.flag("no_embed_class", bool(said["family"] == "deit3" or alone))
    blocks = [re.match(r"blocks\.(\d{1,9})\.", tensor) for tensor in tensors]
    found = {
        "image_size": _find_image_size(config, arguments, tensors, patch_size, apart),
        "patch_size": tuple(patch_size),
        "num_channels": channels,
        "num_layers": max((int(block[1]) + 1 for block in blocks if block), default=0),
        "num_heads": _find_heads(config, arguments, name, said["size"], width),
        "hidden_dim": width,
        "intermediate_dim": _read_shape(config, tensors, "blocks.0.mlp.fc1.weight", 2)[0],
        "qkv_bias": None if "blocks.0.attn.qkv.bias" in tensors else False,
        "layer_scale": 1.0 if "blocks.0.ls1.gamma" in tensors else None,
        "activation": arguments.one_of("act_layer", ACTIVATIONS | {"gelu_tanh": "gelu_tanh"}, gelu),
        "dropout": arguments.number("drop_rate", 0.0),
        "attention_dropout": arguments.number("attn_drop_rate", 0.0),
        "epsilon": 1e-5 if said["clip"] else 1e-6,
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
    return found


def _read_shape(config, tensors, name, axes):
    """Return the shape of a tensor that every file has."""
    shape = tensors[name].shape if name in tensors else ()
    if len(shape) != axes or 0 in shape:
        raise CheckpointError(
            f"{config.path} is of a {config.get('architecture')!r:.60}, and its file has no tensor "
            f"{name} of {axes} axes."
        )
    return shape


def _count_prefix(tensors):
    """How many tokens are in front of the patches."""
    return sum(tensors[name].shape[1] for name in _list_prefix(tensors))


def _list_prefix(tensors):
    names = ("cls_token", "dist_token", "reg_token")
    return [name for name in names if name in tensors and len(tensors[name].shape) == 3]


def _find_heads(config, arguments, name, size, width):
    """Return the number of heads, which no shape says."""
    heads = arguments.whole("num_heads", None)
    heads = heads or UNUSUAL.get(name) or SIZES[size].get(width)
    if heads is None:
        raise CheckpointError(
            f"{config.path} says architecture={name!r:.60}, and the file is {width} wide: expected "
            f"{' or '.join(map(str, SIZES[size]))}, or num_heads in its model_args."
        )
    return heads


def _find_pooling(config, arguments, tensors, builder):
    """How a vector is made of the tokens, in the words of the builders."""
    said = config.get("global_pool", arguments.get("global_pool", "token"))
    pooling = config.one_of("global_pool", POOLINGS, said)
    if builder == "vision_transformer" and "head_dist.weight" in tensors:
        return "prefix"  # both tokens, each with a head
    if pooling == "cls" and "cls_token" not in tensors:
        raise CheckpointError(
            f"{config.path} says global_pool={said!r}: the file has no cls_token."
        )
    return pooling


def _find_image_size(config, arguments, tensors, patch_size, apart):
    """(height, width) of the images: as the settings say, if the file has as many positions."""
    _, places, _ = _read_shape(config, tensors, "pos_embed", 3)
    places -= 0 if apart else _count_prefix(tensors)
    of_file = config.object("pretrained_cfg", {}).get("input_size", [None, None, None])
    size = arguments.get("img_size", of_file[1:])
    size = [size, size] if type(size) is int else list(size)
    known = len(size) == 2 and all(type(x) is int for x in size)
    if not known or _count_patches(size, patch_size) != places:
        side = round(max(places, 0) ** 0.5)  # of a square
        size = [side * patch for patch in patch_size]
    if _count_patches(size, patch_size) != places:
        raise CheckpointError(
            f"{config.path}: the file has positions for {places} patches of {patch_size}, which "
            "are no square image, nor one of img_size in model_args or input_size in "
            "pretrained_cfg."
        )
    return tuple(size)


def _count_patches(size, patch_size):
    return size[0] // patch_size[0] * (size[1] // patch_size[1])


def table(config, builder, keywords, tensors):
    # a norm after the pooling is one before it where tokens are not mixed
    norm = "fc_norm" if "fc_norm.weight" in tensors else "norm"
    found = layer_norm("final_norm", norm) | dense("patches/projection", "patch_embed.proj")
    found |= layer_norm("embedding_norm", "norm_pre")
    found |= _list_tokens(tensors, keywords)
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"blocks.{i}"
        for k, name in enumerate(("query", "key", "value")):
            for kind, their in (("kernel", "weight"), ("bias", "bias")):
                fused = f"{theirs}.attn.qkv.{their}"
                found[f"{ours}/attention/{name}/{kind}"] = part_of(fused, k, 3)
        found |= dense(f"{ours}/attention/attention_output", f"{theirs}.attn.proj")
        found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.norm1")
        found |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}.mlp.fc1")
        found |= dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.fc2")
        found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.norm2")
        for k, branch in enumerate(("attention", "feed_forward"), start=1):
            found[f"{ours}/{branch}_scale/scale"] = f"{theirs}.ls{k}.gamma"
    if keywords["pooling"] == "map":
        found |= _list_pooling("attn_pool")
    if keywords["pooling"] == "prefix":
        return found | deit.join_heads("head", "head_dist")
    return found | dense("logits", "head")


def _list_pooling(theirs):
    """Return the learned query, its attention, and the feed-forward network behind it."""
    found = {"pooling/query": f"{theirs}.latent"}
    found |= dense("pooling/attention/query", f"{theirs}.q")
    for k, name in enumerate(("key", "value")):
        for kind, their in (("kernel", "weight"), ("bias", "bias")):
            found[f"pooling/attention/{name}/{kind}"] = part_of(f"{theirs}.kv.{their}", k, 2)
    found |= dense("pooling/attention/attention_output", f"{theirs}.proj")
    found |= layer_norm("pooling/norm", f"{theirs}.norm")
    found |= dense("pooling/feed_forward/intermediate", f"{theirs}.mlp.fc1")
    return found | dense("pooling/feed_forward/output", f"{theirs}.mlp.fc2")


def _list_tokens(tensors, keywords):
    """Tokens in front of the patches, and positions; in some models these are of patches alone."""
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

    positions = Fold(("pos_embed", *names), put_zeros, invert=take_out)
    return prefix | {"patches/positions/table": positions}
