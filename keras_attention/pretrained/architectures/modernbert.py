"""ModernBERT (Warner et al., 2024), which has rotary positions and mostly local attention.

Its feed-forward networks are gated, and its layers have no biases.
"""

from keras_attention import masks, positions
from keras_attention.pretrained.architectures import bert, llama
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS, GATES, read_bias
from keras_attention.pretrained.table_entries import dense, find_base, layer_norm, split_dense

MODEL_TYPES = ("modernbert",)
BASE = "model."
IRRELEVANT = (
    *("classifier_dropout", "deterministic_flash_attn", "embedding_dropout", "layer_norm_eps"),
    *("initializer_cutoff_factor", "reference_compile", "repad_logits_with_grad"),
    *("sparse_pred_ignore_index", "sparse_prediction", "position_embedding_type"),
)
HEADS = {name: builder for name, builder in bert.HEADS.items() if name != "ForPreTraining"}
IGNORED = (r"decoder\.weight",)
OTHER_HEADS = r"(head|decoder|classifier)\..*"
# {pooling of a text classifier: its entries in config.json}
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
    """Return a dict with a mask and a rotary position for each layer.

    Most layers have a window, so that a token attends only to near tokens.
    """
    window = masks.Window(config.whole("local_attention", 128) // 2 + 1)
    every = config.whole("global_attn_every_n_layers", 3)
    kinds = ["sliding_attention" if i % every else "full_attention" for i in range(num_layers)]
    bases = {
        "full_attention": config.number("global_rope_theta", 160_000.0),
        "sliding_attention": config.get("local_rope_theta", 10_000.0),
    }
    kinds = config.each_of("layer_types", bases, kinds)
    config.refuse("rope_scaling")
    rope = config.get("rope_parameters", {})
    if unknown := sorted(rope.keys() - bases.keys()):
        raise CheckpointError(f"{config.path} says rope_parameters with {unknown[0]!r:.60}.")
    length, rotations = config.whole("max_position_embeddings", 8192), {}
    for kind, base in bases.items():
        part = {"rope_theta": base, "rope_parameters": rope.get(kind)}
        part["max_position_embeddings"] = length
        rotations[kind] = llama.read_rotary(config.part(part))
    return {
        "layer_masks": [window if kind == "sliding_attention" else None for kind in kinds],
        "layer_positions": [positions.Rotary(**rotations[kind]) for kind in kinds],
    }


def head(config, builder, keywords, tensors):
    """Return the settings of the head, a dict.

    `Architecture.head` explains the arguments. All heads begin with the dense layer and the norm of
    the masked language model.
    """
    answers = bert.read_head(config, builder, keywords, None)
    activation = config.one_of("classifier_activation", ACTIVATIONS, "gelu")
    bias, logit_bias = config.flag("classifier_bias", False), config.flag("decoder_bias", True)
    pooling = config.one_of("classifier_pooling", {"cls": "first", "mean": "mean"}, "cls")
    if builder == "text_encoder":
        return {}
    keywords = {"transform_activation": activation, "transform_bias": bias}
    if builder == "text_classifier":
        return keywords | {"pooling": pooling}
    if builder == "masked_language_model":
        return keywords | {"logit_bias": logit_bias}
    return keywords | answers


def table(config, builder, keywords, tensors):
    base = find_base(BASE, tensors)
    entries = {"embedding/table/embeddings": f"{base}embeddings.tok_embeddings.weight"}
    entries |= layer_norm("embedding_norm", f"{base}embeddings.norm")
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}layers.{i}"
        fused, layers = f"{theirs}.attn.Wqkv.", ("query", "key", "value")
        entries |= split_dense(f"{ours}/attention", fused, layers)
        entries |= dense(f"{ours}/attention/attention_output", f"{theirs}.attn.Wo")
        fused, layers = f"{theirs}.mlp.Wi.", ("gate", "intermediate")
        entries |= split_dense(f"{ours}/feed_forward", fused, layers)
        entries |= dense(f"{ours}/feed_forward/output", f"{theirs}.mlp.Wo")
        entries |= layer_norm(f"{ours}/attention_norm", f"{theirs}.attn_norm")
        entries |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.mlp_norm")
    entries |= layer_norm("final_norm", f"{base}final_norm")
    entries |= dense("transform", "head.dense") | layer_norm("transform_norm", "head.norm")
    return entries | dense("logits", "classifier") | {"embedding/bias": "decoder.bias"}
