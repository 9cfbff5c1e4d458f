"""Llama (Touvron et al., 2023), and Mistral, Qwen2, Qwen3 and SmolLM with the same structure."""

from keras_attention import masks, positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import GATES, read_bias
from keras_attention.pretrained.table_entries import attention, dense, feed_forward, rms_norm

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
IRRELEVANT = ("pad_token_id", "max_window_layers")
HEADS = {"ForCausalLM": "causal_language_model"}
# Buffers of older versions, and a kernel of the logits that is a copy of the embeddings.
IGNORED = (r".*\.rotary_emb\.inv_freq", r"lm_head\.weight")


def settings(config):
    kind = config.values["model_type"]
    keywords = read_sizes(config, ("hidden_act", "silu"))
    key_dim = 128 if kind == "qwen3" else keywords["hidden_dim"] // keywords["num_heads"]
    return keywords | {
        "key_dim": config.whole("head_dim", key_dim),
        "use_bias": read_bias(config),
        "qkv_bias": True if kind == "qwen2" else None,
        "qk_norm": "rms_norm" if kind == "qwen3" else None,
        "position": positions.Rotary(**read_rotary(config)),
        "layer_masks": read_windows(config, kind, keywords["num_layers"]),
        "tie_embeddings": config.flag("tie_word_embeddings", False),
    }


def read_sizes(config, activation):
    """Return the model settings that Llama and Gemma share.

    `config` is a `Fields` with the content of config.json. `activation` is a tuple: the name of the
    setting for the activation, and its default.
    """
    heads = config.whole("num_attention_heads")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_layers": config.layers("num_hidden_layers"),
        "num_heads": heads,
        "num_key_value_heads": config.whole("num_key_value_heads", heads),
        "hidden_dim": config.whole("hidden_size"),
        "intermediate_dim": config.whole("intermediate_size"),
        "activation": config.one_of(activation[0], GATES, activation[1]),
        "dropout": 0.0,
        "attention_dropout": config.number("attention_dropout", 0.0),
        "normalization": "rms_norm",
        "epsilon": config.number("rms_norm_eps", 1e-6),
        "padding_id": None,
    }


def read_rotary(config):
    """Return a dict with the arguments of `Rotary`, from older or newer settings in config.json."""
    old, base = config.get("rope_scaling"), config.number("rope_theta", 10000.0)
    rope = dict(config.get("rope_parameters") or old or {})
    base = rope.pop("rope_theta", base)
    kind = rope.pop("type", "default")  # the older name
    kind = rope.pop("rope_type", kind)
    rotary = {"max_wavelength": float(base), "scaling": None}
    longest = config.whole("max_position_embeddings", 2048)
    trained = config.whole("original_max_position_embeddings", longest)
    part = config.number("partial_rotary_factor", 1.0)
    if (part := rope.pop("partial_rotary_factor", part)) != 1.0:
        raise CheckpointError(f"{config.path} says partial_rotary_factor={part}: expected 1.0.")
    scalings = positions.scalings
    if kind == "linear":
        rotary["scaling"] = scalings.Linear(rope.pop("factor"))
    elif kind == "llama3":
        rotary["scaling"] = scalings.Llama3(
            rope.pop("factor"),
            rope.pop("original_max_position_embeddings", trained),
            rope.pop("low_freq_factor"),
            rope.pop("high_freq_factor"),
        )
    elif kind == "yarn":
        rotary["scaling"] = scalings.YaRN(
            rope.pop("factor"),
            rope.pop("original_max_position_embeddings", trained),
            rope.pop("beta_fast", 32),
            rope.pop("beta_slow", 1),
            rope.pop("attention_factor", None),
            rope.pop("truncate", True),
        )
    elif kind != "default":
        raise CheckpointError(
            f"{config.path} says rope_type={kind!r}: expected default, linear, llama3 or yarn."
        )
    if unread := {name for name, value in rope.items() if value is not None}:
        raise CheckpointError(
            f"{config.path}: {sorted(unread)[0]} of {kind} positions is not supported."
        )
    return rotary


def read_windows(config, kind, num_layers):
    """Return a list with the mask of each layer, or None if no layer has a window.

    A window limits attention to recent tokens. `config` is a `Fields` with the content of
    config.json, `kind` is its `model_type`, and `num_layers` the number of layers. A layer without
    a window has the mask None.
    """
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


def table(config, builder, keywords, tensors):
    entries = list_layers(keywords["num_layers"])
    for i in range(keywords["num_layers"]):
        ours, theirs = f"block_{i}", f"model.layers.{i}"
        queries, inside = f"{ours}/attention/structures", f"{theirs}.self_attn"
        entries |= rms_norm(f"{queries}/query_norm", f"{inside}.q_norm")
        entries |= rms_norm(f"{queries}/key_norm", f"{inside}.k_norm")
        entries |= rms_norm(f"{ours}/attention_norm", f"{theirs}.input_layernorm")
        entries |= rms_norm(f"{ours}/feed_forward_norm", f"{theirs}.post_attention_layernorm")
    return entries | rms_norm("final_norm", "model.norm") | dense("logits", "lm_head")


def list_layers(num_layers):
    """Return {weight name: tensor name} for the weights that Llama and Gemma name alike.

    `num_layers` is the number of blocks. The weights are the embedding, and in every block the
    projections of the attention and of the feed-forward network.
    """
    entries = {"embedding/table/embeddings": "model.embed_tokens.weight"}
    for i in range(num_layers):
        ours, theirs = f"block_{i}", f"model.layers.{i}"
        names = ("q_proj", "k_proj", "v_proj", "o_proj")
        entries |= attention(f"{ours}/attention", f"{theirs}.self_attn", names)
        names = ("gate_proj", "up_proj", "down_proj")
        entries |= feed_forward(f"{ours}/feed_forward", f"{theirs}.mlp", names)
    return entries
