"""BERT (Devlin et al., 2019) and MiniLM; RoBERTa and ELECTRA, with other names and heads."""

import numpy as np

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import Fold, dense, layer_norm, rows_from

MODEL_TYPES = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
IRRELEVANT = (
    *("classifier_dropout", "directionality", "layer_norm_type", "pooler_fc_size"),
    *("pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"),
    *("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"),
    *("embedding_dropout", "emb_layer_norm_before"),
)
ROBERTA = ("roberta", "xlm-roberta", "camembert")
HEADS = {
    "ForMaskedLM": "masked_language_model",
    "ForPreTraining": "masked_language_model",
    "ForSequenceClassification": "text_classifier",
    "ForTokenClassification": "sequence_labeler",
    "ForQuestionAnswering": "sequence_labeler",
    "Model": "text_encoder",
}
# Buffers of older versions, and heads of training that no model here has.
IGNORED = (
    r".*position_ids",
    r".*token_type_ids",
    r"cls\.seq_relationship\..*",
    r"(bert|roberta|electra)\.pooler\.dense\..*",
    r"pooler\.dense\..*",
    r"cls\.predictions\.decoder\..*",
    r"lm_head\.decoder\..*",
    r"generator_lm_head\.weight",
)


def settings(config):
    """Keywords of an encoder."""
    kind = config.values["model_type"]
    config.refuse("is_decoder", "add_cross_attention", "cross_attention_hidden_size")
    config.one_of("position_embedding_type", {"absolute": None}, "absolute")
    hidden = config.whole("hidden_size")
    places = config.whole("max_position_embeddings")
    padding = config.get("pad_token_id", 0)
    segments = config.whole("type_vocab_size", 2)
    offset = padding + 1 if kind in ROBERTA else 0
    narrow = config.whole("embedding_size", hidden) if kind == "electra" else hidden
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.whole("num_hidden_layers"),
        "num_heads": config.whole("num_attention_heads"),
        "hidden_dim": hidden,
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu"),
        "dropout": config.number("hidden_dropout_prob", 0.1),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.1),
        "epsilon": config.number("layer_norm_eps", 1e-12),
        "norm": "post",
        "position": "learned",
        "max_length": places - offset,
        "num_segments": segments if segments > 1 else None,
        "embedding_dim": None if narrow == hidden else narrow,
        "normalize_embeddings": True,
        "padding_id": padding,
    }


def head(config, builder, keywords, tensors):
    """Keywords of the heads that are more than a linear layer."""
    kind = config.values["model_type"]
    if builder == "text_classifier":
        pooler = "gelu" if kind == "electra" else "tanh"
        return {"pooling": "first", "pooler_activation": pooler}
    return {}


def table(config, builder, keywords, tensors):
    """{weight: tensor} of a builder's model."""
    kind = config.values["model_type"]
    base = {"electra": "electra."}.get(kind, "roberta." if kind in ROBERTA else "bert.")
    base = base if any(name.startswith(base) for name in tensors) else ""
    inside = f"{base}embeddings."
    offset = keywords["padding_id"] + 1 if kind in ROBERTA else 0
    places = rows_from(f"{inside}position_embeddings.weight", offset)
    types = f"{inside}token_type_embeddings.weight"
    found = {"embedding/table/embeddings": f"{inside}word_embeddings.weight"}
    if keywords["num_segments"] is None and types in tensors:  # one segment: all tokens have it
        names = (*places.names, types)
        places = Fold(names, lambda table, one: np.asarray(table[offset:], "float32") + one)
    else:
        found["segments/table/embeddings"] = types
    found["embedding/learned/table"] = places
    found |= layer_norm("embedding_norm", f"{inside}LayerNorm")
    found |= dense("embedding_projection", f"{base}embeddings_project")
    for i in range(keywords["num_layers"]):
        found |= _block(f"block_{i}", f"{base}encoder.layer.{i}")
    return found | _head(kind, builder, base, tensors)


def _block(ours, theirs):
    found = {}
    for name in ("query", "key", "value"):
        found |= dense(f"{ours}/attention/{name}", f"{theirs}.attention.self.{name}")
    found |= dense(f"{ours}/attention/attention_output", f"{theirs}.attention.output.dense")
    found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.attention.output.LayerNorm")
    found |= dense(f"{ours}/feed_forward/intermediate", f"{theirs}.intermediate.dense")
    found |= dense(f"{ours}/feed_forward/output", f"{theirs}.output.dense")
    return found | layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.output.LayerNorm")


def _head(kind, builder, base, tensors):
    if builder == "masked_language_model":
        if kind in ROBERTA:
            found = dense("transform", "lm_head.dense")
            found |= layer_norm("transform_norm", "lm_head.layer_norm")
            return found | {"embedding/bias": "lm_head.bias"}
        if kind == "electra":
            found = dense("transform", "generator_predictions.dense")
            found |= layer_norm("transform_norm", "generator_predictions.LayerNorm")
            return found | {"embedding/bias": "generator_lm_head.bias"}
        found = dense("transform", "cls.predictions.transform.dense")
        found |= layer_norm("transform_norm", "cls.predictions.transform.LayerNorm")
        return found | {"embedding/bias": "cls.predictions.bias"}
    if builder == "text_classifier":
        if kind in (*ROBERTA, "electra"):
            return dense("pooler", "classifier.dense") | dense("logits", "classifier.out_proj")
        return dense("pooler", f"{base}pooler.dense") | dense("logits", "classifier")
    is_answer = "qa_outputs.weight" in tensors
    return dense("logits", "qa_outputs" if is_answer else "classifier")
