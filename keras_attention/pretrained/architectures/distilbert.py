"""DistilBERT (Sanh et al., 2019): half of BERT's layers, no segments."""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, find_base, layer_norm

MODEL_TYPES = ("distilbert",)
BASE = "distilbert."  # what names begin with below a head
IRRELEVANT = ("seq_classif_dropout", "qa_dropout", "tie_weights_", "sinusoidal_pos_embds")
HEADS = bert.HEADS
IGNORED = (r".*position_ids", r"vocab_projector\.weight")


def settings(config):
    hidden = config.whole("dim")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("n_layers"),
        "num_heads": config.whole("n_heads"),
        "hidden_dim": hidden,
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
    found = {
        "embedding/table/embeddings": f"{base}embeddings.word_embeddings.weight",
        "embedding/learned/table": f"{base}embeddings.position_embeddings.weight",
    }
    found |= layer_norm("embedding_norm", f"{base}embeddings.LayerNorm")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}transformer.layer.{i}"
        names = {"query": "q_lin", "key": "k_lin", "value": "v_lin", "attention_output": "out_lin"}
        for our, their in names.items():
            found |= dense(f"{ours}/attention/{our}", f"{theirs}.attention.{their}")
        found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.sa_layer_norm")
        found |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}.ffn.lin1")
        found |= dense(f"{ours}/feed_forward/output", f"{theirs}.ffn.lin2")
        found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.output_layer_norm")
    if builder == "masked_language_model":
        found |= dense("transform", "vocab_transform")
        found |= layer_norm("transform_norm", "vocab_layer_norm")
        return found | {"embedding/bias": "vocab_projector.bias"}
    if builder == "text_classifier":
        return found | dense("pooler", "pre_classifier") | dense("logits", "classifier")
    return found | bert.list_outputs(builder)
