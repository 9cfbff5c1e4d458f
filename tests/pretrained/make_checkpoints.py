"""Write tests/pretrained/checkpoints: tiny checkpoints of transformers, with their outputs.

    python -m tests.pretrained.make_checkpoints [FOLDER]

Needs PyTorch and transformers (`pip install 'keras-attention-zoo[backends]'`). Weights are drawn
from a seed. Ids hold 0, rows have different lengths, and padding is as in each model.
"""

import json
import pathlib
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "checkpoints"
V, D, N, FF, LAYERS, LENGTH = 31, 12, 3, 20, 2, 16


def bert_like(**more):
    return dict(
        vocab_size=V,
        hidden_size=D,
        num_attention_heads=N,
        num_hidden_layers=LAYERS,
        intermediate_size=FF,
        max_position_embeddings=LENGTH,
        **more,
    )


def llama_like(**more):
    return dict(
        vocab_size=V,
        hidden_size=D,
        num_attention_heads=N,
        num_hidden_layers=LAYERS,
        intermediate_size=FF,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
        **more,
    )


def vit_like(**more):
    return dict(
        hidden_size=D,
        num_attention_heads=N,
        num_hidden_layers=LAYERS,
        image_size=12,
        patch_size=4,
        **more,
    )


CLIP = dict(
    text_config=bert_like(eos_token_id=30, bos_token_id=29, pad_token_id=30),
    vision_config=vit_like(intermediate_size=FF, layer_norm_eps=1e-4),
    projection_dim=6,
)

SIGLIP = dict(
    text_config=bert_like(layer_norm_eps=1e-3, projection_size=6, hidden_act="gelu"),
    vision_config=vit_like(intermediate_size=FF, layer_norm_eps=1e-4),
)


def modernbert_like(**more):
    """Make settings with padding 30, and windows of three tokens to each side in some layers."""
    return bert_like(pad_token_id=30, bos_token_id=28, cls_token_id=28, eos_token_id=29,
                     sep_token_id=29, local_attention=6, global_attn_every_n_layers=3,
                     global_rope_theta=500.0, local_rope_theta=50.0, norm_eps=1e-4,
                     **more) | {"num_hidden_layers": 4}  # fmt: skip


LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}

BART = dict(
    vocab_size=V,
    d_model=D,
    encoder_layers=LAYERS,
    decoder_layers=1,
    encoder_attention_heads=N,
    decoder_attention_heads=N,
    encoder_ffn_dim=FF,
    decoder_ffn_dim=FF,
    max_position_embeddings=LENGTH,
)

WHISPER = dict(
    vocab_size=V,
    d_model=D,
    encoder_layers=LAYERS,
    decoder_layers=1,
    encoder_attention_heads=N,
    decoder_attention_heads=N,
    encoder_ffn_dim=FF,
    decoder_ffn_dim=FF,
    max_source_positions=10,
    max_target_positions=LENGTH,
    num_mel_bins=80,
    pad_token_id=29,
    bos_token_id=29,
    eos_token_id=29,
    decoder_start_token_id=30,
    suppress_tokens=None,
    begin_suppress_tokens=None,
)

# A vocabulary like Whisper's: pieces (the first is a token), the end, the prompt, times.
PIECES = [*"!.Ġabcdehimnorstu", "th", "the", "Ġthe", "Ġa", "at", "Ġc", "Ġcat"]
PROMPT = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>",
          "<|transcribe|>", "<|nospeech|>", "<|notimestamps|>"]  # fmt: skip
TIMES = [f"<|{k / 50:.2f}|>" for k in range(4)]
HEARD = {name: i for i, name in enumerate([*PIECES, *PROMPT, *TIMES])}
SUPPRESSED = [3, 17, *map(HEARD.get, TIMES)]  # a text without timestamps is one segment

SAID = WHISPER | dict(
    vocab_size=len(HEARD),
    max_source_positions=50,  # a second
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), HEARD["<|endoftext|>"]),
    decoder_start_token_id=HEARD["<|startoftranscript|>"],
)

T5 = dict(
    vocab_size=V,
    d_model=D,
    d_kv=5,
    d_ff=FF,
    num_layers=LAYERS,
    num_decoder_layers=1,
    num_heads=N,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=12,
    decoder_start_token_id=0,
)

