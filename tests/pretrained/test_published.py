"""Published files with settings and names that transformers no longer writes."""

import json
import re
import shutil

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.weights import name_weights
from tests.pretrained.make_checkpoints import FOLDER

NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
TOWERS = {
    **{name: "text_encoder" for name in ("clip-texts", "siglip-texts")},
    **{name: "image_encoder" for name in ("clip", "siglip")},
}

# Settings in distilgpt2, bart-large-cnn, opus-mt, SmolLM2, roberta-base-squad2,
# clip-vit-base-patch32, bert-base-multilingual-cased, and in towers of transformers 4.
SAID = {
    "_num_labels": 1,
    "cross_attention_hidden_size": None,
    "directionality": "bidi",
    "diversity_penalty": 0.0,
    "extra_pos_embeddings": 58101,
    "is_decoder": False,
    "is_llama_config": True,
    "language": "english",
    "length_penalty": 1.0,
    "max_length": 20,
    "name": "Roberta",
    "num_beam_groups": 1,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "pruned_heads": {},
    "return_dict": True,
    "save_step": 14,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "temperature": 1.0,
    "top_k": 50,
    "torch_dtype": "float32",
    "torchscript": False,
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
    "typical_p": 1.0,
    "use_bfloat16": False,
    "use_cache": True,
}


def change_config(folder, change):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config.update(change(config))
    path.write_text(json.dumps(config))


def rename(path, names):
    """Rename the tensors of a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    text = json.dumps({names(name): entry for name, entry in header.items()}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def describe(folder, name=None):
    """Return the description of a checkpoint as text, without the numbers of layers."""
    return re.sub(r"_\d+", "", repr(ka.pretrained.describe(folder, task=TOWERS.get(name))))


@pytest.mark.parametrize("name", NAMES)
def test_older_settings_are_accepted(name, tmp_path):
    folder = shutil.copytree(FOLDER / name, tmp_path / name)
    ties = {"tie_word_embeddings": True}

    def add(config):
        inner = {
            k: v | SAID | ties for k, v in config.items() if k in ("text_config", "vision_config")
        }
        untied = config.get("tie_word_embeddings", True) is False
        return SAID | inner | ({} if untied or config["model_type"] in ("llama", "t5") else ties)

    expected = describe(folder, name)
    change_config(folder, add)
    assert describe(folder, name) == expected


def test_older_names_of_norms_are_read(tmp_path):
    """Load names as in bert-base-uncased. Saving writes today's names."""
    folder = shutil.copytree(FOLDER / "bert-masked", tmp_path / "old")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}

    def name_as_then(name):
        for new, then in old.items():
            name = name.replace(new, then)
        return name

    rename(folder / "model.safetensors", name_as_then)
    model, expected = ka.pretrained.load(folder), ka.pretrained.load(FOLDER / "bert-masked")
    for ours, theirs in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    ka.pretrained.save(model, tmp_path / "new")
    written = ka.pretrained.checkpoint.Checkpoint(tmp_path / "new").tensors
    assert "bert.embeddings.LayerNorm.weight" in written


def test_a_norm_with_old_and_new_names_is_refused(tmp_path):
    folder = shutil.copytree(FOLDER / "bert-masked", tmp_path / "both")
    twice = {"bert.embeddings.LayerNorm.bias": "bert.embeddings.LayerNorm.gamma"}
    rename(folder / "model.safetensors", lambda name: twice.get(name, name))
    with pytest.raises(CheckpointError, match=r"LayerNorm\.weight is in model\.safetensors, too"):
        ka.pretrained.load(folder)


def test_the_longer_settings_of_a_tower_have_precedence(tmp_path):
    folder = shutil.copytree(FOLDER / "clip-texts", tmp_path / "clip")
    tower = json.loads((folder / "config.json").read_text())["text_config"]
    change_config(folder, lambda _: {"text_config_dict": tower | {"hidden_act": "relu"}})
    actual = ka.pretrained.describe(folder, task="text_encoder")
    assert actual.keywords["activation"] == "relu"


LAYERS = {
    "mistral": "num_hidden_layers",
    "gemma-2": "num_hidden_layers",
    "modernbert": "num_hidden_layers",
    "t5": "num_decoder_layers",
    "gpt2": "n_layer",
    "whisper": "encoder_layers",
}


@pytest.mark.parametrize("name, key", LAYERS.items())
def test_too_many_layers_are_refused(name, key, tmp_path):
    folder = shutil.copytree(FOLDER / name, tmp_path / name)

    change_config(folder, lambda _: {key: 2**31 - 1, "layer_types": None})
    with pytest.raises(CheckpointError, match=f"{key} is 2147483647: expected .* to 1000"):
        ka.pretrained.describe(folder)


@pytest.mark.slow
def test_bart_without_a_head_is_loaded(tmp_path):
    """Load a BartModel as in bart-base, without a prefix and a bias of logits."""
    folder = shutil.copytree(FOLDER / "bart", tmp_path / "bart")
    change_config(folder, lambda _: {"architectures": ["BartModel"]})
    model = ka.pretrained.load(folder)
    rename(
        folder / "model.safetensors",
        lambda name: name.removeprefix("model.").replace("final_logits_bias", "encoder.version"),
    )
    actual = ka.pretrained.describe(folder)
    assert actual.builder == "encoder_decoder" and actual.keywords["logit_bias"] is False
    inputs = {"source_ids": np.array([[3, 5, 2]]), "target_ids": np.array([[2, 4]])}
    headless = ka.pretrained.load(folder)
    bias = name_weights(model)["decoder/embedding/bias"]
    bias.assign(np.zeros(bias.shape))
    np.testing.assert_allclose(headless(inputs), model(inputs), atol=1e-6)


def test_older_class_names_are_read(tmp_path):
    for name, older in (("t5", "T5WithLMHeadModel"), ("t5", "T5Model"), ("gpt2", "GPT2Model")):
        folder = shutil.copytree(FOLDER / name, tmp_path / older)
        expected = describe(folder)
        change_config(folder, lambda _, older=older: {"architectures": [older]})
        assert describe(folder) == expected
