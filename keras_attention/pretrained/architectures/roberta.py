"""RoBERTa (Liu et al., 2019), XLM-R and CamemBERT, whose table of positions starts later.

Position 0 is in row padding_id + 1 of the table.
"""

import numpy as np

from keras_attention.pretrained.architectures import bert
from keras_attention.pretrained.table_entries import Conversion, find_base, rows_from

MODEL_TYPES = ("roberta", "xlm-roberta", "camembert")
BASE = "roberta."
IRRELEVANT = ("classifier_dropout",)
HEADS = bert.HEADS
IGNORED = (
    *(r".*position_ids", r".*\.token_type_ids"),
    *(r"(roberta\.)?pooler\.dense\..*", r"lm_head\.decoder\..*"),
)


def settings(config):
    keywords = bert.read_encoder(config)
    segments = config.whole("type_vocab_size", 1)
    rows = config.whole("max_position_embeddings")
    return keywords | {
        "max_length": rows - keywords["padding_id"] - 1,
        "num_segments": segments if segments > 1 else None,
    }


head = bert.head


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = bert.list_embeddings(base) | bert.list_blocks(base, keywords["num_layers"])
    first, name = keywords["padding_id"] + 1, "embedding/learned/table"
    if keywords["num_segments"] is None:  # all tokens share one segment vector
        stored = entries[name], entries["segments/table/embeddings"]
        entries[name] = _add_segment(stored, first)
    else:
        entries[name] = rows_from(entries[name], first)
    masked = "lm_head.dense", "lm_head.layer_norm", "lm_head.bias"
    return entries | bert.list_head(builder, masked, ("classifier.dense", "classifier.out_proj"))


def _add_segment(names, first):
    """Return a `Conversion` that loads the position table from row `first`, plus a segment vector.

    There is only one segment vector, which all tokens have. `names` are the tensors of the position
    table and of the segment vector.
    """

    def invert(value, table, segment):
        value = value - np.asarray(segment, "float32")
        return [np.concatenate([table[:first], value]), segment]

    return Conversion(
        names,
        lambda table, segment: np.asarray(table[first:], "float32") + segment,
        invert=invert,
    )
