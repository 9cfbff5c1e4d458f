"""KerasHub's ViT (Dosovitskiy et al., 2021) and DeiT (Touvron et al., 2021)."""

from keras_attention.pretrained import keras_hub
from keras_attention.pretrained.architectures.keras_hub_layers import (
    attention,
    dense,
    layer_norm,
    numbered,
)
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.table_entries import joined

MODEL_TYPES = ("ViTBackbone", "DeiTBackbone")
IRRELEVANT = keras_hub.IRRELEVANT
IGNORED = (r"task/optimizer/.*",)


def find_builder(config, tensors):
    return "vision_transformer" if config.get("task") else "image_encoder"


def settings(config):
    is_vit = config.values["model_type"] == "ViTBackbone"
    height, width, channels = config.need("image_shape")
    bias = config.flag("use_mha_bias", True)
    if is_vit and config.flag("use_mlp_bias", True) != bias or not (is_vit or bias):
        raise CheckpointError(
            f"{config.path} says use_mha_bias={bias}, but other layers differ: expected a bias in "
            "all layers, or in none."
        )
    if is_vit:
        config.one_of("use_class_token", {True: None}, True)
    return {
        "image_size": (height, width),
        "patch_size": config.need("patch_size"),
        "num_channels": channels,
        "num_layers": config.layers("num_layers"),
        "num_heads": config.whole("num_heads"),
        "hidden_dim": config.whole("hidden_dim"),
        "intermediate_dim": config.whole("mlp_dim" if is_vit else "intermediate_dim"),
        "use_bias": bias,
        "patch_bias": config.flag("use_patch_bias", True),
        "activation": "gelu",
        "dropout": config.number("dropout_rate", 0.0),
        "attention_dropout": config.number("attention_dropout", 0.0),
        "epsilon": config.number("layer_norm_epsilon", 1e-6),
        "num_registers": 0 if is_vit else 1,  # the distillation token, which no head reads
    }


def head(config, builder, keywords, tensors):
    task = config.object("task", {}, keras_hub.IRRELEVANT)
    for name in ("num_classes", "dropout", "model_type"):
        task.get(name)
    task.one_of("activation", {None: None, "linear": None}, "linear")
    task.one_of("pooling", {"token": None}, "token")
    task.refuse("intermediate_dim")
    task.finish()
    return {"pooling": "cls"}


def table(config, builder, keywords, tensors):
    if config.values["model_type"] == "ViTBackbone":
        inside, encoder = "layers/vi_t_patching_and_embedding", "layers/vi_t_encoder"
        block, mlp = "vi_t_encoder_block", ("mlp/dense_1", "mlp/dense_2")
        entries = {
            "patches/prefix": f"{inside}/vars/0",
            "patches/positions/table": f"{inside}/position_embedding/vars/0",
        }
    else:
        inside, encoder = "layers/dei_t_embeddings", "layers/dei_t_encoder"
        block, mlp = "dei_t_encoder_block", ("mlp/dense", "output_layer/dense")
        entries = {
            "patches/prefix": joined([f"{inside}/vars/0", f"{inside}/vars/1"]),
            "patches/positions/table": f"{inside}/vars/2",
        }
    entries |= dense("patches/projection", f"{inside}/patch_embedding")
    entries |= layer_norm("final_norm", f"{encoder}/layer_norm")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{encoder}/encoder_layers/{numbered(block, i)}"
        entries |= attention(f"{ours}/attention", f"{theirs}/mha")
        entries |= layer_norm(f"{ours}/attention_norm", f"{theirs}/layer_norm_1")
        entries |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}/{mlp[0]}")
        entries |= dense(f"{ours}/feed_forward/output", f"{theirs}/{mlp[1]}")
        entries |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}/layer_norm_2")
    return entries | dense("logits", "task/layers/dense")
