"""`ConfigReader`: settings of a checkpoint, of which every one is read, or known not to matter."""

import numbers

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
MOST_LAYERS = 1000  # no published model has as many
NOTHING = (None, False, {}, [], 0, 0.0)


class ConfigReader:
    """Reads `config.json`, and at the end refuses what nothing has read.

    Args:
        values: dict, what the file says.
        path: what errors call it.
        irrelevant: names of settings that do not matter for this architecture.
    """

    def __init__(self, values, path, irrelevant=()):
        self.values, self.path = values, path
        self.seen = IRRELEVANT | set(irrelevant)

    def get(self, name, default=None):
        """A setting, or `default` where it is missing or null."""
        self.seen.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def need(self, name):
        """A setting that has to be there."""
        if self.get(name) is None:
            raise CheckpointError(f"{self.path} does not say {name}.")
        return self.get(name)

    def whole(self, name, default=None, *, optional=False):
        """A whole number above 0."""
        value = self.get(name, default)
        if value is None and optional:
            return None
        if type(value) is not int or not 0 < value < 2**31:
            raise self._refuse(name, value, "a whole number above 0")
        return value

    def layers(self, name, default=None):
        """A number of layers; each takes time and memory, of a list of its settings, too."""
        value = self.whole(name, default)
        if value > MOST_LAYERS:
            raise self._refuse(name, value, f"at most {MOST_LAYERS} layers")
        return value

    def token_id(self, name, default):
        """The id of a token."""
        value = self.get(name, default)
        if type(value) is not int or not 0 <= value < 2**31:
            raise self._refuse(name, value, "the id of a token")
        return value

    def number(self, name, default=None):
        """A finite number."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or abs(value) > 1e30:
            raise self._refuse(name, value, "a number")
        return value

    def flag(self, name, default=False):
        """True or False."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise self._refuse(name, value, "true or false")
        return value

    def one_of(self, name, choices, default=None):
        """What `choices`, a dict, has for a setting."""
        value = self.get(name, default)
        try:
            return choices[value]
        except (KeyError, TypeError):
            expected = ", ".join(map(repr, choices))
            raise self._refuse(name, value, f"one of {expected}") from None

    def refuse(self, *names):
        """Refuses settings that are anything but off."""
        for name in names:
            value = self.get(name)
            if value not in NOTHING:
                raise self._refuse(name, value, "none, which is all that is loaded")

    def part(self, values):
        """A reader of some of the settings alone."""
        return ConfigReader(values, self.path, self.seen)

    def inner(self, name, irrelevant=()):
        """A reader of the settings in a part of their own, such as of one tower."""
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise self._refuse(name, value, "settings, {...}")
        return ConfigReader(value, f"{self.path} ({name})", irrelevant)

    def finish(self):
        """Refuses a setting that nothing has read, for it may matter."""
        unread = {k: v for k, v in self.values.items() if k not in self.seen and v not in NOTHING}
        if unread:
            name, value = next(iter(sorted(unread.items())))
            kind = self.values.get("model_type") or self.values.get("architecture")
            raise CheckpointError(
                f"{self.path} says {name}={value!r:.80}, which no loader of a {kind} knows: it may "
                "mean another model than would be built."
            )

    def _refuse(self, name, value, expected):
        return CheckpointError(f"{self.path} says {name}={value!r:.80}: expected {expected}.")


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
