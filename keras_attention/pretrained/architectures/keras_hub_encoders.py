"""KerasHub's encoders of texts: BERT, RoBERTa, XLM-R, DistilBERT, ELECTRA, ALBERT.

What KerasHub has in its code and not in its files, such as BERT's approximated GELU, is here too:
a preset computes what it computes there.
"""

from keras_attention.pretrained import keras_hub
from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.architectures.keras_hub_layers import (
    dense,
    layer_norm,
    numbered,
    transformer,
)
from keras_attention.pretrained.checkpoint import CheckpointError

# {class: what its code says}; "pooler" is that of a classifier
BERT = {"activation": "gelu_tanh", "epsilon": 1e-12, "padding_id": 0, "pooler": "tanh"}
ROBERTA = {"activation": "gelu", "epsilon": 1e-5, "padding_id": 1, "pooler": "tanh"}
CLASSES = {
    "BertBackbone": BERT,
    "AlbertBackbone": BERT,
    "ElectraBackbone": BERT,
    "RobertaBackbone": ROBERTA,
    "XLMRobertaBackbone": ROBERTA,
    "DistilBertBackbone": BERT | {"activation": "gelu", "pooler": "relu"},
}
MODEL_TYPES = tuple(CLASSES)
NARROW = ("AlbertBackbone", "ElectraBackbone")  # those with an embedding_dim
WITHOUT_SEGMENTS = ("DistilBertBackbone", "RobertaBackbone", "XLMRobertaBackbone")
IRRELEVANT = keras_hub.IRRELEVANT
HEAD = "task/layers/masked_lm_head"
# Poolers, heads that no model here has, and what training left.
IGNORED = (r"layers/dense(_1)?/vars/[01]", r"task/layers/masked_lm_head/.*", r"task/optimizer/.*")


def find_builder(config, tensors):
    """Return the builder for the head of `task.json`.

    The head for masked tokens has an activation and an epsilon of its own, which in RoBERTa are
    those of its blocks; that of others is left out.
    """
    kind, task = config.values["model_type"], config.object("task", {}).get("model_type", "")
    if task.endswith("TextClassifier"):
        return "text_classifier"
    same = kind in ("RobertaBackbone", "XLMRobertaBackbone")
    return "masked_language_model" if task.endswith("MaskedLM") and same else "text_encoder"


def settings(config):
    kind = config.values["model_type"]
    of_class = CLASSES[kind]
    hidden = config.whole("hidden_dim")
    dropout = config.number("dropout", 0.1)
    found = {
        "vocabulary_size": config.whole("vocab_size" if kind == "ElectraBackbone" else
                                        "vocabulary_size"),
        "num_layers": config.layers("num_layers"),
        "num_heads": config.whole("num_heads"),
        "hidden_dim": hidden,
        "intermediate_dim": config.whole("intermediate_dim"),
        "activation": of_class["activation"],
        "dropout": dropout,
        "attention_dropout": dropout,
        "epsilon": of_class["epsilon"],
        "norm": "post",
        "position": "learned",
        "max_length": config.whole("max_sequence_length", 512),
        "normalize_embeddings": True,
        "padding_id": of_class["padding_id"],
    }  # fmt: skip
    if kind not in WITHOUT_SEGMENTS:
        found["num_segments"] = config.whole("num_segments", 2)
    if kind in NARROW:
        narrow = config.whole("embedding_dim")
        found["embedding_dim"] = None if narrow == hidden else narrow
    if kind == "AlbertBackbone":
        if narrow == hidden:
            raise CheckpointError(
                f"{config.path} says embedding_dim={narrow}, as hidden_dim: expected another, for "
                "KerasHub's ALBERT has a projection between them."
            )
        config.one_of("num_inner_repetitions", {1: None}, 1)
        found["num_blocks"] = config.whole("num_groups", 1)
        if found["num_layers"] % found["num_blocks"]:
            raise CheckpointError(
                f"{config.path} says num_layers={found['num_layers']} and num_groups="
                f"{found['num_blocks']}: expected a multiple."
            )
    return found


def head(config, builder, keywords, tensors):
    task = config.object("task", {}, keras_hub.IRRELEVANT)
    for name in ("num_classes", "dropout", "hidden_dim", "model_type"):
        task.get(name)  # shapes say what counts
    task.one_of("activation", {None: None, "linear": None}, "linear")
    task.finish()
    if builder == "text_classifier":
        pooler = CLASSES[config.values["model_type"]]["pooler"]
        return {"pooling": "first", "pooler_activation": pooler}
    return bert.read_answers(builder, keywords)


def table(config, builder, keywords, tensors):
    kind = config.values["model_type"]
    found = layer_norm("embedding_norm", "layers/layer_normalization")
    if kind in WITHOUT_SEGMENTS:
        inside = "layers/token_and_position_embedding"
        found["embedding/table/embeddings"] = f"{inside}/token_embedding/vars/0"
        found["embedding/learned/table"] = f"{inside}/position_embedding/vars/0"
    else:
        found["embedding/table/embeddings"] = "layers/reversible_embedding/vars/0"
        found["embedding/learned/table"] = "layers/position_embedding/vars/0"
        found["segments/table/embeddings"] = "layers/embedding/vars/0"
    for i in range(keywords.get("num_blocks", keywords["num_layers"])):
        found |= transformer(f"block_{i}", f"layers/{numbered('transformer_encoder', i)}")
    projections = 0
    if keywords.get("embedding_dim") is not None:
        found |= dense("embedding_projection", "layers/dense")
        projections = 1
    if builder == "masked_language_model":
        found |= dense("transform", f"{HEAD}/intermediate_dense")
        found |= layer_norm("transform_norm", f"{HEAD}/intermediate_layer_norm")
        return found | {"embedding/bias": f"{HEAD}/vars/0"}
    of_backbone = f"layers/{numbered('dense', projections)}"
    if f"{of_backbone}/vars/0" in tensors:  # the pooler is the backbone's, or the head's
        return found | dense("pooler", of_backbone) | dense("logits", "task/layers/dense")
    return found | dense("pooler", "task/layers/dense") | dense("logits", "task/layers/dense_1")
