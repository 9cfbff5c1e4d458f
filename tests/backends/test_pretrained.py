"""Checkpoints made anew by transformers: the same outputs, and the same greedy texts."""

import shutil

import numpy as np
import pytest

import keras_attention as ka
from tests.pretrained import make_checkpoints
from tests.pretrained.test_parity import assert_equal, options_of, read_expected
from tests.pretrained.test_resized_positions import read_resized
from tests.tasks.checkpoint_files import write_picture_settings
from tests.tasks.test_image_text_matcher import MEAN, STD, TOKENIZERS


@pytest.mark.parametrize("name", make_checkpoints.CHECKPOINTS)
def test_the_committed_checkpoints_are_what_transformers_makes(name, tmp_path):
    make_checkpoints.make(name, tmp_path)
    assert_equal(tmp_path / name, **options_of(name))
    _, new = read_expected(tmp_path / name)
    _, committed = read_expected(make_checkpoints.FOLDER / name)
    np.testing.assert_allclose(new, committed, atol=1e-4)
    if name in make_checkpoints.WRITTEN:
        texts = [folder / name / "written.npz" for folder in (tmp_path, make_checkpoints.FOLDER)]
        np.testing.assert_array_equal(*(np.load(path)["ids"] for path in texts))
    if name in make_checkpoints.RESIZED:
        _, new = read_resized(tmp_path / name)
        _, committed = read_resized(make_checkpoints.FOLDER / name)
        np.testing.assert_allclose(new, committed, atol=1e-4)


def test_logits_of_images_and_texts_are_those_of_transformers(tmp_path, monkeypatch):
    """Open CLIP and SigLIP with both encoders, and compare the logits of all pairs."""
    import torch

    for name, write_tokenizer in TOKENIZERS.items():
        kind, of_config, settings, stored = make_checkpoints.CHECKPOINTS[name]
        if name == "siglip":  # the vectors of both encoders must have one size
            width = settings["vision_config"]["hidden_size"]
            texts = settings["text_config"] | {"projection_size": width}
            settings = settings | {"text_config": texts}
        made = make_checkpoints.CHECKPOINTS | {name: (kind, of_config, settings, stored)}
        monkeypatch.setattr(make_checkpoints, "CHECKPOINTS", made)
        theirs = make_checkpoints.make(name, tmp_path)
        write_tokenizer(write_picture_settings(tmp_path / name))
        task = ka.tasks.ImageTextMatcher.from_preset(tmp_path / name)
        images = np.random.default_rng(0).random((4, 12, 12, 3)).astype("float32")
        texts = ["the cat", "a dog sat on the mat", "a"]
        pixels = ((images - MEAN) / STD).astype("float32").transpose(0, 3, 1, 2)
        ids = torch.tensor(task.preprocessor(texts)).long()
        with torch.no_grad():
            outputs = theirs(input_ids=ids, pixel_values=torch.tensor(pixels))
        expected = outputs.logits_per_image.numpy()
        assert expected.shape == (4, 3) and (name == "siglip") == (task.bias is not None)
        np.testing.assert_allclose(task.compare(images, texts), expected, rtol=1e-5, atol=2e-5)
        shares = [
            [one.probability for one in sorted(row)]
            for row in task.classify(images, texts, template="{}", top=3)
        ]
        shown = outputs.logits_per_image
        shown = torch.sigmoid(shown) if name == "siglip" else shown.softmax(dim=1)
        order = np.argsort(texts)
        np.testing.assert_allclose(shares, shown.numpy()[:, order], atol=1e-5)


LONGER = {"gpt2": "n_positions", "llama-3": None, "qwen2": None, "t5": None,
          "marian": "max_position_embeddings"}  # fmt: skip
PROMPTS = [[5, 0, 3, 9, 12], [0, 7], [4]]


@pytest.mark.parametrize("name", LONGER)
def test_greedy_texts_are_those_of_transformers(name, tmp_path, monkeypatch):
    import torch

    kind, of_config, settings, _ = make_checkpoints.CHECKPOINTS[name]
    if LONGER[name]:
        settings = settings | {LONGER[name]: 128}
    made = {name: (kind, of_config, settings, {})}
    monkeypatch.setattr(make_checkpoints, "CHECKPOINTS", made)
    theirs = make_checkpoints.make(name, tmp_path)
    ours = ka.pretrained.load(tmp_path / name)
    begin = {}
    if theirs.config.is_encoder_decoder:
        begin = {"start_token_id": theirs.config.decoder_start_token_id}
    padding = theirs.config.pad_token_id
    written = ka.generation.generate(ours, PROMPTS, 64, padding_id=None, **begin)
    theirs.generation_config.eos_token_id = theirs.generation_config.forced_eos_token_id = None
    theirs.generation_config.pad_token_id = 0 if padding is None else padding
    theirs.generation_config.bad_words_ids = None
    for prompt, row in zip(PROMPTS, written, strict=True):
        ids = torch.tensor([prompt])
        tokens = torch.ones_like(ids) if padding is None else (ids != padding).long()
        their_ids = theirs.generate(ids, attention_mask=tokens, max_new_tokens=64, do_sample=False)
        their_ids = their_ids[0].numpy()
        new = their_ids[1:] if begin else their_ids[len(prompt) :]
        np.testing.assert_array_equal(row, new)


