"""RoBERTa (Liu et al., 2019), XLM-R and CamemBERT: places are counted behind the padding's id."""

import numpy as np

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.weights import Fold, find_base, rows_from

MODEL_TYPES = ("roberta", "xlm-roberta", "camembert")
BASE = "roberta."  # what names begin with below a head
IRRELEVANT = ("classifier_dropout",)
HEADS = bert.HEADS
IGNORED = (
    r".*position_ids",
    r".*\.token_type_ids",
    r"(roberta\.)?pooler\.dense\..*",
    r"lm_head\.decoder\..*",
)


def settings(config):
    keywords = bert.read_encoder(config)
    segments = config.whole("type_vocab_size", 1)
    places = config.whole("max_position_embeddings")
    return keywords | {
        "max_length": places - keywords["padding_id"] - 1,
        "num_segments": segments if segments > 1 else None,
    }


head = bert.head


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    first = keywords["padding_id"] + 1
    places = f"{base}embeddings.position_embeddings.weight"
    types = f"{base}embeddings.token_type_embeddings.weight"
    found = bert.list_encoder(base, keywords["num_layers"])
    if keywords["num_segments"] is None:  # one vector for all tokens: it goes into the places
        found["embedding/learned/table"] = Fold(
            (places, types),
            lambda table, one: np.asarray(table[first:], "float32") + one,
            invert=lambda value, table, one: [
                np.concatenate([table[:first], value - np.asarray(one, "float32")]),
                one,
            ],
        )
    else:
        found["embedding/learned/table"] = rows_from(places, first)
        found["segments/table/embeddings"] = types
    masked = "lm_head.dense", "lm_head.layer_norm", "lm_head.bias"
    return found | bert.list_head(builder, masked, ("classifier.dense", "classifier.out_proj"))