# name: (class of the model, class of its config, settings, options of drawing and storing)
CHECKPOINTS = {
    "bert-masked": ("BertForMaskedLM", "BertConfig", bert_like(hidden_act="gelu_new"), {}),
    "bert-texts": (
        "BertForSequenceClassification",
        "BertConfig",
        bert_like(num_labels=3, layer_norm_eps=1e-3),
        {},
    ),
    "bert-tokens": (
        "BertForTokenClassification",
        "BertConfig",
        bert_like(num_labels=4, hidden_act="relu"),
        {"dtype": "bfloat16"},
    ),
    "bert-answers": ("BertForQuestionAnswering", "BertConfig", bert_like(), {"shards": "6KB"}),
    "distilbert-answers": (
        "DistilBertForQuestionAnswering",
        "DistilBertConfig",
        dict(vocab_size=V, dim=D, n_heads=N, n_layers=LAYERS, hidden_dim=FF,
             max_position_embeddings=LENGTH),
        {},
    ),
    "roberta-answers": (
        "RobertaForQuestionAnswering",
        "RobertaConfig",
        bert_like(pad_token_id=1, type_vocab_size=1),
        {},
    ),
    "albert-answers": (
        "AlbertForQuestionAnswering",
        "AlbertConfig",
        bert_like(embedding_size=8),
        {},
    ),
    "electra-answers": (
        "ElectraForQuestionAnswering",
        "ElectraConfig",
        bert_like(embedding_size=8),
        {},
    ),
    "bert": ("BertModel", "BertConfig", bert_like(pad_token_id=5), {}),
    "bert-both-tasks": ("BertForPreTraining", "BertConfig", bert_like(), {}),
    "roberta-masked": (
        "RobertaForMaskedLM",
        "RobertaConfig",
        bert_like(pad_token_id=1, type_vocab_size=1),
        {},
    ),
    "roberta-texts": (
        "RobertaForSequenceClassification",
        "RobertaConfig",
        bert_like(pad_token_id=1, type_vocab_size=1, num_labels=2),
        {"dtype": "float16"},
    ),
    "xlm-roberta-tokens": (
        "XLMRobertaForTokenClassification",
        "XLMRobertaConfig",
        bert_like(pad_token_id=1, type_vocab_size=1, num_labels=4, layer_norm_eps=1e-3),
        {},
    ),
    "camembert": (
        "CamembertModel",
        "CamembertConfig",
        bert_like(pad_token_id=3, type_vocab_size=2, hidden_act="silu"),
        {"dtype": "bfloat16"},
    ),
    "electra-masked": (
        "ElectraForMaskedLM",
        "ElectraConfig",
        bert_like(embedding_size=8),
        {},
    ),
    "electra-texts": (
        "ElectraForSequenceClassification",
        "ElectraConfig",
        bert_like(embedding_size=8, num_labels=3),
        {},
    ),
    "electra": ("ElectraForPreTraining", "ElectraConfig", bert_like(embedding_size=8), {}),
    "electra-tokens": (
        "ElectraForTokenClassification",
        "ElectraConfig",
        bert_like(embedding_size=D, num_labels=4),
        {"dtype": "bfloat16"},
    ),
    "distilbert-masked": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        dict(vocab_size=V, dim=D, n_heads=N, n_layers=LAYERS, hidden_dim=FF,
             max_position_embeddings=LENGTH),
        {},
    ),
    "distilbert-texts": (
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        dict(vocab_size=V, dim=D, n_heads=N, n_layers=LAYERS, hidden_dim=FF,
             max_position_embeddings=LENGTH, num_labels=3),
        {},
    ),
    "distilbert": (
        "DistilBertModel",
        "DistilBertConfig",
        dict(vocab_size=V, dim=D, n_heads=N, n_layers=LAYERS, hidden_dim=FF,
             max_position_embeddings=LENGTH),
        {},
    ),
    "distilbert-tokens": (
        "DistilBertForTokenClassification",
        "DistilBertConfig",
        dict(vocab_size=V, dim=D, n_heads=N, n_layers=LAYERS, hidden_dim=FF,
             max_position_embeddings=LENGTH, num_labels=4, pad_token_id=7),
        {"dtype": "float16"},
    ),
    "albert-masked": ("AlbertForMaskedLM", "AlbertConfig", bert_like(embedding_size=8), {}),
    "albert": ("AlbertModel", "AlbertConfig", bert_like(embedding_size=8), {}),
    "albert-tokens": (
        "AlbertForTokenClassification",
        "AlbertConfig",
        bert_like(embedding_size=8, num_labels=4),
        {},
    ),
    "albert-texts": (
        "AlbertForSequenceClassification",
        "AlbertConfig",
        bert_like(embedding_size=8, num_labels=3, num_hidden_groups=2, hidden_act="relu"),
        {},
    ),
    "vit": (
        "ViTForImageClassification",
        "ViTConfig",
        dict(hidden_size=D, num_attention_heads=N, num_hidden_layers=LAYERS, intermediate_size=FF,
             image_size=12, patch_size=4, num_labels=5),
        {},
    ),
    "vit-headless": (
        "ViTModel",
        "ViTConfig",
        vit_like(intermediate_size=FF, qkv_bias=False, hidden_act="gelu_new"),
        {},
    ),
    "deit": (
        "DeiTForImageClassification",
        "DeiTConfig",
        vit_like(intermediate_size=FF, num_labels=5),
        {},
    ),
    "deit-headless": ("DeiTModel", "DeiTConfig", vit_like(intermediate_size=FF), {}),
    "deit-distilled": (
        "DeiTForImageClassificationWithTeacher",
        "DeiTConfig",
        vit_like(intermediate_size=FF, num_labels=5, layer_norm_eps=1e-3),
        {},
    ),
    "dinov2": (
        "Dinov2ForImageClassification",
        "Dinov2Config",
        vit_like(mlp_ratio=2, num_labels=5),
        {},
    ),
    "dinov2-headless": ("Dinov2Model", "Dinov2Config", vit_like(mlp_ratio=2), {}),
    "clip": ("CLIPModel", "CLIPConfig", CLIP, {"task": "image_encoder"}),
    "clip-texts": ("CLIPModel", "CLIPConfig", CLIP, {"task": "text_encoder"}),
    "siglip": ("SiglipModel", "SiglipConfig", SIGLIP, {"task": "image_encoder"}),
    "siglip-texts": (
        "SiglipModel",
        "SiglipConfig",
        SIGLIP,
        {"task": "text_encoder", "dtype": "bfloat16"},
    ),
    "siglip-labels": (
        "SiglipForImageClassification",
        "SiglipConfig",
        SIGLIP | {"num_labels": 5},
        {},
    ),
    "siglip-images-alone": ("SiglipVisionModel", "SiglipVisionConfig", SIGLIP["vision_config"], {}),
    "siglip-texts-alone": ("SiglipTextModel", "SiglipTextConfig", SIGLIP["text_config"], {}),
    "modernbert-masked": (
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        modernbert_like(classifier_activation="relu", hidden_activation="gelu_pytorch_tanh"),
        {"shards": "8KB"},
    ),
    "modernbert-texts": (
        "ModernBertForSequenceClassification",
        "ModernBertConfig",
        modernbert_like(num_labels=3, classifier_pooling="mean"),
        {},
    ),
    "modernbert-tokens": (
        "ModernBertForTokenClassification",
        "ModernBertConfig",
        modernbert_like(num_labels=4, classifier_bias=True),
        {"dtype": "bfloat16"},
    ),
    "modernbert-answers": (
        "ModernBertForQuestionAnswering",
        "ModernBertConfig",
        modernbert_like(),
        {},
    ),
    "modernbert": (
        "ModernBertModel",
        "ModernBertConfig",
        modernbert_like(norm_bias=True, attention_bias=True, mlp_bias=True),
        {},
    ),
    "gemma": (
        "GemmaForCausalLM",
        "GemmaConfig",
        llama_like(num_key_value_heads=1, head_dim=6),
        {},
    ),
    "gemma-2": (
        "Gemma2ForCausalLM",
        "Gemma2Config",
        llama_like(num_key_value_heads=1, head_dim=6, query_pre_attn_scalar=8, sliding_window=3,
                   attn_logit_softcapping=2.0, final_logit_softcapping=1.5),
        {},
    ),
    "gemma-3": (
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        llama_like(num_key_value_heads=1, head_dim=6, query_pre_attn_scalar=8, sliding_window=4,
                   sliding_window_pattern=2),
        {},
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        dict(vocab_size=V, n_embd=D, n_head=N, n_layer=LAYERS, n_positions=LENGTH,
             bos_token_id=30, eos_token_id=30),
        {},
    ),
    "llama-2": ("LlamaForCausalLM", "LlamaConfig", llama_like(), {"shards": "4KB"}),
    "llama-3": (
        "LlamaForCausalLM",
        "LlamaConfig",
        llama_like(num_key_value_heads=1, tie_word_embeddings=True, rope_parameters=LLAMA_3,
                   head_dim=6),
        {"dtype": "bfloat16"},
    ),
    "mistral": (
        "MistralForCausalLM",
        "MistralConfig",
        llama_like(num_key_value_heads=1, sliding_window=3, head_dim=4),
        {},
    ),
    "qwen2": (
        "Qwen2ForCausalLM",
        "Qwen2Config",
        llama_like(num_key_value_heads=1, tie_word_embeddings=True),
        {},
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        "Qwen3Config",
        llama_like(num_key_value_heads=1, head_dim=6, rms_norm_eps=1e-4),
        {},
    ),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5, {}),
    "t5-1.1": (
        "T5ForConditionalGeneration",
        "T5Config",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        {"scale": 0.15},  # with larger weights float32 rounds by 5e-5
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        BART | {"pad_token_id": 1, "decoder_start_token_id": 2},
        {},
    ),
    "marian": (
        "MarianMTModel",
        "MarianConfig",
        BART
        | {"pad_token_id": 30, "decoder_start_token_id": 30, "eos_token_id": 0,
           "scale_embedding": True, "activation_function": "swish"},
        {},
    ),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER, {}),
    "whisper-texts": ("WhisperForConditionalGeneration", "WhisperConfig", SAID, {}),
}  # fmt: skip