FINE_TUNED = ["bert", "roberta-masked", "electra-masked", "distilbert-masked", "modernbert-masked"]


@pytest.mark.parametrize("name", FINE_TUNED)
def test_transformers_load_what_was_fine_tuned_here(name, tmp_path):
    import torch
    import transformers

    ours = ka.pretrained.load(make_checkpoints.FOLDER / name, task="text_classifier", num_classes=3)
    random = np.random.default_rng(0)
    for variable in ours.trainable_variables:
        variable.assign_add(random.normal(size=variable.shape, scale=0.05).astype("float32"))
    ka.pretrained.save(ours, tmp_path / "saved", labels=["a", "b", "c"])
    theirs, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "saved", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert theirs.config.id2label == {0: "a", 1: "b", 2: "c"}
    inputs, _ = read_expected(make_checkpoints.FOLDER / name)
    ids = torch.tensor(inputs["token_ids"])
    their_inputs = {"attention_mask": (ids != theirs.config.pad_token_id).long()}
    if "segment_ids" in inputs:
        their_inputs["token_type_ids"] = torch.tensor(inputs["segment_ids"])
    with torch.no_grad():
        expected = theirs.eval()(input_ids=ids, **their_inputs).logits.numpy()
    actual = ours(inputs if len(inputs) > 1 else inputs["token_ids"])
    np.testing.assert_allclose(actual, expected, atol=2e-5)


def test_transformers_load_a_new_head_of_a_distilled_checkpoint(tmp_path):
    import torch
    import transformers

    folder = make_checkpoints.FOLDER / "deit-distilled"
    ours = ka.pretrained.load(folder, task="vision_transformer", num_classes=4)
    ka.pretrained.save(ours, tmp_path / "saved", labels=["a", "b", "c", "d"])
    theirs, info = transformers.DeiTForImageClassificationWithTeacher.from_pretrained(
        tmp_path / "saved", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    images = read_expected(folder)[0]["images"]
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor(images.transpose(0, 3, 1, 2))).logits.numpy()
    np.testing.assert_allclose(ours(images), expected, atol=2e-5)


def test_ids_of_tokenizers_are_those_of_transformers(tmp_path):
    """Compare `tokenizer.json`, and only `vocab.txt`, for texts and pairs."""
    import transformers

    from tests.data.tokenizers.test_pretrained import LINES, train_word_piece

    folder = tmp_path / "bert"
    shutil.copytree(make_checkpoints.FOLDER / "bert", folder)
    (folder / "tokenizer.json").write_bytes(train_word_piece(True))
    ours = ka.pretrained.tokenizer(folder, max_length=12)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]"
    )
    expected = theirs(LINES, LINES[::-1], truncation=True, max_length=12)["input_ids"]
    assert ours.encode(LINES, LINES[::-1]) == expected
    assert ours.encode(LINES) == theirs(LINES, truncation=True, max_length=12)["input_ids"]


def test_whisper_writes_and_hears_as_transformers_does(tmp_path):
    import torch
    import transformers
    from transformers.generation import GenerationMixin

    theirs = make_checkpoints.make("whisper", tmp_path)
    extractor = transformers.WhisperFeatureExtractor(chunk_length=1)
    samples = np.random.default_rng(0).normal(size=9000, scale=0.1).astype("float32")
    expected = extractor(samples, sampling_rate=16000, return_tensors="np").input_features[0].T
    padded = np.pad(samples, (0, 16000 - len(samples)))[None]
    actual = np.asarray(ka.blocks.LogMelSpectrogram(80, "whisper")(padded))[0]
    np.testing.assert_allclose(actual, expected, atol=1e-4)
    ours = ka.pretrained.load(tmp_path / "whisper")
    inputs, _ = read_expected(tmp_path / "whisper")
    written = ka.generation.generate(
        ours, {"features": inputs["features"]}, 12, start_token_id=30, padding_id=None
    )
    theirs.generation_config.eos_token_id = None
    features = torch.tensor(inputs["features"].transpose(0, 2, 1))
    # What Whisper's own `generate` adds, languages and pauses, is not of so small a vocabulary.
    ids = GenerationMixin.generate(theirs, features, max_new_tokens=12, do_sample=False)
    np.testing.assert_array_equal(written, ids[:, 1:].numpy())


def test_languages_are_called_as_in_transformers():
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    from keras_attention.data.preprocessors.speech_prompt import NAMES

    assert NAMES == {name.replace(" ", "_"): code for code, name in LANGUAGES.items()}
