"""KerasHub's text encoders: BERT, RoBERTa, XLM-R, DistilBERT, ELECTRA, ALBERT.

KerasHub's files do not store the constants of its code, such as BERT's approximate GELU, so this
module repeats them.
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

# {class of KerasHub: constants of its code}. "pooler" is the activation of a classifier's pooler.
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
NARROW = ("AlbertBackbone", "ElectraBackbone")  # classes with an embedding_dim
WITHOUT_SEGMENTS = ("DistilBertBackbone", "RobertaBackbone", "XLMRobertaBackbone")
IRRELEVANT = keras_hub.IRRELEVANT
HEAD = "task/layers/masked_lm_head"
# Poolers, masked heads that cannot be loaded, and the state of the optimizer.
IGNORED = (r"layers/dense(_1)?/vars/[01]", r"task/layers/masked_lm_head/.*", r"task/optimizer/.*")


def find_builder(config, tensors):
    """Return the name of the function in `ka.models` for the head that `task.json` describes.

    The name is `"text_encoder"` without a head. `config` is a `Fields` with the content of
    config.json, and `tensors` a dict of the tensors by name. The head of a masked language model is
    only supported for RoBERTa, where the head has the same activation and epsilon as the blocks.
    """
    kind, task = config.values["model_type"], config.object("task", {}).get("model_type", "")
    if task.endswith("TextClassifier"):
        return "text_classifier"
    is_roberta = kind in ("RobertaBackbone", "XLMRobertaBackbone")
    return "masked_language_model" if task.endswith("MaskedLM") and is_roberta else "text_encoder"


def settings(config):
    kind = config.values["model_type"]
    constants = CLASSES[kind]
    hidden = config.whole("hidden_dim")
    dropout = config.number("dropout", 0.1)
    keywords = {
        "vocabulary_size": config.whole("vocab_size" if kind == "ElectraBackbone" else
                                        "vocabulary_size"),
        "num_layers": config.layers("num_layers"),
        "num_heads": config.whole("num_heads"),
        "hidden_dim": hidden,
        "intermediate_dim": config.whole("intermediate_dim"),
        "activation": constants["activation"],
        "dropout": dropout,
        "attention_dropout": dropout,
        "epsilon": constants["epsilon"],
        "norm": "post",
        "position": "learned",
        "max_length": config.whole("max_sequence_length", 512),
        "normalize_embeddings": True,
        "padding_id": constants["padding_id"],
    }  # fmt: skip
    if kind not in WITHOUT_SEGMENTS:
        keywords["num_segments"] = config.whole("num_segments", 2)
    if kind in NARROW:
        narrow = config.whole("embedding_dim")
        keywords["embedding_dim"] = None if narrow == hidden else narrow
    if kind == "AlbertBackbone":
        if narrow == hidden:
            raise CheckpointError(
                f"{config.path} says embedding_dim={narrow}, the same as hidden_dim: expected "
                "another number, because KerasHub's ALBERT projects from one to the other."
            )
        config.one_of("num_inner_repetitions", {1: None}, 1)
        keywords["num_blocks"] = config.whole("num_groups", 1)
        if keywords["num_layers"] % keywords["num_blocks"]:
            raise CheckpointError(
                f"{config.path} says num_layers={keywords['num_layers']} and num_groups="
                f"{keywords['num_blocks']}: expected num_layers to be a multiple of num_groups."
            )
    return keywords


def head(config, builder, keywords, tensors):
    task = config.object("task", {}, keras_hub.IRRELEVANT)
    for name in ("num_classes", "dropout", "hidden_dim", "model_type"):
        task.get(name)  # the shapes of the tensors decide
    task.one_of("activation", {None: None, "linear": None}, "linear")
    task.finish()
    if builder == "text_classifier":
        pooler = CLASSES[config.values["model_type"]]["pooler"]
        return {"pooling": "first", "pooler_activation": pooler}
    return bert.read_answers(builder, keywords)


def table(config, builder, keywords, tensors):
    kind = config.values["model_type"]
    entries = layer_norm("embedding_norm", "layers/layer_normalization")
    if kind in WITHOUT_SEGMENTS:
        inside = "layers/token_and_position_embedding"
        entries["embedding/table/embeddings"] = f"{inside}/token_embedding/vars/0"
        entries["embedding/learned/table"] = f"{inside}/position_embedding/vars/0"
    else:
        entries["embedding/table/embeddings"] = "layers/reversible_embedding/vars/0"
        entries["embedding/learned/table"] = "layers/position_embedding/vars/0"
        entries["segments/table/embeddings"] = "layers/embedding/vars/0"
    for i in range(keywords.get("num_blocks", keywords["num_layers"])):
        entries |= transformer(f"block_{i}", f"layers/{numbered('transformer_encoder', i)}")
    projections = 0
    if keywords.get("embedding_dim") is not None:
        entries |= dense("embedding_projection", "layers/dense")
        projections = 1
    if builder == "masked_language_model":
        entries |= dense("transform", f"{HEAD}/intermediate_dense")
        entries |= layer_norm("transform_norm", f"{HEAD}/intermediate_layer_norm")
        return entries | {"embedding/bias": f"{HEAD}/vars/0"}
    pooler = f"layers/{numbered('dense', projections)}"
    if f"{pooler}/vars/0" in tensors:  # otherwise the pooler is in the task's file
        return entries | dense("pooler", pooler) | dense("logits", "task/layers/dense")
    return entries | dense("pooler", "task/layers/dense") | dense("logits", "task/layers/dense_1")
