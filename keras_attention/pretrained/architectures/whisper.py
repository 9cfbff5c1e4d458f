"""Whisper (Radford et al., 2022): speech recognition and translation of 30-second clips."""

from keras_attention.pretrained.architectures import bart
from keras_attention.pretrained.table_entries import dense, layer_norm

MODEL_TYPES = ("whisper",)
IRRELEVANT = (
    *("activation_dropout", "encoder_layerdrop", "decoder_layerdrop", "init_std"),
    *("num_hidden_layers", "classifier_proj_size", "median_filter_width", "pad_token_id"),
    # training with SpecAugment
    *("apply_spec_augment", "mask_time_prob", "mask_time_length", "mask_time_min_masks"),
    *("mask_feature_prob", "mask_feature_length", "mask_feature_min_masks"),
    # decoding, in files older than generation_config.json
    *("alignment_heads", "lang_ids", "suppress_ids", "begin_suppress_ids", "task_ids"),
)
HEADS = {"ForConditionalGeneration": "speech_to_text"}
IGNORED = (r"proj_out\.weight",)


def settings(config):
    config.refuse("use_weighted_layer_sum")
    return bart.read_sides(config) | {
        "num_mel_bins": config.whole("num_mel_bins", 80),
        "spectrogram": "whisper",
        "num_frames": 2 * config.whole("max_source_positions", 1500),
        "stem": "1d",
        "subsampling": 2,
        "dropout": config.number("dropout", 0.0),
        "key_bias": False,
        "position": "learned",
        "max_length": config.whole("max_target_positions", 448),
        "epsilon": 1e-5,
    }


def table(config, builder, keywords, tensors):
    entries = bart.list_sides(keywords, "model.") | {
        "embedding/table/embeddings": "model.decoder.embed_tokens.weight",
        "embedding/learned/table": "model.decoder.embed_positions.weight",
        "position/learned/table": "model.encoder.embed_positions.weight",
    }
    for i in range(2):
        entries |= dense(f"subsampling/convolution_{i}", f"model.encoder.conv{i + 1}")
    for side in ("encoder", "decoder"):
        entries |= layer_norm(f"{side}/final_norm", f"model.{side}.layer_norm")
    return entries