# name: arguments of `generate` of the original, whose ids are in `written.npz`
WRITTEN = {
    "bart": [
        {"forced_bos_token_id": 0},
        {"forced_bos_token_id": 0, "min_length": 5, "no_repeat_ngram_size": 2, "eos_token_id": 14},
    ],
    "whisper-texts": [
        {"language": "en", "task": "transcribe"},
        {"language": "german", "task": "translate"},
    ],
}
LONGEST = 8  # new tokens

IMAGES = [
    name
    for name, (kind, *_, stored) in CHECKPOINTS.items()
    if kind.startswith(("ViT", "DeiT", "Dinov2", "SiglipVision", "SiglipForImage"))
    or stored.get("task") == "image_encoder"
]


# {name: (height, width)} of images of another size: the original resizes its positions.
RESIZED = {
    "vit": (16, 16),
    "deit": (20, 8),
    "deit-distilled": (8, 8),
    "dinov2": (8, 24),
    "dinov2-headless": (20, 20),
    "clip": (16, 8),
    "siglip": (8, 16),
}


def make_inputs(name, config, random):
    """Return the inputs of the original and of our model."""
    if name in IMAGES:
        images = random.random((2, 12, 12, 3)).astype("float32")
        return {"pixel_values": images.transpose(0, 3, 1, 2)}, {"images": images}
    if name == "clip-texts":
        ids = random.integers(0, V - 2, (3, 7))
        ids[0, 4:], ids[1, 6:], ids[2, 2:] = 30, 30, 30  # the end token is also the padding
        return {"input_ids": ids}, {"token_ids": ids}
    if name.startswith("siglip"):
        ids = random.integers(0, V, (3, 7))
        ids[:, 1], ids[0, 5:], ids[2, 2:] = 0, 1, 1  # padding, which the model attends to
        return {"input_ids": ids}, {"token_ids": ids}
    if name.startswith("whisper"):
        shape = (3, 2 * config.max_source_positions, 80)
        features = random.normal(size=shape).astype("float32")
        if name == "whisper-texts":
            features = np.round(features)  # to keep the file small
        target = random.integers(0, config.vocab_size, (3, 5))
        target[:, 0] = config.decoder_start_token_id
        theirs = {"input_features": features.transpose(0, 2, 1), "decoder_input_ids": target}
        return theirs, {"features": features, "target_ids": target}
    padding = config.pad_token_id
    ids = random.integers(0, V, (3, 7))
    ids[:, 1] = 0  # 0 is a token in many vocabularies
    if padding is not None:
        ids = np.where(ids == padding, 3, ids)
        ids[0, 5:], ids[2, 2:] = padding, padding
    mask = {} if padding is None else {"attention_mask": (ids != padding).astype("int64")}
    if config.is_encoder_decoder:
        target = random.integers(0, V, (3, 5))
        target[:, 0] = config.decoder_start_token_id
        theirs = {"input_ids": ids, "decoder_input_ids": target, **mask}
        return theirs, {"source_ids": ids, "target_ids": target}
    theirs, ours = {"input_ids": ids, **mask}, {"token_ids": ids}
    segments = np.repeat([[0, 0, 0, 1, 1, 1, 1]], 3, axis=0)
    if getattr(config, "type_vocab_size", 0) > 1 and config.model_type != "distilbert":
        theirs["token_type_ids"] = ours["segment_ids"] = segments
    if name.endswith("-answers"):  # our model needs segments to find the context
        ours["segment_ids"] = segments
    return theirs, ours


