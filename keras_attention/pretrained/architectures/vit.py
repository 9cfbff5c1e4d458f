"""The vision transformer (Dosovitskiy et al., 2021)."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, find_base, layer_norm

MODEL_TYPES = ("vit",)
IRRELEVANT = ("encoder_stride", "pooler_output_size", "pooler_act")
HEADS = {"ForImageClassification": "vision_transformer"}
IGNORED = (r".*pooler\..*", r"(vit\.)?embeddings\.mask_token")


def settings(config):
    config.one_of("qkv_bias", {True: None}, True)
    return {
        "image_size": config.get("image_size", 224),
        "patch_size": config.get("patch_size", 16),
        "num_channels": config.whole("num_channels", 3),
        "num_layers": config.whole("num_hidden_layers"),
        "num_heads": config.whole("num_attention_heads"),
        "hidden_dim": config.whole("hidden_size"),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu"),
        "dropout": config.number("hidden_dropout_prob", 0.0),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.0),
        "epsilon": config.number("layer_norm_eps", 1e-12),
    }


def head(config, builder, keywords, tensors):
    return {"pooling": "cls"}


def table(config, builder, keywords, tensors):
    base = find_base("vit.", tensors)
    inside = f"{base}embeddings"
    found = {
        "patches/prefix": f"{inside}.cls_token",
        "patches/positions/table": f"{inside}.position_embeddings",
    }
    found |= dense("patches/projection", f"{inside}.patch_embeddings.projection")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}encoder.layer.{i}"
        for name in ("query", "key", "value"):
            found |= dense(f"{ours}/attention/{name}", f"{theirs}.attention.attention.{name}")
        found |= dense(f"{ours}/attention/attention_output", f"{theirs}.attention.output.dense")
        found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.layernorm_before")
        found |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}.intermediate.dense")
        found |= dense(f"{ours}/feed_forward/output", f"{theirs}.output.dense")
        found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.layernorm_after")
    found |= layer_norm("final_norm", f"{base}layernorm")
    return found | dense("logits", "classifier")
