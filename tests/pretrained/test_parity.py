"""Checkpoints of transformers, committed with the outputs of the originals.

`make_checkpoints.py` made them. `tests/backends/test_pretrained.py` makes them again with PyTorch.
"""

import json
import shutil

import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.pretrained.architecture import ARCHITECTURES, find_architecture
from keras_attention.pretrained.checkpoint import read_header
from tests.grids import sampled
from tests.pretrained.make_checkpoints import CHECKPOINTS, FOLDER
from tests.tables import assert_lists


def read_expected(folder):
    with np.load(folder / "expected.npz") as file:
        arrays = dict(file)
    return arrays, arrays.pop("expected")


def is_counted(inputs, model_type, padding):
    """Return which outputs belong to tokens. Outputs at padding may differ."""
    ids = inputs.get("token_ids")
    return slice(None) if ids is None or padding is None else ids != padding


def find_answers(model, inputs):
    """Return the logits (B, T, 2) of a `question_answerer`, and where they are not -100."""
    outputs = model(inputs)
    actual = [ops.convert_to_numpy(outputs.pop(name)) for name in ("start_logits", "end_logits")]
    assert model.name == "question_answerer" and not outputs
    counted = inputs["segment_ids"] == 1
    counted[:, 0] = True
    assert all((x[~counted] == -100).all() for x in actual)
    return np.stack(actual, axis=-1), counted


def assert_equal(folder, **options):
    """Compare the outputs of a folder's model with `expected.npz`."""
    inputs, expected = read_expected(folder)
    model = ka.pretrained.load(folder, **options)
    arguments = inputs if len(inputs) > 1 else next(iter(inputs.values()))
    config = json.loads((folder / "config.json").read_text())
    counted = is_counted(inputs, config["model_type"], config.get("pad_token_id"))
    counted = counted if expected.ndim == 3 else slice(None)
    if isinstance(model.output, dict):
        actual, answers = find_answers(model, arguments)
        counted = counted & answers
    else:
        actual = ops.convert_to_numpy(model(arguments))
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual[counted], expected[counted], atol=1e-5, rtol=1e-5)
    return model


def options_of(name):
    """Return the options that choose a tower, if a checkpoint has two."""
    stored = CHECKPOINTS[name][-1]
    return {"task": stored["task"]} if "task" in stored else {}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_outputs_equal_the_originals(name):
    assert_equal(FOLDER / name, **options_of(name))


def test_every_architecture_has_a_checkpoint():
    kinds = {
        json.loads((FOLDER / n / "config.json").read_text())["model_type"] for n in CHECKPOINTS
    }
    modules = {find_architecture(kind, "config.json").__name__.split(".")[-1] for kind in kinds}
    assert_lists("CHECKPOINTS of tests/pretrained/make_checkpoints.py", modules, set(ARCHITECTURES))


def test_describe_reports_the_model_a_checkpoint_builds():
    actual = ka.pretrained.describe(FOLDER / "llama-3")
    assert (actual.model_type, actual.builder) == ("llama", "causal_language_model")
    assert actual.keywords["num_key_value_heads"] == 1 and actual.keywords["padding_id"] is None
    assert actual.dtypes == ("bfloat16",) and not actual.fresh_head
    assert actual.parameters == ka.pretrained.load(FOLDER / "llama-3").count_params()


def test_describe_lists_unused_tensors():
    assert ka.pretrained.describe(FOLDER / "bert-masked").unused == ()
    actual = ka.pretrained.describe(FOLDER / "bert-texts", task="text_encoder")
    assert actual.unused == (
        *("bert.pooler.dense.bias", "bert.pooler.dense.weight"),
        *("classifier.bias", "classifier.weight"),
    )
    assert (
        actual.parameters
        == ka.pretrained.load(FOLDER / "bert-texts", task="text_encoder").count_params()
    )


