"""Whisper (Radford et al., 2022): speech recognition and translation, of 30 seconds at a time."""

from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import dense, fairseq_block, layer_norm

MODEL_TYPES = ("whisper",)
IRRELEVANT = (
    *("activation_dropout", "encoder_layerdrop", "decoder_layerdrop", "init_std"),
    *("num_hidden_layers", "classifier_proj_size", "median_filter_width", "pad_token_id"),
    # of training alone, as SpecAugment has them
    *("apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks"),
    *("mask_feature_prob", "mask_feature_length", "mask_feature_min_masks"),
    # of decoding, in files before generation_config.json
    *("alignment_heads", "lang_ids", "suppress_ids", "begin_suppress_ids", "task_ids"),
)
HEADS = {"ForConditionalGeneration": "speech_to_text"}
IGNORED = (r"proj_out\.weight",)


def settings(config):
    config.refuse("use_weighted_layer_sum")
    config.one_of("tie_word_embeddings", {True: None}, True)
    heads, inner = config.whole("encoder_attention_heads"), config.whole("encoder_ffn_dim")
    config.one_of("decoder_attention_heads", {heads: None}, heads)
    config.one_of("decoder_ffn_dim", {inner: None}, inner)
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "num_mel_bins": config.whole("num_mel_bins", 80),
        "spectrogram": "whisper",
        "num_frames": 2 * config.whole("max_source_positions", 1500),
        "stem": "1d",
        "subsampling": 2,
        "num_layers": config.layers("encoder_layers"),
        "num_decoder_layers": config.layers("decoder_layers"),
        "num_heads": heads,
        "hidden_dim": config.whole("d_model"),
        "intermediate_dim": inner,
        "activation": config.one_of("activation_function", ACTIVATIONS, "gelu"),
        "dropout": config.number("dropout", 0.0),
        "attention_dropout": config.number("attention_dropout", 0.0),
        "key_bias": False,
        "position": "learned",
        "max_length": config.whole("max_target_positions", 448),
        "scale_embeddings": config.flag("scale_embedding", False),
        "target_padding_id": None,
        "epsilon": 1e-5,
    }


def head(config, builder, keywords, tensors):
    return {}


def table(config, builder, keywords, tensors):
    found = {
        "embedding/table/embeddings": "model.decoder.embed_tokens.weight",
        "embedding/learned/table": "model.decoder.embed_positions.weight",
        "position/learned/table": "model.encoder.embed_positions.weight",
    }
    for i in range(2):
        found |= dense(f"subsampling/convolution_{i}", f"model.encoder.conv{i + 1}")
    sides = {"encoder": keywords["num_layers"], "decoder": keywords["num_decoder_layers"]}
    for side, count in sides.items():
        found |= layer_norm(f"{side}/final_norm", f"model.{side}.layer_norm")
        for i in range(count):
            ours, theirs = f"{side}_block_{i}", f"model.{side}.layers.{i}"
            found |= fairseq_block(ours, theirs, side == "decoder")
    return found
