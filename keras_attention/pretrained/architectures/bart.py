"""BART (Lewis et al., 2020), and Marian (Junczys-Dowmunt et al., 2018), with other positions."""

from keras_attention import positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import (
    attention,
    feed_forward,
    find_base,
    layer_norm,
    rows_from,
)

MODEL_TYPES = ("bart", "marian")
IRRELEVANT = (
    *("activation_dropout", "classifier_dropout", "classif_dropout", "encoder_layerdrop"),
    *("decoder_layerdrop", "num_hidden_layers", "add_bias_logits", "init_std"),
    "force_bos_token_to_be_generated",
)
HEADS = {
    "ForConditionalGeneration": "encoder_decoder",
    "MTModel": "encoder_decoder",
    "BartModel": "encoder_decoder",  # its logits are inner products with the embeddings
}
BASE = "model."
IGNORED = (
    r"(model\.)?(en|de)coder\.embed_tokens\.weight",
    r"lm_head\.weight",
    r"(model\.)?(en|de)coder\.version",
    r"(model\.)?(en|de)coder\.embed_positions\.weights?",
)
ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")


def settings(config):
    kind = config.values["model_type"]
    config.refuse("normalize_before", "add_final_layer_norm")
    config.one_of("static_position_embeddings", {True: None, False: None}, kind == "marian")
    config.one_of("share_encoder_decoder_embeddings", {True: None}, True)
    keywords = read_sides(config)
    if kind == "marian":
        _check_equal(config, "decoder_vocab_size", keywords["vocabulary_size"])
    learned = kind == "bart"
    return keywords | {
        "structure": "bart",
        "dropout": config.number("dropout", 0.1),
        "position": "learned" if learned else positions.Sinusoidal("concatenated"),
        "max_length": config.whole("max_position_embeddings", 1024),
        "normalize_embeddings": learned and config.flag("normalize_embedding", True),
        "source_padding_id": config.token_id("pad_token_id", 1),
    }


def read_sides(config):
    """Return a dict with the settings that BART and Whisper name alike in config.json.

    `config` is a `Fields` with the content of config.json.
    """
    config.one_of("tie_word_embeddings", {True: None}, True)
    keywords = {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("encoder_layers"),
        "num_decoder_layers": config.layers("decoder_layers"),
        "num_heads": config.whole("encoder_attention_heads"),
        "hidden_dim": config.whole("d_model"),
        "intermediate_dim": config.whole("encoder_ffn_dim"),
        "activation": config.one_of("activation_function", ACTIVATIONS, "gelu"),
        "attention_dropout": config.number("attention_dropout", 0.0),
        "scale_embeddings": config.flag("scale_embedding", False),
        "target_padding_id": None,
    }
    _check_equal(config, "decoder_attention_heads", keywords["num_heads"])
    _check_equal(config, "decoder_ffn_dim", keywords["intermediate_dim"])
    return keywords


def _check_equal(config, name, value):
    if config.get(name, value) != value:
        raise CheckpointError(
            f"{config.path} says {name}={config.get(name)}: expected the encoder's {value}."
        )


def head(config, builder, keywords, tensors):
    return {"logit_bias": "final_logits_bias" in tensors}


def table(config, builder, keywords, tensors):
    model = find_base(BASE, tensors)
    entries = list_sides(keywords, model) | {
        "embedding/table/embeddings": f"{model}shared.weight",
        "decoder/embedding/bias": "final_logits_bias",
    }
    for side in ("encoder", "decoder"):
        vectors = rows_from(f"{model}{side}.embed_positions.weight", 2)
        entries[f"{side}/embedding/learned/table"] = vectors
        entries |= layer_norm(f"{side}/embedding_norm", f"{model}{side}.layernorm_embedding")
    return entries


def list_sides(keywords, model):
    """Return {weight name: tensor name} for all blocks of the encoder and the decoder.

    Args:
        keywords: dict, the arguments of the builder, such as `num_layers`.
        model: str, the prefix of tensor names.
    """
    entries, counts = {}, {"encoder": "num_layers", "decoder": "num_decoder_layers"}
    for side, name in counts.items():
        for i in range(keywords[name]):
            ours, theirs = f"{side}_block_{i}", f"{model}{side}.layers.{i}"
            for our, their in (("attention", "self_attn"), ("cross_attention", "encoder_attn")):
                entries |= attention(f"{ours}/{our}", f"{theirs}.{their}", ATTENTION)
                entries |= layer_norm(f"{ours}/{our}_norm", f"{theirs}.{their}_layer_norm")
            entries |= feed_forward(f"{ours}/feed_forward", theirs, ("fc1", "fc2"))
            entries |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.final_layer_norm")
    return entries
