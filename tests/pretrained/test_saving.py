"""Models saved as files of Hugging Face."""

import json
import shutil

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.pretrained.checkpoint import Checkpoint
from tests.grids import quick
from tests.pretrained.make_checkpoints import CHECKPOINTS, FOLDER
from tests.pretrained.test_parity import options_of, read_expected

# Tied logits, which some files store twice, and ours once.
TIED = {"lm_head.weight", "cls.predictions.decoder.weight", "generator_lm_head.weight",
        "vocab_projector.weight", "predictions.decoder.weight"}  # fmt: skip


def copies(name):
    """Return whether a tensor is a copy of the embeddings."""
    return name in TIED or name.endswith("embed_tokens.weight")


# An encoder with a head, a decoder, an encoder-decoder, images, speech, two towers.
ONE_OF_A_KIND = ("roberta-answers", "gpt2", "t5", "vit-headless", "whisper", "clip")


@pytest.mark.parametrize("name", quick(CHECKPOINTS, *ONE_OF_A_KIND))
def test_unchanged_checkpoints_are_saved_bit_for_bit(name, tmp_path):
    model = ka.pretrained.load(FOLDER / name, **options_of(name))
    ka.pretrained.save(model, tmp_path / "saved")
    before, after = Checkpoint(FOLDER / name), Checkpoint(tmp_path / "saved")
    assert before.config == after.config
    assert {n for n in before.tensors.keys() ^ after.tensors.keys() if not copies(n)} == set()
    for tensor in after.tensors:
        actual, expected = after.tensors[tensor], before.tensors[tensor]
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert actual.read().tobytes() == expected.read().tobytes(), tensor


@pytest.mark.parametrize("name", quick(CHECKPOINTS, *ONE_OF_A_KIND))
def test_changed_weights_survive_saving_and_loading(name, tmp_path):
    """Change every weight, so that every conversion is inverted."""
    model = ka.pretrained.load(FOLDER / name, **options_of(name))
    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        change = random.normal(size=variable.shape, scale=0.1)
        variable.assign(ops.convert_to_numpy(variable) + change.astype("float32"))
    ka.pretrained.save(model, tmp_path / "saved")
    again = ka.pretrained.load(tmp_path / "saved", **options_of(name))
    half = {t.dtype for t in Checkpoint(FOLDER / name).tensors.values()} & {"bfloat16", "float16"}
    tolerance = {"atol": 0.03, "rtol": 0.01} if half else {"atol": 1e-6}
    for actual, expected in zip(again.weights, model.weights, strict=True):
        np.testing.assert_allclose(
            *map(ops.convert_to_numpy, (actual, expected)), **tolerance, err_msg=expected.path
        )


HEADS = ["bert", "bert-masked", "bert-texts", "roberta-masked", "modernbert", "modernbert-masked"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_a_new_head_changes_the_class_in_the_config(name, tmp_path):
    model = ka.pretrained.load(FOLDER / name, task="text_classifier", num_classes=4)
    ka.pretrained.save(model, tmp_path / "saved", labels=["a", "b", "c", "d"])
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["architectures"][0].endswith("ForSequenceClassification")
    assert config["id2label"] == {"0": "a", "1": "b", "2": "c", "3": "d"}
    actual = ka.pretrained.describe(tmp_path / "saved")
    assert actual.builder == "text_classifier" and not actual.fresh_head
    inputs, _ = read_expected(FOLDER / name)
    inputs = inputs if len(inputs) > 1 else inputs["token_ids"]
    again = ka.pretrained.load(tmp_path / "saved")
    np.testing.assert_allclose(again(inputs), model(inputs), atol=1e-6)


@pytest.mark.slow
def test_the_pooling_of_modernbert_is_saved(tmp_path):
    options = {"task": "text_classifier", "num_classes": 2, "pooling": "mean"}
    model = ka.pretrained.load(FOLDER / "modernbert-masked", **options)
    ka.pretrained.save(model, tmp_path / "saved")
    again = ka.pretrained.load(tmp_path / "saved")
    assert again.get_layer("pooling").mode == "mean"
    before, after = (Checkpoint(x) for x in (FOLDER / "modernbert-masked", tmp_path / "saved"))
    assert after.config["classifier_pooling"] == "mean"
    assert before.tensors.keys() - after.tensors.keys() == {"decoder.bias"}
    assert after.tensors.keys() - before.tensors.keys() == {"classifier.weight", "classifier.bias"}
    options |= {"num_classes": 3, "pooling": "first"}  # as many labels as in the file
    model = ka.pretrained.load(FOLDER / "modernbert-texts", **options)
    ka.pretrained.save(model, tmp_path / "again")
    assert ka.pretrained.load(tmp_path / "again").get_layer("pooling").mode == "cls"
    other = ka.pretrained.load(FOLDER / "modernbert", **options | {"pooling": "max"})
    with pytest.raises(ValueError, match="pooling='first' or pooling='mean', but this model"):
        ka.pretrained.save(other, tmp_path / "other")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["siglip", "siglip-labels"])
def test_an_image_tower_with_labels_is_saved(name, tmp_path):
    model = ka.pretrained.load(FOLDER / name, task="vision_transformer", num_classes=3)
    ka.pretrained.save(model, tmp_path / "saved", labels=["a", "b", "c"])
    after = Checkpoint(tmp_path / "saved")
    assert after.config["architectures"] == ["SiglipForImageClassification"]
    assert not any(tensor.startswith(("text_model", "logit_")) for tensor in after.tensors)
    inputs, _ = read_expected(FOLDER / name)
    again = ka.pretrained.load(tmp_path / "saved")
    np.testing.assert_allclose(again(inputs["images"]), model(inputs["images"]), atol=1e-6)


