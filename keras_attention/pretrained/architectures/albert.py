"""ALBERT (Lan et al., 2020): narrow embeddings, and blocks that share weights."""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import dense, encoder_block, find_base

MODEL_TYPES = ("albert",)
BASE = "albert."
IRRELEVANT = (
    *("classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type"),
    *("num_memory_blocks", "layers_to_keep"),
)
HEADS = bert.HEADS
IGNORED = (
    *(r".*position_ids", r"(albert\.)?pooler\..*"),
    *(r"sop_classifier\..*", r"predictions\.decoder\..*"),
)
BLOCK = (
    *("attention.query", "attention.key", "attention.value", "attention.dense"),
    *("attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"),
)


def settings(config):
    config.one_of("inner_group_num", {1: 1}, 1)
    keywords = bert.settings(config)
    return keywords | {
        "num_blocks": config.whole("num_hidden_groups", 1),
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu_new"),
        "dropout": config.number("hidden_dropout_prob", 0.0),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.0),
        "embedding_dim": bert.read_embedding_dim(config, keywords, 128),
    }


head = bert.head


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = bert.list_embeddings(base)
    entries |= dense("embedding_projection", f"{base}encoder.embedding_hidden_mapping_in")
    for i in range(keywords["num_blocks"]):
        theirs = f"{base}encoder.albert_layer_groups.{i}.albert_layers.0"
        entries |= encoder_block(f"block_{i}", theirs, BLOCK)
    masked = "predictions.dense", "predictions.LayerNorm", "predictions.bias"
    return entries | bert.list_head(builder, masked, (f"{base}pooler", "classifier"))