def compute(model, arguments, stored):
    """Return the logits of the original, or its hidden states for models without a head."""
    import torch

    with torch.no_grad():
        if "task" in stored:  # before the normalization
            images = stored["task"] == "image_encoder"
            features = model.get_image_features if images else model.get_text_features
            actual = features(**arguments)
            return actual if torch.is_tensor(actual) else actual.pooler_output
        if type(model).__name__ == "ElectraForPreTraining":  # only the encoder is compared
            model = model.electra
        outputs = model(**arguments)
    if "start_logits" in outputs:
        return torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    if "prediction_logits" in outputs:
        return outputs.prediction_logits
    if "logits" in outputs:
        return outputs.logits
    if type(model).__name__.startswith("Siglip"):
        return outputs.pooler_output
    hidden = outputs.last_hidden_state
    return hidden[:, 0] if "pixel_values" in arguments else hidden


def write(model, arguments, options):
    """Return the ids (B, N) of greedy generation by the original, padded after the end."""
    import torch

    asked = {"max_new_tokens": LONGEST, "do_sample": False, "num_beams": 1}
    arguments = {
        name: torch.tensor(x) for name, x in arguments.items() if name != "decoder_input_ids"
    }
    if "language" in options:  # Whisper's own `generate` does not return the prompt
        new = model.generate(**arguments, **asked, **options, return_timestamps=False)
    else:
        model.generation_config.update(**options, forced_eos_token_id=None)
        new = model.generate(**arguments, **asked)[:, 1:]
    ids = np.full((len(new), LONGEST), model.config.pad_token_id)
    ids[:, : new.shape[1]] = new.numpy()
    return ids


