"""`read_config`: settings of a checkpoint, of which every one is read, or known not to matter."""

from keras_attention.files.fields import Fields
from keras_attention.pretrained.checkpoint import CheckpointError

# Of training, of files, of decoding, of heads' names, of what a model returns: no model is built
# otherwise for them.
IRRELEVANT = set(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _flash_attn_2_enabled
    _name_or_path _num_labels architectures auto_map bad_words_ids begin_suppress_tokens
    bos_token_id cache_implementation chunk_size_feed_forward cls_token_id
    decoder_start_token_id directionality diversity_penalty do_sample dtype early_stopping
    encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty
    extra_pos_embeddings finetuning_task forced_bos_token_id forced_decoder_ids
    forced_eos_token_id gradient_checkpointing id2label initializer_factor initializer_range
    is_encoder_decoder is_llama_config keys_to_ignore_at_inference label2id language
    length_penalty mask_token_id max_length min_length model_max_length model_type name
    no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences
    output_attentions output_hidden_states output_past output_scores pooler_fc_size
    pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix
    pretraining_tp problem_type remove_invalid_values repetition_penalty
    return_dict return_dict_in_generate save_step sep_token_id suppress_tokens
    task_specific_params temperature tf_legacy_loss tie_encoder_decoder tokenizer_class top_k
    top_p torch_dtype torchscript transformers.js_config transformers_version typical_p
    unk_token_id unsloth_fixed unsloth_version use_bfloat16 use_cache use_return_dict
    """.split()
)


def read_config(values, path, ignored=()):
    """Return the `Fields` of a checkpoint's settings. Each is read, or known not to matter.

    Args:
        values: dict, what the file says.
        path: what errors call it.
        ignored: names of settings that do not matter for this architecture.
    """
    return Fields(path, values, ignored=IRRELEVANT | {*ignored}, error_class=CheckpointError)


ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "mish": "mish",
}
_GATED = {"silu": "swiglu", "gelu": "geglu", "gelu_tanh": "geglu_tanh", "relu": "reglu"}
# Activations of feed-forward networks with a gate.
GATES = {name: _GATED[kind] for name, kind in ACTIVATIONS.items() if kind in _GATED}


def read_bias(config):
    """Return whether layers have biases: those of attention and feed-forward networks, or none."""
    bias = config.flag("attention_bias", False)
    if config.flag("mlp_bias", False) != bias:
        raise config.error("mlp_bias", f"{str(bias).lower()}, as attention_bias")
    return bias