def test_tied_logits_that_are_stored_twice_are_unused(tmp_path):
    """Add a copy of the embeddings under the name of the logits, as in some files."""
    shutil.copytree(FOLDER / "qwen2", tmp_path / "qwen2")
    path = tmp_path / "qwen2" / "model.safetensors"
    tensor = read_header(path)["model.embed_tokens.weight"].read()
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, begin = json.loads(data[8 : 8 + length]), len(data) - 8 - length
    place = {"data_offsets": [begin, begin + tensor.nbytes]}
    header["lm_head.weight"] = header["model.embed_tokens.weight"] | place
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :] + tensor.tobytes())
    assert ka.pretrained.describe(tmp_path / "qwen2").unused == ("lm_head.weight",)
    assert_equal(tmp_path / "qwen2")


def test_a_new_head_keeps_the_pooler_of_the_file():
    inputs, _ = read_expected(FOLDER / "bert")
    old = ka.pretrained.load(FOLDER / "bert-texts")
    new = ka.pretrained.load(FOLDER / "bert-texts", task="text_classifier", num_classes=7)
    other = ka.pretrained.load(FOLDER / "bert", task="text_classifier", num_classes=7)
    assert other(inputs).shape == new(inputs).shape == (3, 7)
    kernels = [np.asarray(ops.convert_to_numpy(m.get_layer("pooler").kernel)) for m in (old, new)]
    np.testing.assert_array_equal(*kernels)


@pytest.mark.slow
def test_an_encoder_gets_a_new_head():
    inputs, _ = read_expected(FOLDER / "bert")
    whole = ka.pretrained.load(FOLDER / "bert")
    hidden = np.asarray(whole(inputs))
    tagger = ka.pretrained.load(FOLDER / "bert", task="sequence_labeler", num_classes=6)
    head = tagger.get_layer("logits")
    expected = hidden @ np.asarray(head.kernel) + np.asarray(head.bias)
    np.testing.assert_allclose(tagger(inputs), expected, atol=1e-5)
    other = ka.pretrained.load(FOLDER / "bert-texts", task="text_classifier", num_classes=7)
    assert other.output_shape == (None, 7)
    tagger.compile("adam", ka.training.MaskedSparseCategoricalCrossentropy())
    history = tagger.fit(inputs, inputs["token_ids"] % 6, epochs=30, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]


def change_config(name, folder, change):
    """Copy a checkpoint with other settings. None removes a setting."""
    shutil.copytree(FOLDER / name, folder)
    config = json.loads((folder / "config.json").read_text()) | change
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_older_settings_of_modernbert_are_read(tmp_path):
    """Use the settings of transformers 4."""
    older = dict(layer_types=None, rope_parameters=None, global_attn_every_n_layers=3,
                 global_rope_theta=500.0, local_rope_theta=50.0, position_embedding_type="absolute",
                 layer_norm_eps=1e-5, reference_compile=True)  # fmt: skip
    assert_equal(change_config("modernbert-masked", tmp_path / "older", older))


def test_a_new_head_keeps_the_transform_of_the_file():
    name = FOLDER / "modernbert-masked"
    old = ka.pretrained.load(name)
    new = ka.pretrained.load(name, task="text_classifier", num_classes=7)
    assert new.get_layer("pooling").mode == "cls" and new.output_shape == (None, 7)
    for layer in ("transform", "transform_norm"):
        weights = [ops.convert_to_numpy(m.get_layer(layer).weights[0]) for m in (old, new)]
        np.testing.assert_array_equal(*weights)
    actual = ka.pretrained.describe(name, task="sequence_labeler", num_classes=2)
    assert actual.unused == ("decoder.bias",)
    labeler = ka.pretrained.load(FOLDER / "modernbert", task="sequence_labeler", num_classes=2)
    assert labeler.get_layer("transform_norm").weights  # a new layer


def test_a_new_head_may_change_the_pooling():
    name = FOLDER / "modernbert-texts"
    new = ka.pretrained.load(name, task="text_classifier", num_classes=7)
    first = ka.pretrained.load(name, task="text_classifier", num_classes=7, pooling="first")
    assert [m.get_layer("pooling").mode for m in (new, first)] == ["mean", "cls"]


