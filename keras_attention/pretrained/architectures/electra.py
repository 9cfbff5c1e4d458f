"""ELECTRA (Clark et al., 2020): BERT with narrow embeddings.

Only the files of generators have a masked language modeling head.
"""

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.table_entries import dense, find_base

MODEL_TYPES = ("electra",)
BASE = "electra."
IRRELEVANT = (
    *("classifier_dropout", "summary_activation", "summary_last_dropout", "summary_type"),
    *("summary_use_proj", "generator_size", "generator_hidden_size"),
)
# The head of the discriminator is only for pretraining, so its files load as encoders.
HEADS = bert.HEADS | {"ForPreTraining": "text_encoder"}
IGNORED = (r".*position_ids", r"generator_lm_head\.weight", r"discriminator_predictions\..*")


def settings(config):
    keywords = bert.settings(config)
    width = bert.read_embedding_dim(config, keywords, keywords["hidden_dim"])
    return keywords | {"embedding_dim": width}


def head(config, builder, keywords, tensors):
    return bert.read_head(config, builder, keywords, "gelu")


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = bert.list_embeddings(base) | bert.list_blocks(base, keywords["num_layers"])
    entries |= dense("embedding_projection", f"{base}embeddings_project")
    masked = "generator_predictions.dense", "generator_predictions.LayerNorm"
    masked = *masked, "generator_lm_head.bias"
    return entries | bert.list_head(builder, masked, ("classifier.dense", "classifier.out_proj"))
