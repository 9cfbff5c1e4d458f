"""DistilBERT (Sanh et al., 2019): BERT with half the layers and without segment embeddings."""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import encoder_block, find_base

MODEL_TYPES = ("distilbert",)
BASE = "distilbert."
IRRELEVANT = ("seq_classif_dropout", "qa_dropout", "tie_weights_", "sinusoidal_pos_embds")
HEADS = bert.HEADS
IGNORED = (r".*position_ids", r"vocab_projector\.weight")
BLOCK = (
    *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    *("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
)


def settings(config):
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("n_layers"),
        "num_heads": config.whole("n_heads"),
        "hidden_dim": config.whole("dim"),
        "intermediate_dim": config.whole("hidden_dim"),
        "activation": config.one_of("activation", ACTIVATIONS, "gelu"),
        "dropout": config.number("dropout", 0.1),
        "attention_dropout": config.number("attention_dropout", 0.1),
        "epsilon": 1e-12,
        "norm": "post",
        "position": "learned",
        "max_length": config.whole("max_position_embeddings"),
        "normalize_embeddings": True,
        "padding_id": config.token_id("pad_token_id", 0),
    }


def head(config, builder, keywords, tensors):
    return bert.read_head(config, builder, keywords, "relu")


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = bert.list_embeddings(base)
    for i in range(keywords["num_layers"]):
        entries |= encoder_block(f"block_{i}", f"{base}transformer.layer.{i}", BLOCK)
    masked = "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"
    return entries | bert.list_head(builder, masked, ("pre_classifier", "classifier"))
