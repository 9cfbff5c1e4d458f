"""GPT-2 (Radford et al., 2019): query, key and value in one kernel, stored as (inputs, outputs)."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.table_entries import (
    find_base,
    layer_norm,
    split_dense,
    untransposed,
)

MODEL_TYPES = ("gpt2",)
IRRELEVANT = (
    *("n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels"),
    *("summary_type", "summary_use_proj", "embd_pdrop", "reorder_and_upcast_attn", "pad_token_id"),
)
HEADS = {"LMHeadModel": "causal_language_model", "GPT2Model": "causal_language_model"}
IGNORED = (r".*\.attn\.(masked_)?bias", r"lm_head\.weight")
# {layer of our block: layer in the file}, except the fused query, key and value
LAYERS = {
    "attention/attention_output": "attn.c_proj",
    "feed_forward/intermediate": "mlp.c_fc",
    "feed_forward/output": "mlp.c_proj",
}


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


def table(config, builder, keywords, tensors):
    base = find_base("transformer.", tensors)
    entries = layer_norm("final_norm", f"{base}ln_f") | {
        "embedding/table/embeddings": f"{base}wte.weight",
        "embedding/learned/table": f"{base}wpe.weight",
    }
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"{base}h.{i}"
        fused, layers = f"{theirs}.attn.c_attn.", ("query", "key", "value")
        entries |= split_dense(f"{ours}/attention", fused, layers, transpose=False)
        for our, their in LAYERS.items():
            entries[f"{ours}/{our}/kernel"] = untransposed(f"{theirs}.{their}.weight")
            entries[f"{ours}/{our}/bias"] = f"{theirs}.{their}.bias"
        entries |= layer_norm(f"{ours}/attention_norm", f"{theirs}.ln_1")
        entries |= layer_norm(f"{ours}/feed_forward_norm", f"{theirs}.ln_2")
    return entries