def draw_sounds():
    """Return the samples of three chords of at most a second."""
    time = np.arange(16000) / 16000
    chords = [(220, 277, 330), (440, 660, 1000), (150, 2000, 3100)]
    sounds = [sum(np.sin(2 * np.pi * f * time) for f in chord) / 8 for chord in chords]
    lengths = (16000, 9000, 4000)
    return [x[:n].astype("float32") for x, n in zip(sounds, lengths, strict=True)]


def write_speech_files(folder):
    """Write Whisper's tokenizer and its settings of spectrograms and generation."""
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("a", "t"), ("Ġ", "c"),
              ("Ġc", "at")]  # fmt: skip
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [
        {"id": HEARD[name], "content": name, "special": name in PROMPT, **flags}
        for name in [*PROMPT, *TIMES]
    ]
    around = ("<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>")
    special = {name: {"id": name, "ids": [HEARD[name]], "tokens": [name]} for name in around}
    parts = [{"SpecialToken": {"id": name, "type_id": 0}} for name in around]
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    spaces = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
              "use_regex": True}  # fmt: skip
    rules = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": spaces,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [*parts[:2], texts[0], parts[2]],
            "pair": [*parts[:2], *texts, parts[2]],
            "special_tokens": special,
        },
        "decoder": spaces,
        "model": {
            "type": "BPE",
            "vocab": {name: HEARD[name] for name in [*PIECES, PROMPT[0]]},
            "merges": [" ".join(pair) for pair in merges],
        },
    }
    features = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 80,
        "sampling_rate": 16000,
        "hop_length": 160,
        "chunk_length": 1,
        "n_fft": 400,
    }
    for name, content in {"tokenizer": rules, "preprocessor_config": features}.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")