def test_an_image_tower_gets_a_new_head():
    inputs, _ = read_expected(FOLDER / "siglip")
    new = ka.pretrained.load(FOLDER / "siglip", task="vision_transformer", num_classes=7)
    assert new(inputs["images"]).shape == (2, 7)
    assert ka.pretrained.load(
        FOLDER / "siglip-images-alone", task="vision_transformer", num_classes=7
    ).output_shape == (None, 7)


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("siglip", {}, "Give one of image_encoder, text_encoder, vision_transformer"),
        ("siglip-texts-alone", {"task": "text_classifier"}, "loads as one of text_encoder[.]"),
        ("clip", {"task": "vision_transformer"}, "Give one of image_encoder, text_encoder[.]"),
        ("bert", {"task": "sequence_labeler"}, "A new head needs num_classes="),
        ("bert", {"task": "vision_transformer"}, "a text_encoder loads as one of text_encoder"),
        ("bert", {"task": "masked_language_model"}, "has no such head"),
        ("gpt2", {"num_classes": 3}, "num_classes=3 is for"),
        ("gpt2", {"task": "text_encoder"}, "loads as one of causal_language_model"),
    ],
)
def test_unsuitable_tasks_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        ka.pretrained.load(FOLDER / name, **options)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model_type": "mamba"}, "model_type='mamba': expected one of albert, bart, bert"),
        ({"is_decoder": True}, "is_decoder is true: expected none"),
        ({"hidden_act": "snake"}, "hidden_act is 'snake': expected one of gelu"),
        ({"num_hidden_layers": 2**30}, "1073741824: expected a whole number from 1 to 1000"),
        ({"num_attention_heads": 5}, "cannot be built: num_heads=5 does not divide"),
        ({"hidden_size": "wide"}, "hidden_size is 'wide': expected a whole number"),
        ({"num_hidden_layers": 3}, "lacks the tensor .*layer.2"),
        ({"num_hidden_layers": 1}, "has the tensor .*layer.1.*for which the model has no weight"),
        ({"vocab_size": 32}, r"word_embeddings.weight \(31, 12\) does not make embedding/table"),
        ({"rotary_value": True}, "rotary_value=True, a setting that the loader of a bert"),
        ({"architectures": ["BertForHaiku"]}, "is for a BertForHaiku: expected one of"),
        ({"position_embedding_type": "relative_key"}, "expected one of absolute"),
    ],
)
def test_unknown_settings_are_refused(change, message, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(FOLDER / "bert-masked", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ka.pretrained.CheckpointError, match=message):
        ka.pretrained.load(folder)


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("modernbert", {"rope_scaling": {"factor": 2.0}}, "rope_scaling is .*expected none"),
        (
            "modernbert",
            {"layer_types": ["full_attention", "mamba"]},
            "layer_types holds 'mamba': expected some",
        ),
        ("modernbert", {"rope_parameters": {"rope_theta": 1.0}}, "rope_parameters with 'rope_t"),
        (
            "modernbert",
            {"hidden_activation": "tanh"},
            "hidden_activation is 'tanh': expected one of",
        ),
        ("modernbert", {"mlp_bias": False}, "mlp_bias is false: expected true, like attention"),
        ("modernbert-masked", {"tie_word_embeddings": False}, "tie_word_embeddings=False"),
        ("modernbert-texts", {"classifier_pooling": "max"}, "expected one of cls, mean"),
        (
            "gemma-2",
            {"layer_types": ["sliding_attention", "mamba"]},
            "layer_types holds 'mamba': expected some",
        ),
        ("gemma-2", {"sliding_window_size": 5}, "sliding_window_size is 5: expected one of 3"),
        ("gemma-2", {"attn_logit_softcapping": "high"}, "softcapping is 'high': expected a number"),
        ("gemma-3", {"final_logit_softcapping": 30.0}, "softcapping is 30.0: expected none"),
        ("siglip-images-alone", {"model_type": "siglip2"}, "model_type='siglip2': expected one of"),
        ("siglip-images-alone", {"num_patches": 9}, "num_patches=9, a setting that the loader"),
        ("siglip-texts-alone", {"hidden_act": "snake"}, "hidden_act is 'snake'"),
    ],
)
def test_invalid_settings_of_newer_architectures_are_refused(name, change, message, tmp_path):
    with pytest.raises(ka.pretrained.CheckpointError, match=message):
        ka.pretrained.load(change_config(name, tmp_path / "changed", change))


