"""BERT (Devlin et al., 2019), and MiniLM (Wang et al., 2020), which is built alike."""

from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, find_base, layer_norm, list_block

MODEL_TYPES = ("bert",)
BASE = "bert."  # what names begin with below a head
IRRELEVANT = ("classifier_dropout",)
HEADS = {
    "ForMaskedLM": "masked_language_model",
    "ForPreTraining": "masked_language_model",
    "ForSequenceClassification": "text_classifier",
    "ForTokenClassification": "sequence_labeler",
    "ForQuestionAnswering": "question_answerer",
    "Model": "text_encoder",
}
# Buffers of older versions, heads of training that no model here has, and what is stored twice.
IGNORED = (
    r".*position_ids",
    r"cls\.seq_relationship\..*",
    r"(bert\.)?pooler\.dense\..*",
    r"cls\.predictions\.decoder\..*",
)
# The names of a block's weights, in the order of `list_block`.
BLOCK = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)


def settings(config):
    """Keywords of an encoder, by `config.json`."""
    return read_encoder(config) | {
        "max_length": config.whole("max_position_embeddings"),
        "num_segments": config.whole("type_vocab_size", 2),
    }


def read_encoder(config):
    """Return the keywords that BERT's relatives name in the same words."""
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


def head(config, builder, keywords, tensors):
    """Keywords of the heads that are more than a linear layer."""
    return read_head(config, builder, keywords, "tanh")


def read_head(config, builder, keywords, pooler_activation):
    """The keywords of heads that BERT's relatives have, too: what is before a text's labels."""
    if builder == "masked_language_model" and not config.flag("tie_word_embeddings", True):
        raise CheckpointError(
            f"{config.path} says tie_word_embeddings=False: expected logits by the table of tokens."
        )
    config.get("tie_word_embeddings")  # of other heads it says nothing
    if builder == "text_classifier":
        return {"pooling": "first", "pooler_activation": pooler_activation}
    return read_answers(builder, keywords)


def read_answers(builder, keywords):
    """The keywords of a head of answers, which may say that there is none by the first token."""
    if builder != "question_answerer":
        return {}
    return {"no_answer": True, "num_segments": keywords.get("num_segments")}


def table(config, builder, keywords, tensors):
    """{weight: tensor} of a builder's model."""
    base = find_base(BASE, tensors)
    found = {
        "embedding/learned/table": f"{base}embeddings.position_embeddings.weight",
        "segments/table/embeddings": f"{base}embeddings.token_type_embeddings.weight",
    }
    found |= list_encoder(base, keywords["num_layers"])
    masked = "cls.predictions"
    transform = f"{masked}.transform.dense", f"{masked}.transform.LayerNorm", f"{masked}.bias"
    return found | list_head(builder, transform, (f"{base}pooler.dense", "classifier"))


def list_encoder(base, num_layers):
    """Return the tokens' table, the norm of the embeddings, and the blocks."""
    found = {"embedding/table/embeddings": f"{base}embeddings.word_embeddings.weight"}
    found |= layer_norm("embedding_norm", f"{base}embeddings.LayerNorm")
    for i in range(num_layers):
        found |= list_block(f"block_{i}", f"{base}encoder.layer.{i}", BLOCK)
    return found


def list_head(builder, masked, classifier):
    """Return the entries of the head of a builder.

    Args:
        masked: names of the transform, its norm, and the bias of the logits of tokens.
        classifier: names of the pooler and the logits of a classifier of texts.
    """
    if builder == "masked_language_model":
        found = dense("transform", masked[0]) | layer_norm("transform_norm", masked[1])
        return found | {"embedding/bias": masked[2]}
    if builder == "text_classifier":
        return dense("pooler", classifier[0]) | dense("logits", classifier[1])
    return dense("logits", "qa_outputs" if builder == "question_answerer" else "classifier")
