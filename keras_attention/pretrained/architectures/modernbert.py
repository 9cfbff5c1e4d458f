"""ModernBERT (Warner et al., 2024): rotations, gates, windows in most layers, and no biases."""

from keras_attention import masks, positions
from keras_attention.pretrained.architectures import bert, llama
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS, GATES, read_bias
from keras_attention.pretrained.weights import dense, find_base, layer_norm, part_of

MODEL_TYPES = ("modernbert",)
BASE = "model."  # what names begin with below a head
IRRELEVANT = (
    *("classifier_dropout", "deterministic_flash_attn", "embedding_dropout", "layer_norm_eps"),
    *("initializer_cutoff_factor", "reference_compile", "repad_logits_with_grad"),
    *("sparse_pred_ignore_index", "sparse_prediction", "position_embedding_type"),
)
HEADS = {
    "ForMaskedLM": "masked_language_model",
    "ForSequenceClassification": "text_classifier",
    "ForTokenClassification": "sequence_labeler",
    "ForQuestionAnswering": "question_answerer",
    "Model": "text_encoder",
}
IGNORED = (r"decoder\.weight",)
OTHER_HEADS = r"(head|decoder|classifier)\..*"
# How a classifier's vector of a text is made, and what config.json says of it.
POOLINGS = {"first": {"classifier_pooling": "cls"}, "mean": {"classifier_pooling": "mean"}}


def settings(config):
    num_layers = config.layers("num_hidden_layers")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": num_layers,
        "num_heads": config.whole("num_attention_heads"),
        "hidden_dim": config.whole("hidden_size"),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of("hidden_activation", GATES, "gelu"),
        "dropout": config.number("mlp_dropout", 0.0),
        "attention_dropout": config.number("attention_dropout", 0.0),
        "norm": "pre",
        "first_norm": False,
        "normalization": "layer_norm" if config.flag("norm_bias", False) else "layer_norm_no_bias",
        "epsilon": config.number("norm_eps", 1e-5),
        "use_bias": read_bias(config),
        "position": None,
        "normalize_embeddings": True,
        "padding_id": config.token_id("pad_token_id", 50283),
    } | _read_layers(config, num_layers)


def _read_layers(config, num_layers):
    """A mask and a position for each layer: all sees every layer of a few, the others a window."""
    window = masks.Window(config.whole("local_attention", 128) // 2 + 1)
    every = config.whole("global_attn_every_n_layers", 3)
    kinds = ["sliding_attention" if i % every else "full_attention" for i in range(num_layers)]
    bases = {
        "full_attention": config.number("global_rope_theta", 160_000.0),
        "sliding_attention": config.get("local_rope_theta", 10_000.0),
    }
    kinds = config.each_of("layer_types", bases, kinds)
    config.refuse("rope_scaling")
    said = config.get("rope_parameters", {})
    if unknown := sorted(said.keys() - bases.keys()):
        raise CheckpointError(f"{config.path} says rope_parameters with {unknown[0]!r:.60}.")
    length, rotations = config.whole("max_position_embeddings", 8192), {}
    for kind, base in bases.items():
        part = {"rope_theta": base, "rope_parameters": said.get(kind)}
        part["max_position_embeddings"] = length
        rotations[kind] = llama.read_rotary(config.part(part))
    return {
        "layer_masks": [window if kind == "sliding_attention" else None for kind in kinds],
        "layer_positions": [positions.Rotary(**rotations[kind]) for kind in kinds],
    }


def head(config, builder, keywords, tensors):
    """Keywords of the heads, which keep the transform that precedes the masked model's logits."""
    config.get("tie_word_embeddings")
    activation = config.one_of("classifier_activation", ACTIVATIONS, "gelu")
    bias, logit_bias = config.flag("classifier_bias", False), config.flag("decoder_bias", True)
    pooling = config.one_of("classifier_pooling", {"cls": "first", "mean": "mean"}, "cls")
    if builder == "text_encoder":
        return {}
    found = {"transform_activation": activation, "transform_bias": bias}
    if builder == "text_classifier":
        return found | {"pooling": pooling}
    if builder in ("sequence_labeler", "question_answerer"):
        return found | bert.read_answers(builder, keywords)
    if not config.flag("tie_word_embeddings", True):
        raise CheckpointError(
            f"{config.path} says tie_word_embeddings=False: expected logits by the table of tokens."
        )
    return found | {"logit_bias": logit_bias}


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    bias = keywords["use_bias"]
    found = {"embedding/table/embeddings": f"{base}embeddings.tok_embeddings.weight"}
    found |= layer_norm("embedding_norm", f"{base}embeddings.norm")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}layers.{i}"
        for place, name in enumerate(("query", "key", "value")):
            found |= _part(f"{ours}/attention/{name}", f"{theirs}.attn.Wqkv", place, 3)
        found |= dense(f"{ours}/attention/attention_output", f"{theirs}.attn.Wo", bias)
        for place, name in enumerate(("gate", "intermediate")):
            found |= _part(f"{ours}/feed_forward/{name}", f"{theirs}.mlp.Wi", place, 2)
        found |= dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.Wo", bias)
        found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.attn_norm")
        found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.mlp_norm")
    found |= layer_norm("final_norm", f"{base}final_norm")
    found |= dense("transform", "head.dense") | layer_norm("transform_norm", "head.norm")
    return found | dense("logits", "classifier") | {"embedding/bias": "decoder.bias"}


def _part(ours, theirs, place, parts):
    """Return the entries of one of several linear layers that the file has as one."""
    return {
        f"{ours}/kernel": part_of(f"{theirs}.weight", place, parts),
        f"{ours}/bias": part_of(f"{theirs}.bias", place, parts),
    }