def describe_writing():
    """Return the content of Whisper's `generation_config.json`."""
    return {
        "is_multilingual": True,
        "lang_to_id": {name: HEARD[name] for name in ("<|en|>", "<|de|>")},
        "task_to_id": {name: HEARD[f"<|{name}|>"] for name in ("transcribe", "translate")},
        "no_timestamps_token_id": HEARD["<|notimestamps|>"],
        "suppress_tokens": SUPPRESSED,
        "begin_suppress_tokens": [HEARD["!"], HEARD["<|endoftext|>"]],
        "max_length": LENGTH,
        "return_timestamps": False,
    }


def make(name, folder):
    """Write one checkpoint with `expected.npz`, and return the original model."""
    import torch
    import transformers

    kind, of_config, settings, stored = CHECKPOINTS[name]
    config = getattr(transformers, of_config)(**settings)
    torch.manual_seed(0)
    model = getattr(transformers, kind)(config).eval()
    random = np.random.default_rng(0)
    scale = stored.get("scale", 0.3)
    drawn = [x for x in model.parameters() if x.requires_grad]  # sinusoids have no weights
    drawn += [x for own, x in model.named_buffers() if own == "final_logits_bias"]
    with torch.no_grad():
        for tensor in drawn:
            tensor.add_(torch.tensor(random.normal(size=tensor.shape, scale=scale)))
        if "dtype" in stored:  # rounded once, then computed in float32
            dtype = getattr(torch, stored["dtype"])
            for tensor in model.parameters():
                tensor.copy_(tensor.to(dtype).to(torch.float32))
    theirs, ours = make_inputs(name, config, random)
    expected = compute(model, {k: torch.tensor(x) for k, x in theirs.items()}, stored)
    resized = {}
    if name in RESIZED:
        images = random.random((2, *RESIZED[name], 3)).astype("float32")
        pixels = {"pixel_values": torch.tensor(images.transpose(0, 3, 1, 2))}
        if config.model_type != "dinov2":  # it does this by default
            pixels["interpolate_pos_encoding"] = True
        resized = {"images": images, "expected": compute(model, pixels, stored).numpy()}
    if "dtype" in stored:
        model = model.to(getattr(torch, stored["dtype"]))
    path = pathlib.Path(folder) / name
    model.save_pretrained(path, max_shard_size=stored.get("shards", "50GB"))
    (path / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(path / "expected.npz", expected=expected.numpy(), **ours)
    generation = model.generation_config.to_dict() if name in WRITTEN else {}
    if name == "whisper-texts":
        write_speech_files(path)
        settings = generation | describe_writing() | {"_from_model_config": False}
        model.generation_config = transformers.GenerationConfig(**settings)
        model.generation_config.save_pretrained(path)
        extractor = transformers.WhisperFeatureExtractor(chunk_length=1)
        sounds = extractor(draw_sounds(), sampling_rate=16000, return_tensors="np")
        theirs = {"input_features": sounds.input_features}
    if name in WRITTEN:
        ids = [write(model, theirs, options) for options in WRITTEN[name]]
        np.savez_compressed(path / "written.npz", ids=np.stack(ids))
        model.generation_config = transformers.GenerationConfig(**generation)
    if resized:
        np.savez_compressed(path / "resized.npz", **resized)
    return model


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name in CHECKPOINTS:
        make(name, folder)
        print(name, flush=True)


if __name__ == "__main__":
    main()