def test_labels_on_a_single_tower_are_refused(tmp_path):
    options = {"task": "vision_transformer", "num_classes": 3}
    model = ka.pretrained.load(FOLDER / "siglip-images-alone", **options)
    with pytest.raises(ValueError, match="only one tower, for which Hugging Face has no head"):
        ka.pretrained.save(model, tmp_path / "saved")


def test_a_reloaded_model_needs_its_checkpoint_to_be_saved(tmp_path):
    model = ka.pretrained.load(FOLDER / "bert-tokens")
    model = ka.models.replace_head(model, 6)
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="was not loaded by load.. in this session. Give check"):
        ka.pretrained.save(model, tmp_path / "saved")
    ka.pretrained.save(model, tmp_path / "saved", checkpoint=FOLDER / "bert-tokens")
    assert ka.pretrained.load(tmp_path / "saved").output_shape[-1] == 6


def test_save_copies_the_tokenizer(tmp_path):
    shutil.copytree(FOLDER / "bert", tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncat")
    ka.pretrained.save(ka.pretrained.load(tmp_path / "bert"), tmp_path / "saved")
    assert (tmp_path / "saved" / "vocab.txt").is_file()


def test_save_refuses_settings_hugging_face_does_not_support(tmp_path):
    model = ka.pretrained.load(
        FOLDER / "bert", task="text_classifier", num_classes=2, pooling="mean"
    )
    with pytest.raises(ValueError, match="take pooling='first', but this model has pooling='mean'"):
        ka.pretrained.save(model, tmp_path / "saved")
    with pytest.raises(ValueError, match="labels has 1 names: expected 2 different names"):
        new = ka.pretrained.load(FOLDER / "bert", task="text_classifier", num_classes=2)
        ka.pretrained.save(new, tmp_path / "saved", labels=["a"])
    assert not (tmp_path / "saved").exists()


MODULES = ("Transformer", "Pooling", "Normalize")


def make_sentence_transformer(folder):
    """Make a checkpoint of Sentence Transformers with mean pooling and unit length."""
    shutil.copytree(FOLDER / "bert", folder)
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": i, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(MODULES, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_save_copies_folders_of_sentence_transformers(tmp_path):
    folder = make_sentence_transformer(tmp_path / "encoder")
    model = ka.pretrained.load(folder)
    ka.pretrained.save(model, tmp_path / "saved")
    for name in ("modules.json", "1_Pooling/config.json"):
        assert (tmp_path / "saved" / name).read_bytes() == (folder / name).read_bytes()
    again = ka.pretrained.load(tmp_path / "saved")
    inputs, _ = read_expected(FOLDER / "bert")
    np.testing.assert_array_equal(again(inputs), model(inputs))
    modules = (folder / "modules.json").read_text()
    (folder / "modules.json").write_text(modules.replace("Normalize", "Dense"))  # not supported
    alone = ka.pretrained.load(folder, pooling=None)
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"numbers")
    ka.pretrained.save(alone, tmp_path / "alone")
    assert (tmp_path / "alone" / "2_Dense" / "model.safetensors").read_bytes() == b"numbers"
    for place in ("..", "../encoder", "/tmp"):
        (folder / "modules.json").write_text(modules.replace("2_Normalize", place))
        with pytest.raises(ValueError, match="has the path '.*': expected a plain name"):
            ka.pretrained.save(model, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_a_distilled_checkpoint_is_saved_with_two_heads(tmp_path):
    """Save a head over both tokens as transformers' two heads."""
    options = {"task": "vision_transformer", "num_classes": 4}
    model = ka.pretrained.load(FOLDER / "deit-distilled", **options)
    head = model.get_layer("logits")
    head.bias.assign([0.1, 0.2, 0.3, 0.4])
    ka.pretrained.save(model, tmp_path / "saved", labels=["a", "b", "c", "d"])
    after = Checkpoint(tmp_path / "saved")
    assert after.config["architectures"] == ["DeiTForImageClassificationWithTeacher"]
    assert after.config["label2id"] == {"a": 0, "b": 1, "c": 2, "d": 3}
    kernel, dim = ops.convert_to_numpy(head.kernel), after.config["hidden_size"]
    for k, name in enumerate(("cls_classifier", "distillation_classifier")):
        actual = after.tensors[f"{name}.weight"].read()
        np.testing.assert_allclose(actual.T, 2 * kernel[k * dim : (k + 1) * dim], rtol=1e-6)
    again = ka.pretrained.load(tmp_path / "saved")
    images = read_expected(FOLDER / "deit-distilled")[0]["images"]
    np.testing.assert_allclose(again(images), model(images), atol=1e-6)


def test_save_requires_merging_lora_weights_first(tmp_path):
    model = ka.pretrained.load(FOLDER / "bert-texts")
    ka.training.enable_lora(model, 2)
    with pytest.raises(ValueError, match=r"has LoRA weights.*call ka.training.merge_lora\(model"):
        ka.pretrained.save(model, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    ka.training.merge_lora(model)
    ka.pretrained.save(model, tmp_path / "saved")


def test_given_labels_replace_those_of_the_file(tmp_path):
    model = ka.pretrained.load(FOLDER / "bert-texts")
    ka.pretrained.save(model, tmp_path / "saved", labels=["x", "y", "z"])
    config = Checkpoint(tmp_path / "saved").config
    assert config["id2label"] == {"0": "x", "1": "y", "2": "z"}
    assert config["architectures"] == Checkpoint(FOLDER / "bert-texts").config["architectures"]
