"""CLIP (Radford et al., 2021): a tower of images, and one of texts, each a model of its own."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, layer_norm, list_block

MODEL_TYPES = ("clip",)
IRRELEVANT = (
    *(
        "logit_scale_init_value",
        "projection_dim",
        "text_config",
        "text_config_dict",
        "tie_word_embeddings",
    ),
    *("vision_config", "vision_config_dict"),
)
HEADS = {"Model": ("image_encoder", "text_encoder")}
IGNORED = {
    "image_encoder": (r"text_.*", "logit_scale", r".*position_ids"),
    "text_encoder": (r"vision_model\..*", r"visual_.*", "logit_scale", r".*position_ids"),
}
BLOCK = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"),
    *("layer_norm1", "mlp.fc1", "mlp.fc2", "layer_norm2"),
)


def settings(config):
    """Nothing: what is to be built says `head`, which knows the tower."""
    return {}


def head(config, builder, keywords, tensors):
    images = builder == "image_encoder"
    tower = config.object(
        find_tower(config, "vision" if images else "text"),
        {},
        ("projection_dim", "tie_word_embeddings"),
    )
    found = {
        "num_layers": tower.layers("num_hidden_layers", 12),
        "num_heads": tower.whole("num_attention_heads", 12 if images else 8),
        "hidden_dim": tower.whole("hidden_size", 768 if images else 512),
        "intermediate_dim": tower.whole("intermediate_size", 3072 if images else 2048),
        "activation": tower.one_of("hidden_act", ACTIVATIONS, "quick_gelu"),
        "attention_dropout": tower.number("attention_dropout", 0.0),
        "dropout": tower.number("dropout", 0.0),
        "epsilon": tower.number("layer_norm_eps", 1e-5),
        "projection_dim": config.whole("projection_dim", 512),
        "unit_length": False,
    }
    if images:
        found |= {
            "image_size": tower.get("image_size", 224),
            "patch_size": tower.get("patch_size", 32),
            "num_channels": tower.whole("num_channels", 3),
            "normalize_embeddings": True,
            "patch_bias": False,
            "pooling": "cls",
        }
    else:
        size, end = tower.whole("vocab_size", 49408), tower.token_id("eos_token_id", 49407)
        found |= {
            "vocabulary_size": size,
            "max_length": tower.whole("max_position_embeddings", 77),
            "position": "learned",
            "mask": "causal",
            "pooling": "end",
            # the first files named a 2 that no text ends with; theirs end with the last id
            "end_token_id": size - 1 if end == 2 else end,
            "padding_id": None,  # nothing before the end sees what is behind it
        }
        tower.get("pad_token_id")
    tower.finish()
    return found


def find_tower(config, kind):
    """The setting with those of a tower: the first files have two, and the longer name counts."""
    name = f"{kind}_config_dict"
    return f"{kind}_config" if config.get(name) is None else name


def read_padding(config):
    """Return the id that fills texts up, of the content of config.json."""
    said = (config.get(find_tower(config, "text")) or config).get("pad_token_id", 1)
    return said if type(said) is int and said >= 0 else 1


def table(config, builder, keywords, tensors):
    images = builder == "image_encoder"
    base = "vision_model" if images else "text_model"
    inside = f"{base}.embeddings"
    if images:
        found = {
            "patches/prefix": f"{inside}.class_embedding",
            "patches/positions/table": f"{inside}.position_embedding.weight",
            "patches/projection/kernel": f"{inside}.patch_embedding.weight",
        }
        found |= layer_norm("embedding_norm", f"{base}.pre_layrnorm")
    else:
        found = {
            "embedding/table/embeddings": f"{inside}.token_embedding.weight",
            "embedding/learned/table": f"{inside}.position_embedding.weight",
        }
    for i in range(keywords["num_layers"]):
        found |= list_block(f"block_{i}", f"{base}.encoder.layers.{i}", BLOCK)
    last = "post_layernorm" if images else "final_layer_norm"
    found |= layer_norm("final_norm", f"{base}.{last}")
    return found | dense("projection", "visual_projection" if images else "text_projection", False)
