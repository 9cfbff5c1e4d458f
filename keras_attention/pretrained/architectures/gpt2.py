"""GPT-2 (Radford et al., 2019): one kernel for query, key and value, and none is transposed."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import as_is, find_base, layer_norm, part_of

MODEL_TYPES = ("gpt2",)
IRRELEVANT = (
    *("n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels"),
    *("summary_type", "summary_use_proj", "embd_pdrop", "reorder_and_upcast_attn", "pad_token_id"),
)
HEADS = {"LMHeadModel": "causal_language_model", "GPT2Model": "causal_language_model"}
IGNORED = (r".*\.attn\.(masked_)?bias", r"lm_head\.weight")


def settings(config):
    config.refuse("scale_attn_by_inverse_layer_idx", "add_cross_attention")
    config.one_of("scale_attn_weights", {True: None}, True)
    config.one_of("tie_word_embeddings", {True: None}, True)
    hidden = config.whole("n_embd")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("n_layer"),
        "num_heads": config.whole("n_head"),
        "hidden_dim": hidden,
        "intermediate_dim": config.whole("n_inner", 4 * hidden),
        "activation": config.one_of("activation_function", ACTIVATIONS, "gelu_new"),
        "dropout": config.number("resid_pdrop", 0.1),
        "attention_dropout": config.number("attn_pdrop", 0.1),
        "epsilon": config.number("layer_norm_epsilon", 1e-5),
        "position": "learned",
        "max_length": config.whole("n_positions"),
        "padding_id": None,
    }


def head(config, builder, keywords, tensors):
    return {}


def table(config, builder, keywords, tensors):
    base = find_base("transformer.", tensors)
    found = {
        "embedding/table/embeddings": f"{base}wte.weight",
        "embedding/learned/table": f"{base}wpe.weight",
    }
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}h.{i}"
        for k, name in enumerate(("query", "key", "value")):
            fused = f"{theirs}.attn.c_attn"
            found[f"{ours}/attention/{name}/kernel"] = part_of(
                f"{fused}.weight", k, 3, turn=False, axis=1
            )
            found[f"{ours}/attention/{name}/bias"] = part_of(f"{fused}.bias", k, 3)
        found |= _plain(f"{ours}/attention/attention_output", f"{theirs}.attn.c_proj")
        found |= layer_norm(f"{ours}/attention_norm", f"{theirs}.ln_1")
        found |= _plain(f"{ours}/feed_forward/intermediate", f"{theirs}.mlp.c_fc")
        found |= _plain(f"{ours}/feed_forward/output", f"{theirs}.mlp.c_proj")
        found |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.ln_2")
    return found | layer_norm("final_norm", f"{base}ln_f")


def _plain(ours, theirs):
    return {f"{ours}/kernel": as_is(f"{theirs}.weight"), f"{ours}/bias": f"{theirs}.bias"}
