"""KerasHub's decoders: GPT-2, Llama 2 and 3, Mistral, Qwen2 and Qwen3, Gemma and Gemma 2."""

from keras_attention import masks, normalizers, positions
from keras_attention.pretrained import keras_hub
from keras_attention.pretrained.architectures.keras_hub_layers import (
    attention,
    dense,
    layer_norm,
    numbered,
    rms_norm,
    transformer,
)
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.table_entries import Conversion, plus_one, untransposed

# {class of KerasHub: prefix of the names of its layers}
LAYERS = {
    "LlamaBackbone": "llama",
    "Llama3Backbone": "llama",
    "MistralBackbone": "mistral",
    "QwenBackbone": "qwen",
    "Qwen3Backbone": "qwen3",
}
SLIDES = "use_sliding_window_attention"
MODEL_TYPES = (*LAYERS, "GPT2Backbone", "GemmaBackbone")
IRRELEVANT = keras_hub.IRRELEVANT
IGNORED = (r"task/optimizer/.*",)


def find_builder(config, tensors):
    return "causal_language_model"


def settings(config):
    kind = config.values["model_type"]
    dropout = config.number("dropout", 0.0)
    keywords = {
        "vocabulary_size": config.whole("vocabulary_size"),
        "num_layers": config.layers("num_layers"),
        "hidden_dim": config.whole("hidden_dim"),
        "dropout": dropout,
        "attention_dropout": dropout,
        "padding_id": None,
    }
    if kind == "GPT2Backbone":
        return keywords | {
            "num_heads": config.whole("num_heads"),
            "intermediate_dim": config.whole("intermediate_dim"),
            "activation": "gelu_tanh",
            "epsilon": 1e-5,
            "position": "learned",
            "max_length": config.whole("max_sequence_length", 1024),
        }
    heads = config.whole("num_query_heads")
    keywords |= {
        "num_heads": heads,
        "num_key_value_heads": config.whole("num_key_value_heads", heads),
        "key_dim": config.whole("head_dim", keywords["hidden_dim"] // heads or 1),
        "normalization": "rms_norm",
        "epsilon": config.number("layer_norm_epsilon", 1e-6),
        "use_bias": False,
    }
    return keywords | (
        _read_gemma(config) if kind == "GemmaBackbone" else _read_llama(config, kind)
    )


def _read_gemma(config):
    """Return the settings of Gemma 1 or 2. KerasHub's intermediate_dim is twice the real width."""
    after = config.flag("use_post_ffw_norm", False)
    if config.flag("use_post_attention_norm", False) != after:
        raise CheckpointError(
            f"{config.path} says use_post_ffw_norm={after} and use_post_attention_norm={not after}:"
            " expected both, or neither."
        )
    # KerasHub's blocks ignore this setting and always scale by the head size.
    config.flag("query_head_dim_normalize", True)
    # KerasHub applies this setting only to the last normalization. All others use 1e-6.
    config.one_of("layer_norm_epsilon", {1e-6: None}, 1e-6)
    window, slides = config.whole("sliding_window_size", 4096), config.flag(SLIDES, False)
    cap, last_cap = (
        None if config.get(name) is None else float(config.number(name))
        for name in ("attention_logit_soft_cap", "final_logit_soft_cap")
    )
    num_layers = config.layers("num_layers")
    every_second = [None if i % 2 else masks.Window(window) for i in range(num_layers)]
    return {
        "intermediate_dim": config.whole("intermediate_dim") // 2 or 1,
        "activation": "geglu_tanh",
        "position": positions.Rotary(max_wavelength=10000.0),
        "scale_embeddings": True,
        "tie_embeddings": True,
        "norm": "sandwich" if after else "pre",
        "layer_masks": every_second if slides else None,
        "normalizer": normalizers.Softmax(soft_cap=cap),
        "logit_soft_cap": last_cap,
    }


def _read_llama(config, kind):
    """Return the settings of Llama and of models with the same structure."""
    config.get("tie_word_embeddings")  # the tensors decide
    window = config.whole(
        "sliding_window" if kind == "MistralBackbone" else "sliding_window_size", None
    )
    if kind == "QwenBackbone" and not config.flag(SLIDES, False):
        window = None
    # KerasHub's Qwen3 has a fixed epsilon in the normalization of queries and keys.
    norms = {"qk_norm": "rms_norm", "qk_norm_epsilon": 1e-5} if kind == "Qwen3Backbone" else {}
    return norms | {
        "intermediate_dim": config.whole("intermediate_dim"),
        "activation": "swiglu",
        "position": _read_rotary(config),
        "mask": None if window is None else masks.Window(window),
        "qkv_bias": True if kind == "QwenBackbone" else None,
    }


def _read_rotary(config):
    """Return the `Rotary` position that config.json describes."""
    # KerasHub's Llama ignores this setting, as if it were 1.
    config.one_of("rope_position_scaling_factor", {1.0: None}, 1.0)
    factor = config.number("rope_scaling_factor", 1.0)
    scalings = positions.scalings
    scaling = None if factor == 1 else scalings.Linear(factor)
    if config.get("rope_frequency_adjustment_factor") is not None:
        scaling = scalings.Llama3(
            config.number("rope_frequency_adjustment_factor"),
            config.whole("rope_pretraining_sequence_length"),
            config.number("rope_low_freq_factor"),
            config.number("rope_high_freq_factor"),
        )
    wavelength = float(config.number("rope_max_wavelength", 10000))
    return positions.Rotary(max_wavelength=wavelength, scaling=scaling)


def head(config, builder, keywords, tensors):
    task = config.object("task", {}, (*keras_hub.IRRELEVANT, "model_type"))
    task.finish()
    if config.values["model_type"] in LAYERS:
        return {"tie_embeddings": "layers/reversible_embedding/vars/1" not in tensors}
    return {}


def table(config, builder, keywords, tensors):
    kind = config.values["model_type"]
    entries = {"embedding/table/embeddings": "layers/reversible_embedding/vars/0"}
    if kind == "GPT2Backbone":
        name, list_block = "transformer_decoder", transformer
        entries["embedding/learned/table"] = "layers/position_embedding/vars/0"
        entries |= layer_norm("final_norm", "layers/layer_normalization")
    elif kind == "GemmaBackbone":
        name, list_block = "gemma_decoder_block", _list_gemma
        entries["final_norm/scale"] = plus_one("layers/rms_normalization/vars/0")
    else:
        name, list_block = f"{LAYERS[kind]}_transformer_decoder", _list_llama
        norm = "layer_normalization" if kind == "MistralBackbone" else "layer_norm"
        entries |= rms_norm("final_norm", f"layers/{LAYERS[kind]}_{norm}")
        entries["logits/kernel"] = untransposed("layers/reversible_embedding/vars/1")
    for i in range(keywords["num_layers"]):
        entries |= list_block(f"block_{i}", f"layers/{numbered(name, i)}")
    return entries


def _list_llama(ours, theirs):
    """Return {weight name: tensor name} for one block of Llama.

    `ours` is the path of the block in our model, and `theirs` its path in the file.
    """
    inside = f"{theirs}/self_attention_layer"
    entries = attention(f"{ours}/attention", inside)
    for part in ("gate", "intermediate", "output"):
        entries |= dense(f"{ours}/feed_forward/{part}", f"{theirs}/feedforward_{part}_dense")
    for part in ("query", "key"):
        norm = f"{ours}/attention/structures/{part}_norm"
        entries |= rms_norm(norm, f"{inside}/{part}_dense_layer_norm")
    entries |= rms_norm(f"{ours}/attention_norm", f"{theirs}/self_attention_layernorm")
    return entries | rms_norm(f"{ours}/feed_forward_norm", f"{theirs}/feedforward_layernorm")


def _list_gemma(ours, theirs):
    """Return {weight name: tensor name} for one block of Gemma.

    `ours` is the path of the block in our model, and `theirs` its path in the file. The file stores
    the kernels of query, key and value with the axis of heads first, so their entries are
    `Conversion` objects that move this axis.
    """
    entries = dense(f"{ours}/attention/attention_output", f"{theirs}/attention/output_dense")
    for name in ("query", "key", "value"):
        entries[f"{ours}/attention/{name}/kernel"] = Conversion(
            (f"{theirs}/attention/{name}_dense/vars/0",),
            lambda x: x.transpose(1, 0, 2),
            transpose=False,
        )
    names = {"gate": "gating_ffw", "intermediate": "gating_ffw_2", "output": "ffw_linear"}
    for our, their in names.items():
        entries |= dense(f"{ours}/feed_forward/{our}", f"{theirs}/{their}")
    for our, their in (("attention", "attention"), ("feed_forward", "ffw")):
        entries[f"{ours}/{our}_norm/scale"] = plus_one(f"{theirs}/pre_{their}_norm/vars/0")
        entries[f"{ours}/{our}_post_norm/scale"] = plus_one(f"{theirs}/post_{their}_norm/vars/0")
    return entries