def test_missing_soft_caps_of_gemma_2_get_defaults(tmp_path):
    """Check that a missing soft cap has Gemma 2's default, and that null means none."""
    caps = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
    folder = change_config("gemma-2", tmp_path / "missing", caps)
    actual = ka.pretrained.describe(folder).keywords
    assert (actual["normalizer"].soft_cap, actual["logit_soft_cap"]) == (50.0, 30.0)
    config = json.loads((folder / "config.json").read_text()) | caps
    (folder / "config.json").write_text(json.dumps(config))
    actual = ka.pretrained.describe(folder).keywords
    assert actual["normalizer"].soft_cap is actual["logit_soft_cap"] is None


def test_missing_layer_types_of_gemma_2_alternate(tmp_path):
    """Remove the list, as in older files. Then every second layer has a window."""
    assert_equal(change_config("gemma-2", tmp_path / "older", {"layer_types": None}))


@pytest.mark.slow
def test_whisper_computes_spectrograms_from_waveforms(tmp_path):
    """Compare tokens from waveforms with tokens from spectrograms, padded with silence."""
    folder = shutil.copytree(FOLDER / "whisper", tmp_path / "whisper")
    with pytest.raises(ka.pretrained.CheckpointError, match="no preprocessor_config.json"):
        ka.pretrained.load(folder, waveform=True)
    settings = {"feature_size": 80, "sampling_rate": 16000, "hop_length": 160, "n_fft": 400,
            "chunk_length": 0.2, "feature_extractor_type": "WhisperFeatureExtractor"}  # fmt: skip
    file = folder / "preprocessor_config.json"
    for change, message in (
        ({"hop_length": 200}, "hop_length is 200: expected one of 160"),
        ({"chunk_length": 30}, "chunk_length=30, but the model takes 20 frames"),
        ({"warp": 2}, "warp=2, a setting that the loader"),
    ):
        file.write_text(json.dumps(settings | change))
        with pytest.raises(ka.pretrained.CheckpointError, match=message):
            ka.pretrained.load(folder, waveform=True)
    file.write_text(json.dumps(settings))
    heard, model = ka.pretrained.load(folder, waveform=True), ka.pretrained.load(folder)
    samples = np.random.default_rng(0).normal(size=(1, 2000), scale=0.1).astype("float32")
    silence = np.pad(samples, [(0, 0), (0, 1200)])
    features = np.asarray(ka.blocks.LogMelSpectrogram(80, "whisper")(silence))
    sound = {"waveform": samples, "lengths": np.array([2000])}
    options = {"start_token_id": 30, "end_token_id": 29}
    actual = ka.generation.generate(heard, sound, 8, **options)
    expected = ka.generation.generate(model, {"features": features}, 8, **options)
    np.testing.assert_array_equal(actual, expected)
    with pytest.raises(ValueError, match="waveform=True is for speech, but this is a text_enc"):
        ka.pretrained.load(FOLDER / "bert", waveform=True)


PROMPTS = [[5, 0, 3, 9], [0, 7], [1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(["gpt2", "llama-3", "mistral", "qwen3", "gemma-2"], 2))
def test_generation_with_a_cache_equals_the_whole_sequence(name):
    """Generate from prompts of different lengths that contain id 0."""
    model = ka.pretrained.load(FOLDER / name)
    together = ka.generation.generate(model, PROMPTS, 6)
    for prompt, row in zip(PROMPTS, together, strict=True):
        text = list(prompt)
        for token in row:
            assert token == np.asarray(model(np.array([text])))[0, -1].argmax()
            text.append(int(token))
