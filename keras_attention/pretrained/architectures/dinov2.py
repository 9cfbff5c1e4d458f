"""DINOv2 (Oquab et al., 2023): a vision transformer with layer scale."""

from keras_attention.pretrained.architectures import vit
from keras_attention.pretrained.table_entries import dense

MODEL_TYPES = ("dinov2",)
BASE = "dinov2."
IRRELEVANT = (
    *vit.IRRELEVANT,
    *("apply_layernorm", "drop_path_rate", "out_features", "out_indices", "reshape_hidden_states"),
    *("stage_names", "use_mask_token"),
)
HEADS = {"ForImageClassification": "vision_transformer", "Model": "image_encoder"}
IGNORED = (r"(dinov2\.)?embeddings\.mask_token",)
BLOCK = (*vit.ATTENTION, "norm1", "mlp.fc1", "mlp.fc2", "norm2")


def settings(config):
    config.refuse("use_swiglu_ffn")
    keywords = vit.read_encoder(config)
    return keywords | {
        "intermediate_dim": int(keywords["hidden_dim"] * config.number("mlp_ratio", 4)),
        "layer_scale": float(config.number("layerscale_value", 1.0)),
        "epsilon": config.number("layer_norm_eps", 1e-6),
    }


def head(config, builder, keywords, tensors):
    return {"pooling": "cls_mean" if builder == "vision_transformer" else "cls"}


def table(config, builder, keywords, tensors):
    entries = vit.list_encoder(BASE, keywords["num_layers"], tensors, BLOCK)
    base = entries["patches/prefix"].removesuffix("embeddings.cls_token")
    for i in range(keywords["num_layers"]):
        for k, branch in enumerate(("attention", "feed_forward"), start=1):
            scale = f"{base}encoder.layer.{i}.layer_scale{k}.lambda1"
            entries[f"block_{i}/{branch}_scale/scale"] = scale
    return entries | dense("logits", "classifier")
