"""ALBERT (Lan et al., 2020): narrow embeddings, and one block for all layers."""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, find_base, layer_norm, list_block

MODEL_TYPES = ("albert",)
BASE = "albert."  # what names begin with below a head
IRRELEVANT = (
    *("classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type"),
    *("num_memory_blocks", "layers_to_keep"),
)
HEADS = bert.HEADS
IGNORED = (
    r".*position_ids",
    r"(albert\.)?pooler\..*",
    r"sop_classifier\..*",
    r"predictions\.decoder\..*",
)
BLOCK = (
    *("attention.query", "attention.key", "attention.value", "attention.dense"),
    *("attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"),
)


def settings(config):
    config.one_of("inner_group_num", {1: 1}, 1)
    keywords, narrow = bert.read_encoder(config), config.whole("embedding_size", 128)
    return keywords | {
        "num_blocks": config.whole("num_hidden_groups", 1),
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu_new"),
        "dropout": config.number("hidden_dropout_prob", 0.0),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.0),
        "max_length": config.whole("max_position_embeddings"),
        "num_segments": config.whole("type_vocab_size", 2),
        "embedding_dim": None if narrow == keywords["hidden_dim"] else narrow,
    }


head = bert.head


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    inside = f"{base}embeddings"
    found = {
        "embedding/table/embeddings": f"{inside}.word_embeddings.weight",
        "embedding/learned/table": f"{inside}.position_embeddings.weight",
        "segments/table/embeddings": f"{inside}.token_type_embeddings.weight",
    }
    found |= layer_norm("embedding_norm", f"{inside}.LayerNorm")
    found |= dense("embedding_projection", f"{base}encoder.embedding_hidden_mapping_in")
    for i in range(keywords["num_blocks"]):
        theirs = f"{base}encoder.albert_layer_groups.{i}.albert_layers.0"
        found |= list_block(f"block_{i}", theirs, BLOCK)
    masked = "predictions.dense", "predictions.LayerNorm", "predictions.bias"
    return found | bert.list_head(builder, masked, (f"{base}pooler", "classifier"))
