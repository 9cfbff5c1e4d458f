"""Write tests/pretrained/foreign: tiny checkpoints of timm and of KerasHub, with their outputs.

    python -m tests.pretrained.make_foreign_checkpoints timm|keras_hub [FOLDER]

The first needs timm and torchvision (`pip install timm`), the second KerasHub. Weights are drawn
from a seed. Ids hold 0, rows have different lengths, and padding is as in each model.
"""

import pathlib
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "foreign"
V, D, N, FF, LAYERS, LENGTH, SIDE = 31, 12, 3, 20, 2, 16, 12

# name: (architecture, keyword arguments of timm.create_model)
TIMM = {
    "timm-vit": ("vit_tiny_patch16_224", {"num_classes": 5}),
    "timm-vit-wide": ("vit_base_patch16_224", {"img_size": (8, 12), "qkv_bias": False}),
    "timm-deit-distilled": ("deit_tiny_distilled_patch16_224", {"num_classes": 5}),
    "timm-deit3": ("deit3_small_patch16_224", {"num_classes": 5}),
    "timm-gap": ("vit_base_patch16_gap_224", {"num_classes": 5}),
    "timm-dinov2-registers": ("vit_base_patch14_reg4_dinov2", {}),
    "timm-fc-norm": ("vit_medium_patch16_reg4_gap_256", {"num_classes": 5, "reg_tokens": 2}),
    "timm-fc-norm-max": ("vit_tiny_patch16_224", {"global_pool": "max", "fc_norm": True}),
    "timm-fc-norm-token": ("vit_tiny_patch16_224", {"fc_norm": True, "num_classes": 5}),
    "timm-map": ("vit_base_patch16_siglip_224", {"num_classes": 5}),
    "timm-map-registers": ("vit_so150m_patch16_reg4_map_256", {"reg_tokens": 2}),
    "timm-siglip-gap": ("vit_so400m_patch16_siglip_gap_256", {}),
    "timm-clip": ("vit_base_patch16_clip_quickgelu_224", {"num_classes": 4}),
}
TIMM_SIZE = dict(
    embed_dim=D, depth=LAYERS, num_heads=N, img_size=SIDE, patch_size=4, num_classes=0, mlp_ratio=2
)

# {name: (height, width)} of images of another size.
TIMM_RESIZED = {"timm-vit-wide": (16, 8), "timm-deit3": (8, 20)}


def texts(**more):
    return dict(vocabulary_size=V, num_layers=LAYERS, num_heads=N, hidden_dim=D,
                intermediate_dim=FF, max_sequence_length=LENGTH, **more)  # fmt: skip


def decoders(**more):
    return dict(vocabulary_size=V, num_layers=LAYERS, num_query_heads=N, num_key_value_heads=1,
                hidden_dim=D, intermediate_dim=FF, **more)  # fmt: skip


def images(**more):
    return dict(image_shape=(SIDE, 8, 3), patch_size=4, num_layers=LAYERS, num_heads=N,
                hidden_dim=D, **more)  # fmt: skip


ELECTRA = texts(embedding_dim=8)
ELECTRA["vocab_size"] = ELECTRA.pop("vocabulary_size")
LLAMA_3 = dict(
    rope_max_wavelength=500,
    rope_frequency_adjustment_factor=4.0,
    rope_low_freq_factor=1.0,
    rope_high_freq_factor=4.0,
    rope_pretraining_sequence_length=16,
)
# name: (class of the backbone, its arguments, class of the task, its arguments)
KERAS_HUB = {
    "bert": ("BertBackbone", texts(num_segments=3), None, {}),
    "bert-texts": ("BertBackbone", texts(), "BertTextClassifier", {"num_classes": 4}),
    "bert-masked": ("BertBackbone", texts(), "BertMaskedLM", {}),
    "roberta-masked": ("RobertaBackbone", texts(), "RobertaMaskedLM", {}),
    "roberta-texts": ("RobertaBackbone", texts(), "RobertaTextClassifier", {"num_classes": 4}),
    "xlm-roberta": ("XLMRobertaBackbone", texts(), None, {}),
    "distilbert-texts": (
        "DistilBertBackbone", texts(), "DistilBertTextClassifier", {"num_classes": 4},
    ),
    "electra": ("ElectraBackbone", ELECTRA, None, {}),
    "albert-texts": (
        "AlbertBackbone",
        texts(embedding_dim=8) | {"num_groups": 2, "num_layers": 4},
        "AlbertTextClassifier",
        {"num_classes": 4},
    ),
    "gpt2": ("GPT2Backbone", texts(), "GPT2CausalLM", {}),
    "llama": (
        "LlamaBackbone", decoders(tie_word_embeddings=True, dtype="bfloat16"), "LlamaCausalLM", {},
    ),
    "llama-3": ("Llama3Backbone", decoders(**LLAMA_3), None, {}),
    "mistral": (
        "MistralBackbone",
        decoders(sliding_window=3, head_dim=6, layer_norm_epsilon=1e-4, rope_scaling_factor=2.0),
        None,
        {},
    ),
    "qwen": ("QwenBackbone", decoders(tie_word_embeddings=False), None, {}),
    "qwen-3": (
        "Qwen3Backbone",
        decoders(head_dim=6, sliding_window_size=3, tie_word_embeddings=False,
                 layer_norm_epsilon=1e-3),
        "Qwen3CausalLM",
        {},
    ),
    "gemma": ("GemmaBackbone", decoders(head_dim=6), "GemmaCausalLM", {}),
    "gemma-2": (
        "GemmaBackbone",
        decoders(head_dim=6, use_post_ffw_norm=True, use_post_attention_norm=True,
                 attention_logit_soft_cap=2.0, final_logit_soft_cap=1.5,
                 use_sliding_window_attention=True, sliding_window_size=3),
        "GemmaCausalLM",
        {},
    ),
    "vit": ("ViTBackbone", images(mlp_dim=FF), "ViTImageClassifier", {"num_classes": 5}),
    "vit-without-bias": (
        "ViTBackbone",
        images(mlp_dim=FF, use_mha_bias=False, use_mlp_bias=False, use_patch_bias=False),
        None,
        {},
    ),
    "deit": ("DeiTBackbone", images(intermediate_dim=FF), None, {}),
}  # fmt: skip
COMMITTED = ("bert-texts", "gpt2", "llama", "qwen-3", "gemma-2", "vit")


