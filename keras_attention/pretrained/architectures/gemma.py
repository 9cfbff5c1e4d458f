"""Gemma and Gemma 2 (2024), and the texts of Gemma 3 (2025).

Their embeddings are scaled, and norms are stored without their 1.
"""

import math

from keras_attention import masks, normalizers, positions
from keras_attention.pretrained.architectures import llama
from keras_attention.pretrained.config import GATES
from keras_attention.pretrained.weights import dense, joined, plus_one

MODEL_TYPES = ("gemma", "gemma2", "gemma3_text")
IRRELEVANT = ("pad_token_id", "_sliding_window_pattern")
HEADS = {"ForCausalLM": "causal_language_model"}
IGNORED = (r".*\.rotary_emb.*\.inv_freq", r"lm_head\.weight")
LOCAL_BASE = 10000.0  # of the rotations in a window, in older files


def settings(config):
    kind = config.values["model_type"]
    config.refuse("attention_bias", "use_bidirectional_attention")
    if kind != "gemma2":
        config.refuse("attn_logit_softcapping", "final_logit_softcapping")
    config.one_of("tie_word_embeddings", {True: None}, True)
    activation = "hidden_activation" if config.get("hidden_activation") else "hidden_act"
    heads, num_layers = config.whole("num_attention_heads"), config.layers("num_hidden_layers")
    found = {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": num_layers,
        "num_heads": heads,
        "num_key_value_heads": config.whole("num_key_value_heads", heads),
        "hidden_dim": config.whole("hidden_size"),
        "key_dim": config.whole("head_dim", 256),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of(activation, GATES, "gelu_pytorch_tanh"),
        "dropout": 0.0,
        "attention_dropout": config.number("attention_dropout", 0.0),
        "normalization": "rms_norm",
        "epsilon": config.number("rms_norm_eps", 1e-6),
        "use_bias": False,
        "scale_embeddings": True,
        "tie_embeddings": True,
        "padding_id": None,
    }
    if kind == "gemma":
        return found | {"position": positions.Rotary(**llama.read_rotary(config))}
    config.number("query_pre_attn_scalar", 256)
    if kind == "gemma2":
        return found | _read_second(config, num_layers)
    third = {"position": None, "norm": "sandwich", "qk_norm": "rms_norm"}
    return found | third | _read_layers(config, num_layers)


def _read_second(config, num_layers):
    """What Gemma 2 has: soft caps, norms after the branches, and every second layer a window."""
    window = config.whole("sliding_window", 4096)
    config.one_of("sliding_window_size", {window: None}, window)  # of some files, once more
    kinds = [KINDS[(i + 1) % 2] for i in range(num_layers)]
    kinds = config.each_of("layer_types", KINDS, kinds)
    cap = _read_soft_cap(config, "attn_logit_softcapping", 50.0)
    return {
        "norm": "sandwich",
        "position": positions.Rotary(**llama.read_rotary(config)),
        "layer_masks": [masks.Window(window) if kind == KINDS[1] else None for kind in kinds],
        "normalizer": normalizers.Softmax(soft_cap=cap),
        "logit_soft_cap": _read_soft_cap(config, "final_logit_softcapping", 30.0),
    }


def _read_soft_cap(config, name, default):
    """Return a number, or None: null is none, and only a setting that is missing is the default."""
    if name in config.values and config.get(name) is None:
        return None
    return float(config.number(name, default))


def _read_layers(config, num_layers):
    """Return a mask and a position for each layer: windows turn faster than layers that see all."""
    window = masks.Window(config.whole("sliding_window", 4096))
    every = config.whole("sliding_window_pattern", 6)
    kinds = ["full_attention" if (i + 1) % every == 0 else "sliding_attention"
             for i in range(num_layers)]  # fmt: skip
    rotations, said = config.get("rope_parameters"), config.values
    if isinstance(rotations, dict) and "full_attention" in rotations:
        parts = {kind: {"rope_parameters": rotations.get(kind)} for kind in rotations}
    else:
        base = config.number("rope_local_base_freq", LOCAL_BASE)
        names = ("rope_theta", "rope_scaling", "rope_parameters")
        parts = {
            "full_attention": {name: said[name] for name in names if name in said},
            "sliding_attention": {"rope_theta": base},
        }
        parts["full_attention"].setdefault("rope_theta", 1e6)
        config.seen |= {*names}
    kinds = config.each_of("layer_types", [kind for kind in KINDS if kind in parts], kinds)
    known = {kind: llama.read_rotary(config.part(values)) for kind, values in parts.items()}
    config.whole("max_position_embeddings", 131072)
    return {
        "layer_masks": [window if kind == "sliding_attention" else None for kind in kinds],
        "layer_positions": [positions.Rotary(**known[kind]) for kind in kinds],
    }


KINDS = ("full_attention", "sliding_attention")


def head(config, builder, keywords, tensors):
    return {}


def table(config, builder, keywords, tensors):
    scalar = config.number("query_pre_attn_scalar", 256)
    # ours are divided by the root of a head's size
    factor = math.sqrt(keywords["key_dim"] / scalar)
    found = {"embedding/table/embeddings": "model.embed_tokens.weight"}
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"model.layers.{i}"
        inside = f"{theirs}.self_attn"
        for name in ("query", "key", "value"):
            found |= dense(f"{ours}/attention/{name}", f"{inside}.{name[0]}_proj", bias=False)
        found |= dense(f"{ours}/attention/attention_output", f"{inside}.o_proj", bias=False)
        names = {"gate": "gate_proj", "intermediate": "up_proj", "output": "down_proj"}
        for our, their in names.items():
            found |= dense(f"{ours}/feed_forward/{our}", f"{theirs}.mlp.{their}", bias=False)
        norms = {"attention_norm": "input_layernorm"}
        if keywords.get("norm") == "sandwich":
            norms |= {
                "attention_post_norm": "post_attention_layernorm",
                "feed_forward_norm": "pre_feedforward_layernorm",
                "feed_forward_post_norm": "post_feedforward_layernorm",
            }
            if keywords.get("qk_norm"):
                structures = f"{ours}/attention/structures"
                query_norm = plus_one(f"{inside}.q_norm.weight", factor)
                found[f"{structures}/query_norm/scale"] = query_norm
                found[f"{structures}/key_norm/scale"] = plus_one(f"{inside}.k_norm.weight")
            else:
                query = joined([f"{inside}.q_proj.weight"], factor, axis=0)
                found[f"{ours}/attention/query/kernel"] = query
        else:
            norms["feed_forward_norm"] = "post_attention_layernorm"
        for our, their in norms.items():
            found[f"{ours}/{our}/scale"] = plus_one(f"{theirs}.{their}.weight")
    return found | {"final_norm/scale": plus_one("model.norm.weight")}
