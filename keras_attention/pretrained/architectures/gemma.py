"""Gemma and Gemma 2 (2024), and the text models of Gemma 3 (2025).

Embeddings are scaled, and files store the scale of an RMS normalization minus 1.
"""

import math

from keras_attention import masks, normalizers, positions
from keras_attention.pretrained.architectures import llama
from keras_attention.pretrained.table_entries import joined, plus_one

MODEL_TYPES = ("gemma", "gemma2", "gemma3_text")
IRRELEVANT = ("pad_token_id", "_sliding_window_pattern")
HEADS = {"ForCausalLM": "causal_language_model"}
IGNORED = (r".*\.rotary_emb.*\.inv_freq", r"lm_head\.weight")
LOCAL_BASE = 10000.0  # rotary base of layers with a window, if the file does not say
KINDS = ("full_attention", "sliding_attention")


def settings(config):
    kind = config.values["model_type"]
    config.refuse("attention_bias", "use_bidirectional_attention")
    if kind != "gemma2":
        config.refuse("attn_logit_softcapping", "final_logit_softcapping")
    config.one_of("tie_word_embeddings", {True: None}, True)
    name = "hidden_activation" if config.get("hidden_activation") else "hidden_act"
    keywords = llama.read_sizes(config, (name, "gelu_pytorch_tanh")) | {
        "key_dim": config.whole("head_dim", 256),
        "use_bias": False,
        "scale_embeddings": True,
        "tie_embeddings": True,
    }
    if kind == "gemma":
        return keywords | {"position": positions.Rotary(**llama.read_rotary(config))}
    config.number("query_pre_attn_scalar", 256)
    keywords["norm"] = "sandwich"
    if kind == "gemma2":
        return keywords | _read_gemma2(config, keywords["num_layers"])
    keywords |= {"position": None, "qk_norm": "rms_norm"}
    return keywords | _read_gemma3(config, keywords["num_layers"])


def _read_gemma2(config, num_layers):
    """Return the settings that only Gemma 2 has: soft caps, and windows in every second layer.

    A soft cap limits logits by tanh. A window limits attention to recent tokens.
    """
    window = config.whole("sliding_window", 4096)
    config.one_of("sliding_window_size", {window: None}, window)  # a second name in some files
    kinds = [KINDS[(i + 1) % 2] for i in range(num_layers)]
    kinds = config.each_of("layer_types", KINDS, kinds)
    cap = _read_soft_cap(config, "attn_logit_softcapping", 50.0)
    return {
        "position": positions.Rotary(**llama.read_rotary(config)),
        "layer_masks": [masks.Window(window) if kind == KINDS[1] else None for kind in kinds],
        "normalizer": normalizers.Softmax(soft_cap=cap),
        "logit_soft_cap": _read_soft_cap(config, "final_logit_softcapping", 30.0),
    }


def _read_soft_cap(config, name, default):
    """Return the soft cap `name` of config.json, None if it is null, `default` if it is missing."""
    if name in config.values and config.get(name) is None:
        return None
    return float(config.number(name, default))


def _read_gemma3(config, num_layers):
    """Return the settings that only Gemma 3 has: a mask and a rotary position for each layer.

    Layers with a window have a smaller rotary base.
    """
    window = masks.Window(config.whole("sliding_window", 4096))
    every = config.whole("sliding_window_pattern", 6)
    kinds = [KINDS[0] if (i + 1) % every == 0 else KINDS[1] for i in range(num_layers)]
    rotations, values = config.get("rope_parameters"), config.values
    if isinstance(rotations, dict) and KINDS[0] in rotations:
        parts = {kind: {"rope_parameters": rotations.get(kind)} for kind in rotations}
    else:
        base = config.number("rope_local_base_freq", LOCAL_BASE)
        names = ("rope_theta", "rope_scaling", "rope_parameters")
        full = {"rope_theta": 1e6} | {name: values[name] for name in names if name in values}
        parts = {KINDS[0]: full, KINDS[1]: {"rope_theta": base}}
        config.seen |= {*names}
    kinds = config.each_of("layer_types", [kind for kind in KINDS if kind in parts], kinds)
    rotary = {kind: llama.read_rotary(config.part(values)) for kind, values in parts.items()}
    config.whole("max_position_embeddings", 131072)
    return {
        "layer_masks": [window if kind == KINDS[1] else None for kind in kinds],
        "layer_positions": [positions.Rotary(**rotary[kind]) for kind in kinds],
    }


def table(config, builder, keywords, tensors):
    scalar = config.number("query_pre_attn_scalar", 256)
    # Our layers divide scores by sqrt(key_dim), not sqrt(scalar), so the query is multiplied.
    factor = math.sqrt(keywords["key_dim"] / scalar)
    norms = {"attention_norm": "input_layernorm"}
    if keywords.get("norm") == "sandwich":
        norms |= {
            "attention_post_norm": "post_attention_layernorm",
            "feed_forward_norm": "pre_feedforward_layernorm",
            "feed_forward_post_norm": "post_feedforward_layernorm",
        }
    else:
        norms["feed_forward_norm"] = "post_attention_layernorm"
    entries = llama.list_layers(keywords["num_layers"])
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"model.layers.{i}"
        queries, inside = f"{ours}/attention/structures", f"{theirs}.self_attn"
        if keywords.get("qk_norm"):
            entries[f"{queries}/query_norm/scale"] = plus_one(f"{inside}.q_norm.weight", factor)
            entries[f"{queries}/key_norm/scale"] = plus_one(f"{inside}.k_norm.weight")
        elif keywords.get("norm") == "sandwich":
            query = joined([f"{inside}.q_proj.weight"], factor, axis=0)
            entries[f"{ours}/attention/query/kernel"] = query
        for our, their in norms.items():
            entries[f"{ours}/{our}/scale"] = plus_one(f"{theirs}.{their}.weight")
    return entries | {"final_norm/scale": plus_one("model.norm.weight")}
