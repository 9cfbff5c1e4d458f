"""ELECTRA (Clark et al., 2020): BERT with narrow embeddings; its generator has the masked head."""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.weights import dense, find_base

MODEL_TYPES = ("electra",)
BASE = "electra."  # what names begin with below a head
IRRELEVANT = (
    *("classifier_dropout", "summary_activation", "summary_last_dropout", "summary_type"),
    *("summary_use_proj", "generator_size", "generator_hidden_size"),
)
# The discriminator, whose head is of use in training alone.
HEADS = bert.HEADS | {"ForPreTraining": "text_encoder"}
IGNORED = (r".*position_ids", r"generator_lm_head\.weight", r"discriminator_predictions\..*")


def settings(config):
    keywords = bert.read_encoder(config)
    narrow = config.whole("embedding_size", keywords["hidden_dim"])
    return keywords | {
        "max_length": config.whole("max_position_embeddings"),
        "num_segments": config.whole("type_vocab_size", 2),
        "embedding_dim": None if narrow == keywords["hidden_dim"] else narrow,
    }


def head(config, builder, keywords, tensors):
    return bert.read_head(config, builder, keywords, "gelu")


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    found = {
        "embedding/learned/table": f"{base}embeddings.position_embeddings.weight",
        "segments/table/embeddings": f"{base}embeddings.token_type_embeddings.weight",
    }
    found |= dense("embedding_projection", f"{base}embeddings_project")
    found |= bert.list_encoder(base, keywords["num_layers"])
    masked = "generator_predictions.dense", "generator_predictions.LayerNorm"
    masked = *masked, "generator_lm_head.bias"
    return found | bert.list_head(builder, masked, ("classifier.dense", "classifier.out_proj"))
