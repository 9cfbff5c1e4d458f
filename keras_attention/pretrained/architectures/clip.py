"""CLIP (Radford et al., 2021): its image encoder and text encoder (towers), as separate models."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import dense, encoder_block, layer_norm

MODEL_TYPES = ("clip",)
IRRELEVANT = (
    *("logit_scale_init_value", "projection_dim", "text_config", "text_config_dict"),
    *("tie_word_embeddings", "vision_config", "vision_config_dict"),
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
IMAGES = {"num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
TEXTS = {"num_heads": 8, "hidden_dim": 512, "intermediate_dim": 2048}


def head(config, builder, keywords, tensors):
    images = builder == "image_encoder"
    name = _find_tower(config, "vision" if images else "text")
    tower = config.object(name, {}, ("projection_dim", "tie_word_embeddings"))
    keywords = read_tower(tower, "quick_gelu", 1e-5, IMAGES if images else TEXTS) | {
        "projection_dim": config.whole("projection_dim", 512),
        "unit_length": False,
    }
    if images:
        keywords |= read_images(tower, patch_size=32) | {
            "normalize_embeddings": True,
            "patch_bias": False,
            "pooling": "cls",
        }
    else:
        size, end = tower.whole("vocab_size", 49408), tower.token_id("eos_token_id", 49407)
        keywords |= read_texts(tower, size, 77) | {
            "mask": "causal",
            "pooling": "end",
            # The first files say 2, but their text ends with the last id of the vocabulary.
            "end_token_id": size - 1 if end == 2 else end,
        }
    tower.finish()
    return keywords


def read_tower(tower, activation, epsilon, sizes):
    """Return a dict, the settings that the encoders (towers) of CLIP and SigLIP share.

    `tower` is a `Fields` with the settings of the image or the text encoder. `activation`,
    `epsilon` and the dict `sizes` are defaults for missing settings.
    """
    return {
        "num_layers": tower.layers("num_hidden_layers", 12),
        "num_heads": tower.whole("num_attention_heads", sizes["num_heads"]),
        "hidden_dim": tower.whole("hidden_size", sizes["hidden_dim"]),
        "intermediate_dim": tower.whole("intermediate_size", sizes["intermediate_dim"]),
        "activation": tower.one_of("hidden_act", ACTIVATIONS, activation),
        "attention_dropout": tower.number("attention_dropout", 0.0),
        "dropout": tower.number("dropout", 0.0),
        "epsilon": tower.number("layer_norm_eps", epsilon),
    }


def read_images(tower, patch_size):
    """Return a dict with the image size, patch size and number of channels of an image encoder.

    `tower` is a `Fields` with its settings, and `patch_size` the default for a missing setting.
    """
    return {
        "image_size": tower.get("image_size", 224),
        "patch_size": tower.get("patch_size", patch_size),
        "num_channels": tower.whole("num_channels", 3),
    }


def read_texts(tower, vocabulary_size, max_length):
    """Return a dict with the settings of the input of a text encoder, which attends to padding.

    `tower` is a `Fields` with its settings. `vocabulary_size` and `max_length` are the defaults for
    missing settings.
    """
    tower.get("pad_token_id")  # only the tokenizer needs it, see `read_padding`
    return {
        "vocabulary_size": vocabulary_size,
        "max_length": tower.whole("max_position_embeddings", max_length),
        "position": "learned",
        "padding_id": None,
    }


def _find_tower(config, kind):
    """Return the key under which config.json holds the settings of one tower.

    `kind` is `"vision"` or `"text"`. Early files have a second key, which ends with `_dict` and
    takes precedence.
    """
    name = f"{kind}_config_dict"
    return f"{kind}_config" if config.get(name) is None else name


def read_padding(config):
    """Return the padding id of the text encoder from the content of config.json, 1 by default."""
    padding = (config.get(_find_tower(config, "text")) or config).get("pad_token_id", 1)
    return padding if type(padding) is int and padding >= 0 else 1


def table(config, builder, keywords, tensors):
    images = builder == "image_encoder"
    base = "vision_model" if images else "text_model"
    inside = f"{base}.embeddings"
    if images:
        entries = {
            "patches/prefix": f"{inside}.class_embedding",
            "patches/positions/table": f"{inside}.position_embedding.weight",
            "patches/projection/kernel": f"{inside}.patch_embedding.weight",
        }
        entries |= layer_norm("embedding_norm", f"{base}.pre_layrnorm")
    else:
        entries = list_text_embeddings(inside)
    for i in range(keywords["num_layers"]):
        entries |= encoder_block(f"block_{i}", f"{base}.encoder.layers.{i}", BLOCK)
    last = "post_layernorm" if images else "final_layer_norm"
    entries |= layer_norm("final_norm", f"{base}.{last}")
    return entries | dense("projection", "visual_projection" if images else "text_projection")


def list_text_embeddings(theirs):
    """Return {weight name: tensor name} for embeddings of text.

    `theirs` is the prefix of the tensor names.
    """
    return {
        "embedding/table/embeddings": f"{theirs}.token_embedding.weight",
        "embedding/learned/table": f"{theirs}.position_embedding.weight",
    }
