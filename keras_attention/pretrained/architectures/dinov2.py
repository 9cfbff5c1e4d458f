"""DINOv2 (Oquab et al., 2023): a vision transformer whose branches are scaled."""

from keras_attention.pretrained.architectures import vit
from keras_attention.pretrained.weights import dense, list_block

MODEL_TYPES = ("dinov2",)
BASE = "dinov2."  # what names begin with below a head
IRRELEVANT = (
    *vit.IRRELEVANT,
    *("apply_layernorm", "drop_path_rate", "out_features", "out_indices", "reshape_hidden_states"),
    *("stage_names", "use_mask_token"),
)
HEADS = {"ForImageClassification": "vision_transformer", "Model": "image_encoder"}
IGNORED = (r"(dinov2\.)?embeddings\.mask_token",)


def settings(config):
    config.refuse("use_swiglu_ffn")
    ratio, hidden = config.number("mlp_ratio", 4), config.whole("hidden_size")
    found = vit.read_encoder(config)
    return found | {
        "intermediate_dim": int(hidden * ratio),
        "layer_scale": float(config.number("layerscale_value", 1.0)),
        "epsilon": config.number("layer_norm_eps", 1e-6),
    }


def head(config, builder, keywords, tensors):
    return {"pooling": "cls_mean" if builder == "vision_transformer" else "cls"}


def table(config, builder, keywords, tensors):
    found = vit.list_embeddings(BASE, tensors)
    base = found.pop("base")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}encoder.layer.{i}"
        found |= list_block(ours, theirs, (*vit.ATTENTION, "norm1", "mlp.fc1", "mlp.fc2", "norm2"))
        for k, branch in enumerate(("attention", "feed_forward"), start=1):
            found[f"{ours}/{branch}_scale/scale"] = f"{theirs}.layer_scale{k}.lambda1"
    return found | dense("logits", "classifier")