def make_timm(name, folder):
    """Write one checkpoint of timm with `expected.npz`."""
    import timm
    import torch
    from timm.models import save_for_hf

    architecture, settings = TIMM[name]
    torch.manual_seed(0)
    model = timm.create_model(architecture, **TIMM_SIZE | settings).eval()
    random = np.random.default_rng(0)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.tensor(random.normal(size=tensor.shape, scale=0.3)))
    pixels = random.random((2, *model.patch_embed.img_size, 3)).astype("float32")
    with torch.no_grad():
        expected = model(torch.tensor(pixels.transpose(0, 3, 1, 2))).numpy()
    path = pathlib.Path(folder) / name
    save_for_hf(model, path, safe_serialization=True)
    np.savez_compressed(path / "expected.npz", expected=expected, images=pixels)
    if name in TIMM_RESIZED:
        model.set_input_size(TIMM_RESIZED[name])
        pixels = random.random((2, *TIMM_RESIZED[name], 3)).astype("float32")
        with torch.no_grad():
            expected = model(torch.tensor(pixels.transpose(0, 3, 1, 2))).numpy()
        np.savez_compressed(path / "resized.npz", expected=expected, images=pixels)


def make_preset(name, folder):
    """Write one preset of KerasHub with `expected.npz`, and return the original model."""
    import keras_hub
    from keras import ops

    kind, settings, of_task, more = KERAS_HUB[name]
    backbone = getattr(keras_hub.models, kind)(**settings)
    saved = backbone
    if of_task:
        saved = getattr(keras_hub.models, of_task)(backbone=backbone, **more)
    random = np.random.default_rng(0)
    for weight in saved.weights:
        drawn = random.normal(size=weight.shape, scale=0.3).astype("float32")
        weight.assign(ops.convert_to_numpy(weight).astype("float32") + drawn)
    path = pathlib.Path(folder) / name
    saved.save_to_preset(path)
    if settings.get("dtype") == "bfloat16":  # rounded once, then computed in float32
        exact = getattr(keras_hub.models, kind)(**settings | {"dtype": "float32"})
        exact.set_weights([ops.convert_to_numpy(w).astype("float32") for w in backbone.weights])
        backbone = saved = exact
    theirs, ours = _make_inputs(kind, backbone, random)
    expected = _compute(saved, backbone, theirs)
    np.savez_compressed(path / "expected.npz", expected=expected, **ours)
    return saved


def _make_inputs(kind, backbone, random):
    """Return the inputs of the original and of our model."""
    if hasattr(backbone, "image_shape"):
        pixels = random.random((2, *backbone.image_shape)).astype("float32")
        return pixels, {"images": pixels}
    ids = random.integers(0, V, (3, 7))
    ids[:, 1] = 0  # 0 is a token in many vocabularies
    padding = None if _writes(backbone) else 1 if "Roberta" in kind else 0
    if padding is not None:
        ids = np.where(ids == padding, 3, ids)
        ids[0, 5:], ids[2, 2:] = padding, padding
    theirs, ours = {"token_ids": ids, "padding_mask": np.ones_like(ids)}, {"token_ids": ids}
    if padding is not None:
        theirs["padding_mask"] = (ids != padding).astype("int64")
    if "segment_ids" in [tensor.name for tensor in backbone.inputs]:
        segments = np.repeat([[0, 0, 0, 1, 1, 1, 1]], 3, axis=0)
        theirs["segment_ids"] = ours["segment_ids"] = segments
    return theirs, ours


def _compute(saved, backbone, theirs):
    """Return hidden states, the first token of an image, or logits."""
    from keras import ops

    name = type(saved).__name__
    if name.endswith(("TextClassifier", "ImageClassifier")):
        return ops.convert_to_numpy(saved(theirs))
    if name == "RobertaMaskedLM":
        positions = np.repeat([np.arange(theirs["token_ids"].shape[1])], 3, axis=0)
        return ops.convert_to_numpy(saved({**theirs, "mask_positions": positions}))
    actual = backbone(theirs)
    actual = actual["sequence_output"] if isinstance(actual, dict) else actual
    if not isinstance(theirs, dict):
        actual = actual[:, 0]
    elif hasattr(backbone.token_embedding, "tie_weights") and _writes(backbone):
        actual = backbone.token_embedding(actual, reverse=True)
    return ops.convert_to_numpy(actual)


def _writes(backbone):
    return type(backbone).__name__.startswith(("GPT2", "Llama", "Mistral", "Qwen", "Gemma"))


def main():
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER
    make, names = {"timm": (make_timm, TIMM), "keras_hub": (make_preset, COMMITTED)}[sys.argv[1]]
    for name in names:
        make(name, folder)
        print(name, flush=True)


if __name__ == "__main__":
    main()
