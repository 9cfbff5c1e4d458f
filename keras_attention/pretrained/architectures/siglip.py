"""SigLIP (Zhai et al., 2023): its image encoder and text encoder (towers), as separate models."""

from keras_attention.pretrained.architectures import clip
from keras_attention.pretrained.table_entries import (
    dense,
    encoder_block,
    feed_forward,
    find_base,
    layer_norm,
    split_dense,
)

# Files of SigLIP 2 with a fixed image size also have the type "siglip".
SINGLE_TOWERS = ("siglip_vision_model", "siglip_text_model")
MODEL_TYPES = ("siglip", *SINGLE_TOWERS)
IRRELEVANT = ("text_config", "tie_word_embeddings", "vision_config")
HEADS = {
    "Model": ("image_encoder", "text_encoder"),
    "VisionModel": "image_encoder",
    "TextModel": "text_encoder",
    "ForImageClassification": "vision_transformer",
}
SHARED = ("logit_scale", "logit_bias", r".*position_ids", r"classifier\..*")
IGNORED = {
    "image_encoder": (r"text_model\..*", *SHARED),
    "text_encoder": (r"vision_model\..*", *SHARED),
    "vision_transformer": (r"text_model\..*", r"(vision_model\.)?head\..*", *SHARED),
}
OTHER_HEADS = r"(text_model|classifier)\..*|logit_(scale|bias)"
TOWERS = {"image_encoder": "vision", "vision_transformer": "vision", "text_encoder": "text"}
BASE_SIZES = {"num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}


def head(config, builder, keywords, tensors):
    tower = config
    if config.values["model_type"] not in SINGLE_TOWERS:
        tower = config.object(f"{TOWERS[builder]}_config", {}, ("tie_word_embeddings",))
    keywords = clip.read_tower(tower, "gelu_pytorch_tanh", 1e-6, BASE_SIZES)
    if builder == "text_encoder":
        keywords |= clip.read_texts(tower, tower.whole("vocab_size", 32000), 64) | {
            "pooling": "last",
            "projection_dim": tower.whole("projection_size", keywords["hidden_dim"]),
            "projection_bias": True,
            "unit_length": False,
        }
    else:
        pooling = "map" if tower.flag("vision_use_head", True) else None
        pooling = "mean" if builder == "vision_transformer" else pooling
        keywords |= clip.read_images(tower, patch_size=16) | {"pooling": pooling}
    tower.finish()
    return keywords


def read_padding(config):
    """Return the padding id of the text encoder from the content of config.json, 1 by default."""
    return clip.read_padding(config)


def table(config, builder, keywords, tensors):
    kind = TOWERS[builder]
    base = find_base(f"{kind}_model.", tensors)
    inside = f"{base}embeddings"
    if kind == "vision":
        entries = {"patches/positions/table": f"{inside}.position_embedding.weight"}
        entries |= dense("patches/projection", f"{inside}.patch_embedding")
        entries |= layer_norm("final_norm", f"{base}post_layernorm")
        entries |= _list_pooling(f"{base}head") | dense("logits", "classifier")
    else:
        entries = clip.list_text_embeddings(inside)
        entries |= layer_norm("final_norm", f"{base}final_layer_norm")
        entries |= dense("projection", f"{base}head")
    for i in range(keywords["num_layers"]):
        entries |= encoder_block(f"block_{i}", f"{base}encoder.layers.{i}", clip.BLOCK)
    return entries


def _list_pooling(theirs):
    """Return {weight name: tensor name} for attention pooling. `theirs` is its prefix."""
    layers = ("query", "key", "value")
    return (
        {"pooling/query": f"{theirs}.probe"}
        | split_dense("pooling/attention", f"{theirs}.attention.in_proj_", layers)
        | dense("pooling/attention/attention_output", f"{theirs}.attention.out_proj")
        | layer_norm("pooling/norm", f"{theirs}.layernorm")
        | feed_forward("pooling/feed_forward", f"{theirs}.mlp", ("fc1", "fc2"))
    )
