"""`read_config`: reads config.json of a checkpoint, so that no setting is overlooked."""

from keras_attention.files.fields import Fields
from keras_attention.pretrained.checkpoint import CheckpointError

# Settings about training, files, decoding, label names and return values. They do not affect the
# architecture of the model.
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
    """Return the settings of a checkpoint as `Fields`.

    `Fields` notes which settings are read. Its `finish` raises a CheckpointError for a setting that
    was not read, because it might change the model.

    Args:
        values: dict, the settings.
        path: path of their file, for error messages.
        ignored: names of settings that need not be read, in addition to `IRRELEVANT`.
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
# {activation in config.json: our name for a feed-forward network gated with it}
GATES = {name: _GATED[kind] for name, kind in ACTIVATIONS.items() if kind in _GATED}


def read_bias(config):
    """Return whether attention and feed-forward layers have biases.

    `config` is a `Fields` with the content of config.json. If only one kind of layer has biases, a
    CheckpointError is raised.
    """
    bias = config.flag("attention_bias", False)
    if config.flag("mlp_bias", False) != bias:
        raise config.error("mlp_bias", f"{str(bias).lower()}, like attention_bias")
    return bias
