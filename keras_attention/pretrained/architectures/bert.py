"""BERT (Devlin et al., 2019), and MiniLM (Wang et al., 2020), which has the same structure."""

from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import dense, encoder_block, find_base, layer_norm

MODEL_TYPES = ("bert",)
BASE = "bert."
IRRELEVANT = ("classifier_dropout",)
HEADS = {
    "ForMaskedLM": "masked_language_model",
    "ForPreTraining": "masked_language_model",
    "ForSequenceClassification": "text_classifier",
    "ForTokenClassification": "sequence_labeler",
    "ForQuestionAnswering": "question_answerer",
    "Model": "text_encoder",
}
# Buffers of older versions, heads that only pretraining needs, and copies of other tensors.
IGNORED = (
    *(r".*position_ids", r"cls\.seq_relationship\..*"),
    *(r"(bert\.)?pooler\.dense\..*", r"cls\.predictions\.decoder\..*"),
)
# The names of a block's layers, in the order of `encoder_block`.
BLOCK = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)


def settings(config):
    return read_encoder(config) | {
        "max_length": config.whole("max_position_embeddings"),
        "num_segments": config.whole("type_vocab_size", 2),
    }


def read_encoder(config):
    """Return a dict with the settings that BERT and similar models name alike in config.json.

    `config` is a `Fields` with the content of config.json.
    """
    config.refuse("is_decoder", "add_cross_attention", "cross_attention_hidden_size")
    config.one_of("position_embedding_type", {"absolute": None}, "absolute")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("num_hidden_layers"),
        "num_heads": config.whole("num_attention_heads"),
        "hidden_dim": config.whole("hidden_size"),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of("hidden_act", ACTIVATIONS, "gelu"),
        "dropout": config.number("hidden_dropout_prob", 0.1),
        "attention_dropout": config.number("attention_probs_dropout_prob", 0.1),
        "epsilon": config.number("layer_norm_eps", 1e-12),
        "norm": "post",
        "position": "learned",
        "normalize_embeddings": True,
        "padding_id": config.token_id("pad_token_id", 0),
    }


def read_embedding_dim(config, keywords, default):
    """Return the width of the embeddings, or None if it equals the width of the model.

    `config` is a `Fields` with the content of config.json, and `keywords` are the settings of the
    model. `default` is the width if the setting is missing.
    """
    width = config.whole("embedding_size", default)
    return None if width == keywords["hidden_dim"] else width


def head(config, builder, keywords, tensors):
    return read_head(config, builder, keywords, "tanh")


def read_head(config, builder, keywords, pooler_activation):
    """Return a dict with the settings of the head for BERT and similar models.

    `config` is a `Fields`, the content of config.json, `builder` the name of a function in
    `ka.models`, and `keywords` the settings of the model without the head. `pooler_activation` is
    the activation of the layer before a text classifier's logits.
    """
    tied = config.flag("tie_word_embeddings", True)  # only matters for a masked language model
    if builder == "masked_language_model" and not tied:
        raise CheckpointError(
            f"{config.path} says tie_word_embeddings=False: expected true. The logits are inner "
            "products with the embeddings."
        )
    if builder == "text_classifier":
        return {"pooling": "first", "pooler_activation": pooler_activation}
    return read_answers(builder, keywords)


def read_answers(builder, keywords):
    """Return the settings of a question answerer's head, or {} for another `builder`.

    `builder` is the name of a function in `ka.models`, and `keywords` are the settings of the
    model.
    """
    if builder != "question_answerer":
        return {}
    return {"no_answer": True, "num_segments": keywords.get("num_segments")}


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = list_embeddings(base) | list_blocks(base, keywords["num_layers"])
    masked = "cls.predictions"
    transform = f"{masked}.transform.dense", f"{masked}.transform.LayerNorm", f"{masked}.bias"
    return entries | list_head(builder, transform, (f"{base}pooler.dense", "classifier"))


def list_embeddings(base):
    """Return {weight name: tensor name} for embeddings. `base` is the prefix of tensor names."""
    return layer_norm("embedding_norm", f"{base}embeddings.LayerNorm") | {
        "embedding/table/embeddings": f"{base}embeddings.word_embeddings.weight",
        "embedding/learned/table": f"{base}embeddings.position_embeddings.weight",
        "segments/table/embeddings": f"{base}embeddings.token_type_embeddings.weight",
    }


def list_blocks(base, num_layers):
    """Return {weight name: tensor name} for `num_layers` blocks.

    `base` is the prefix of tensor names.
    """
    entries = {}
    for i in range(num_layers):
        entries |= encoder_block(f"block_{i}", f"{base}encoder.layer.{i}", BLOCK)
    return entries


def list_head(builder, masked, classifier):
    """Return {weight name: tensor name} for the head, the layers after the last block.

    Args:
        builder: str, the name of a function in `ka.models`.
        masked: three names in the file for a masked language model: the transform, its
            normalization, and the bias of the token logits.
        classifier: two names in the file for a text classifier: the pooler and the logits.
    """
    if builder == "masked_language_model":
        entries = dense("transform", masked[0]) | layer_norm("transform_norm", masked[1])
        return entries | {"embedding/bias": masked[2]}
    if builder == "text_classifier":
        return dense("pooler", classifier[0]) | dense("logits", classifier[1])
    return dense("logits", "qa_outputs" if builder == "question_answerer" else "classifier")
