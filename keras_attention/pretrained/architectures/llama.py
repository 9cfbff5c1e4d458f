"""Llama (Touvron et al., 2023) and those built like it: Mistral, Qwen2, Qwen3, SmolLM."""

from keras_attention import masks, positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import GATES, read_bias
from keras_attention.pretrained.weights import dense, rms_norm

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
IRRELEVANT = ("pad_token_id", "max_window_layers")
HEADS = {"ForCausalLM": "causal_language_model"}
# Buffers of older versions, and the matrix of logits where it is the table of tokens once more.
IGNORED = (r".*\.rotary_emb\.inv_freq", r"lm_head\.weight")


def settings(config):
    kind = config.values["model_type"]
    hidden, heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    num_layers = config.layers("num_hidden_layers")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": num_layers,
        "num_heads": heads,
        "num_key_value_heads": config.whole("num_key_value_heads", heads),
        "hidden_dim": hidden,
        "key_dim": config.whole("head_dim", 128 if kind == "qwen3" else hidden // heads),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of("hidden_act", GATES, "silu"),
        "dropout": 0.0,
        "attention_dropout": config.number("attention_dropout", 0.0),
        "normalization": "rms_norm",
        "epsilon": config.number("rms_norm_eps", 1e-6),
        "use_bias": read_bias(config),
        "qkv_bias": True if kind == "qwen2" else None,
        "qk_norm": "rms_norm" if kind == "qwen3" else None,
        "position": positions.Rotary(**read_rotary(config)),
        "layer_masks": read_windows(config, kind, num_layers),
        "tie_embeddings": config.flag("tie_word_embeddings", False),
        "padding_id": None,
    }


def read_rotary(config):
    """Keywords of `Rotary` from the settings of both generations of files."""
    old, base = config.get("rope_scaling"), config.number("rope_theta", 10000.0)
    said = dict(config.get("rope_parameters") or old or {})
    base = said.pop("rope_theta", base)
    kind = said.pop("type", "default")  # the older name
    kind = said.pop("rope_type", kind)
    rotary = {"max_wavelength": float(base), "scaling": None}
    longest = config.whole("max_position_embeddings", 2048)
    trained = config.whole("original_max_position_embeddings", longest)
    part = config.number("partial_rotary_factor", 1.0)
    if (part := said.pop("partial_rotary_factor", part)) != 1.0:
        raise CheckpointError(f"{config.path} says partial_rotary_factor={part}: expected 1.0.")
    scalings = positions.scalings
    if kind == "linear":
        rotary["scaling"] = scalings.Linear(said.pop("factor"))
    elif kind == "llama3":
        rotary["scaling"] = scalings.Llama3(
            said.pop("factor"),
            said.pop("original_max_position_embeddings", trained),
            said.pop("low_freq_factor"),
            said.pop("high_freq_factor"),
        )
    elif kind == "yarn":
        rotary["scaling"] = scalings.YaRN(
            said.pop("factor"),
            said.pop("original_max_position_embeddings", trained),
            said.pop("beta_fast", 32),
            said.pop("beta_slow", 1),
            said.pop("attention_factor", None),
            said.pop("truncate", True),
        )
    elif kind != "default":
        raise CheckpointError(
            f"{config.path} says rope_type={kind!r}: expected default, linear, llama3 or yarn."
        )
    if left := {name for name, value in said.items() if value is not None}:
        raise CheckpointError(f"{config.path}: {sorted(left)[0]} of {kind} positions is not known.")
    return rotary


def read_windows(config, kind, num_layers):
    """Return a mask for each layer, or None where all see everything before them."""
    window = config.whole("sliding_window", None)
    if kind in ("qwen2", "qwen3"):
        window = window if config.flag("use_sliding_window", False) else None
    if window is None:
        config.get("layer_types")
        return None
    first = 0
    if kind != "mistral" and config.get("layer_types") is None:
        first = config.whole("max_window_layers", num_layers)
    types = ["full_attention"] * first + ["sliding_attention"] * (num_layers - first)
    by_type = {"full_attention": None, "sliding_attention": masks.Window(window)}
    return [by_type[name] for name in config.each_of("layer_types", by_type, types)]


def head(config, builder, keywords, tensors):
    return {}


def table(config, builder, keywords, tensors):
    bias = keywords["use_bias"]
    found = {"embedding/table/embeddings": "model.embed_tokens.weight"}
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"model.layers.{i}"
        inside = f"{theirs}.self_attn"
        for name in ("query", "key", "value"):
            has_bias = bias if keywords["qkv_bias"] is None else keywords["qkv_bias"]
            found |= dense(f"{ours}/attention/{name}", f"{inside}.{name[0]}_proj", has_bias)
        found |= dense(f"{ours}/attention/attention_output", f"{inside}.o_proj", bias)
        if keywords["qk_norm"]:
            found |= rms_norm(f"{ours}/attention/structures/query_norm", f"{inside}.q_norm")
            found |= rms_norm(f"{ours}/attention/structures/key_norm", f"{inside}.k_norm")
        names = {"gate": "gate_proj", "intermediate": "up_proj", "output": "down_proj"}
        for our, their in names.items():
            found |= dense(f"{ours}/feed_forward/{our}", f"{theirs}.mlp.{their}", bias)
        found |= rms_norm(f"{ours}/attention_norm", f"{theirs}.input_layernorm")
        found |= rms_norm(f"{ours}/feed_forward_norm", f"{theirs}.post_attention_layernorm")
    found |= rms_norm("final_norm", "model.norm")
    return found | dense("logits", "lm_head", bias=False)
