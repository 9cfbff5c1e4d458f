"""The vision transformer (Dosovitskiy et al., 2021)."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import dense, encoder_block, find_base, layer_norm

MODEL_TYPES = ("vit",)
BASE = "vit."
IRRELEVANT = ("encoder_stride", "pooler_output_size", "pooler_act", "tie_word_embeddings")
HEADS = {"ForImageClassification": "vision_transformer", "Model": "image_encoder"}
IGNORED = (r".*pooler\..*", r"(vit\.)?embeddings\.mask_token")
ATTENTION = (
    *("attention.attention.query", "attention.attention.key", "attention.attention.value"),
    "attention.output.dense",
)
BLOCK = (*ATTENTION, "layernorm_before", "intermediate.dense", "output.dense", "layernorm_after")


def settings(config):
    return read_encoder(config) | {"intermediate_dim": config.whole("intermediate_size")}


def read_encoder(config):
    """Return a dict with the settings that ViT, DeiT and DINOv2 name alike in config.json.

    `config` is a `Fields` with the content of config.json.
    """
    return {
        "image_size": config.get("image_size", 224),
        "patch_size": config.get("patch_size", 16),
        "num_channels": config.whole("num_channels", 3),
        "num_layers": config.layers("num_hidden_layers"),
        "num_heads": config.whole("num_attention_heads"),
        "hidden_dim": config.whole("hidden_size"),
        "qkv_bias": None if config.flag("qkv_bias", True) else False,
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu"),
        "dropout": config.number("hidden_dropout_prob", 0.0),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.0),
        "epsilon": config.number("layer_norm_eps", 1e-12),
    }


def head(config, builder, keywords, tensors):
    return {"pooling": "cls"}


def table(config, builder, keywords, tensors):
    entries = list_encoder(BASE, keywords["num_layers"], tensors, BLOCK)
    return entries | dense("logits", "classifier")


def list_encoder(base, num_layers, tensors, block):
    """Return {weight name: tensor name} for all layers without the head.

    Args:
        base: str, prefix of the names in the file, which is dropped if no tensor has it.
        num_layers: int, the number of blocks.
        tensors: dict, the tensors of the file by name.
        block: the names of a block's layers in the file, in the order of `encoder_block`.
    """
    base = find_base(base, tensors)
    inside = f"{base}embeddings"
    entries = dense("patches/projection", f"{inside}.patch_embeddings.projection") | {
        "patches/prefix": f"{inside}.cls_token",
        "patches/positions/table": f"{inside}.position_embeddings",
    }
    for i in range(num_layers):
        entries |= encoder_block(f"block_{i}", f"{base}encoder.layer.{i}", block)
    return entries | layer_norm("final_norm", f"{base}layernorm")
