"""SigLIP (Zhai et al., 2023): a tower of images, and one of texts, each a model of its own."""

from keras_attention.pretrained.architectures.clip import BLOCK
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, find_base, layer_norm, list_block, part_of

# Files of SigLIP 2 for one size of images say "siglip", too.
ALONE = ("siglip_vision_model", "siglip_text_model")  # files of one tower
MODEL_TYPES = ("siglip", *ALONE)
IRRELEVANT = ("text_config", "tie_word_embeddings", "vision_config")
HEADS = {
    "Model": ("image_encoder", "text_encoder"),
    "VisionModel": "image_encoder",
    "TextModel": "text_encoder",
    "ForImageClassification": "vision_transformer",
}
OF_BOTH = ("logit_scale", "logit_bias", r".*position_ids", r"classifier\..*")
IGNORED = {
    "image_encoder": (r"text_model\..*", *OF_BOTH),
    "text_encoder": (r"vision_model\..*", *OF_BOTH),
    "vision_transformer": (r"text_model\..*", r"(vision_model\.)?head\..*", *OF_BOTH),
}
OTHER_HEADS = r"(text_model|classifier)\..*|logit_(scale|bias)"  # beside new labels of images
TOWERS = {"image_encoder": "vision", "vision_transformer": "vision", "text_encoder": "text"}


def settings(config):
    """Nothing: what is to be built says `head`, which knows the tower."""
    return {}


def head(config, builder, keywords, tensors):
    is_alone = config.values["model_type"] in ALONE
    tower = (
        config
        if is_alone
        else config.object(f"{TOWERS[builder]}_config", {}, ("tie_word_embeddings",))
    )
    width = tower.whole("hidden_size", 768)
    found = {
        "num_layers": tower.layers("num_hidden_layers", 12),
        "num_heads": tower.whole("num_attention_heads", 12),
        "hidden_dim": width,
        "intermediate_dim": tower.whole("intermediate_size", 3072),
        "activation": tower.one_of("hidden_act", ACTIVATIONS, "gelu_pytorch_tanh"),
        "attention_dropout": tower.number("attention_dropout", 0.0),
        "dropout": tower.number("dropout", 0.0),
        "epsilon": tower.number("layer_norm_eps", 1e-6),
    }
    if builder == "text_encoder":
        found |= {
            "vocabulary_size": tower.whole("vocab_size", 32000),
            "max_length": tower.whole("max_position_embeddings", 64),
            "position": "learned",
            "pooling": "last",
            "projection_dim": tower.whole("projection_size", width),
            "projection_bias": True,
            "unit_length": False,
            "padding_id": None,  # it is read like a token: texts are filled up to `max_length`
        }
        tower.get("pad_token_id")
    else:
        pooling = "map" if tower.flag("vision_use_head", True) else None
        found |= {
            "image_size": tower.get("image_size", 224),
            "patch_size": tower.get("patch_size", 16),
            "num_channels": tower.whole("num_channels", 3),
            "pooling": "mean" if builder == "vision_transformer" else pooling,
        }
    tower.finish()
    return found


def read_padding(config):
    """Return the id that fills texts up, of the content of config.json."""
    said = (config.get("text_config") or config).get("pad_token_id", 1)
    return said if type(said) is int and said >= 0 else 1


def table(config, builder, keywords, tensors):
    kind = TOWERS[builder]
    base = find_base(f"{kind}_model.", tensors)
    inside = f"{base}embeddings"
    if kind == "vision":
        found = {"patches/positions/table": f"{inside}.position_embedding.weight"}
        found |= dense("patches/projection", f"{inside}.patch_embedding")
        found |= layer_norm("final_norm", f"{base}post_layernorm")
        found |= _list_pooling(f"{base}head") | dense("logits", "classifier")
    else:
        found = {
            "embedding/table/embeddings": f"{inside}.token_embedding.weight",
            "embedding/learned/table": f"{inside}.position_embedding.weight",
        }
        found |= layer_norm("final_norm", f"{base}final_layer_norm")
        found |= dense("projection", f"{base}head")
    for i in range(keywords["num_layers"]):
        found |= list_block(f"block_{i}", f"{base}encoder.layers.{i}", BLOCK)
    return found


def _list_pooling(theirs):
    """Those of the learned query, its attention, and the feed-forward network behind it."""
    found = {"pooling/query": f"{theirs}.probe"}
    for place, name in enumerate(("query", "key", "value")):
        inside = f"{theirs}.attention.in_proj"
        found[f"pooling/attention/{name}/kernel"] = part_of(f"{inside}_weight", place, 3)
        found[f"pooling/attention/{name}/bias"] = part_of(f"{inside}_bias", place, 3)
    found |= dense("pooling/attention/attention_output", f"{theirs}.attention.out_proj")
    found |= layer_norm("pooling/norm", f"{theirs}.layernorm")
    found |= dense("pooling/feed_forward/intermediate", f"{theirs}.mlp.fc1")
    return found | dense("pooling/feed_forward/output", f"{theirs}.mlp.fc2")
