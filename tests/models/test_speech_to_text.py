"""Sound to text: padding, cache, the fixed length of Whisper, files."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
random = np.random.default_rng(0)
BEGIN = {"start_token_id": 1, "end_token_id": 2}


def make(sound=None, **kwargs):
    embedding = ka.models.SpeechEmbedding(**{"num_mel_bins": 12, **(sound or {})})
    return draw(ka.models.speech_to_text(9, embedding=embedding, **{**SIZE, **kwargs}))


def make_encoder(**attention):
    return ka.models.TransformerEncoder(
        1,
        attention=ka.attention.MultiHeadAttention(2, 8, **attention),
        feed_forward=ka.blocks.FeedForward(20),
    )


def draw(model):
    generator = np.random.default_rng(1)
    for weight in model.weights:
        if "float" in weight.dtype and "variance" not in weight.path:
            weight.assign(generator.normal(size=weight.shape, scale=0.4))
    return model


def hear(length=50, rows=2):
    features = random.normal(size=(rows, length, 12)).astype("float32")
    return {"features": features, "lengths": np.array([length, length * 2 // 3])[:rows]}


def count_logits(model, sound, ids):
    outputs = model({**sound, "target_ids": np.asarray(ids)})
    return np.asarray(outputs["logits"] if isinstance(outputs, dict) else outputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    sampled(
        [
            dict(),
            dict(ctc_head=True, num_decoder_layers=2, decoder_position="sinusoidal"),
            dict(position=["sinusoidal", "rotary"]),
            dict(
                sound=dict(stem="1d", subsampling=2),
                encoder=make_encoder(),
                position="sinusoidal",
            ),
        ],
        2,
    ),
)
def test_generation_does_not_depend_on_the_batch(settings):
    """Check that each token is the best one without cache and padding."""
    model, sound = make(**settings), hear()
    together = ka.generation.generate(model, sound, 6, **BEGIN)
    length = int(sound["lengths"][1])
    alone = {"features": sound["features"][1:, :length], "lengths": np.array([length])}
    np.testing.assert_array_equal(ka.generation.generate(model, alone, 6, **BEGIN)[0], together[1])
    text = [1]
    for token in together[1]:
        logits = count_logits(model, alone, [text])[0, -1]
        assert token == logits[1:].argmax() + 1  # padding is never written
        text.append(int(token))
        if token == 2:
            break
    beams = ka.generation.generate(model, sound, 6, ka.generation.Beam(3), **BEGIN)
    assert beams.shape == (2, 6)


def test_a_waveform_gives_the_logits_of_its_features():
    heard = make(dict(input="waveform", sampling_rate=2000))
    model = make()
    model.set_weights(heard.get_weights())
    samples = random.normal(size=(2, 900), scale=0.1).astype("float32")
    spectrogram = heard.get_layer("encoder").get_layer("spectrogram")
    features = np.asarray(spectrogram(samples))
    ids = [[1, 4, 5], [1, 7, 3]]
    expected = count_logits(
        model, {"features": features, "lengths": np.array([features.shape[1]] * 2)}, ids
    )
    result = count_logits(heard, {"waveform": samples, "lengths": np.array([900, 900])}, ids)
    np.testing.assert_allclose(result, expected, atol=1e-4)


def make_whisper(**sound):
    return make(
        dict(
            num_frames=40,
            normalize=False,
            stem="1d",
            subsampling=2,
            spectrogram="whisper",
            **sound,
        ),
        encoder=make_encoder(key_bias=False),
        position=ka.positions.Learned(20),
        decoder_position=ka.positions.Learned(8),
    )


@pytest.mark.slow
def test_a_fixed_length_is_filled_with_silence():
    """Compare with zeros from the caller. A mask would change the result."""
    model = make_whisper(input="waveform", sampling_rate=2000)
    samples = random.normal(size=(1, 500), scale=0.1).astype("float32")
    short = {"waveform": samples, "lengths": np.array([500])}
    whole = {"waveform": np.pad(samples, [(0, 0), (0, 300)]), "lengths": np.array([800])}
    ids = [[1, 4, 5]]
    np.testing.assert_allclose(
        count_logits(model, short, ids), count_logits(model, whole, ids), atol=1e-5
    )
    features = make_whisper()
    heard = np.asarray(model.get_layer("encoder").get_layer("spectrogram")(whole["waveform"]))
    assert heard.shape == (1, 40, 12)
    np.testing.assert_allclose(
        count_logits(features, {"features": heard}, ids), count_logits(model, short, ids), atol=1e-4
    )
    written = ka.generation.generate(features, {"features": heard}, 5, **BEGIN)
    np.testing.assert_array_equal(ka.generation.generate(model, short, 5, **BEGIN), written)


@pytest.mark.slow
def test_whisper_has_the_published_number_of_parameters():
    """Compare with the released files. Radford et al. (2022), table 1, say 39M and 74M."""
    for name, count in (("Whisper-tiny", 37_760_640), ("Whisper-base", 72_593_920)):
        size, counts = ka.models.sizes("speech_to_text")[name], []
        for num_layers in (1, 2):
            stacks = {
                side: dataclasses.replace(size[side], num_layers=num_layers)
                for side in ("encoder", "decoder")
            }
            model = ka.models.speech_to_text(51865, **size | stacks)
            counts.append(model.count_params())
        one, two = counts
        assert one + (size["encoder"].num_layers - 1) * (two - one) == count


def test_generation_leaves_out_the_ctc_head():
    model, sound = make(ctc_head=True), hear()
    plain = keras.Model(model.input, model.output["logits"], name=model.name)
    assert plain.name == model.name and len(plain.weights) == len(model.weights) - 2
    ids = [[1, 4], [1, 5]]
    np.testing.assert_allclose(count_logits(plain, sound, ids), count_logits(model, sound, ids))


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(sound=dict(input="text")), "input='text'.: expected 'features' or 'waveform'"),
        (dict(sound=dict(stem="3d")), "stem='3d'.: expected '2d' or '1d'"),
        (dict(sound=dict(stem="1d", filters=4)), "filters=4, stem='1d'"),
        (dict(position="learned"), r"pass ka.positions.Learned\(max_length="),
    ],
)
def test_refuses_settings_that_exclude_each_other(settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", sampled([None, "int8_weights"]))
def test_one_file_turns_a_waveform_into_text(quantization, tmp_path):
    """Check that the file only has built-in ops, and writes the tokens of the model."""
    settings = {"ctc_head": True, "position": ["sinusoidal", "rotary"]}
    model = make(dict(input="waveform", sampling_rate=2000), **settings)
    samples = random.normal(size=(3, 900), scale=0.1).astype("float32")
    sound = {"waveform": samples, "lengths": np.array([900, 700, 500], "int32")}
    path = tmp_path / "model.tflite"
    report = ka.export.to_litert(
        model,
        path,
        quantization=quantization,
        generate=ka.export.Generation("greedy", 12, 8, **BEGIN),
        examples={**sound, "target_ids": np.array([[1, 4, 5]] * 3, "int32")},
    )
    assert "built-in" in str(report) and "RFFT2D" in report.ops
    result = ka.export.load(path, "generate")(sound)["generated_ids"]
    if quantization is None:
        expected = ka.generation.generate(model, sound, 8, **BEGIN)
        np.testing.assert_array_equal(result, expected)
    assert result.shape == (3, 8)


@pytest.mark.sweep
def test_learns_with_an_additional_ctc_loss():
    """Make features louder where their label is."""
    generator = np.random.default_rng(0)
    labels = generator.integers(3, 9, (64, 3))
    features = generator.normal(size=(64, 24, 12), scale=0.1).astype("float32")
    for row, row_labels in zip(features, labels, strict=True):
        for k, label in enumerate(row_labels):
            row[8 * k : 8 * k + 6, label] += 3
    ids = np.concatenate([np.ones((64, 1)), labels, np.full((64, 1), 2)], axis=1).astype("int32")
    sound = {"features": features, "lengths": np.full(64, 24)}
    keras.utils.set_random_seed(0)
    features = ka.models.SpeechEmbedding(num_mel_bins=12)
    model = ka.models.speech_to_text(
        9, kernel_size=3, ctc_head=True, dropout=0.0, embedding=features, **SIZE
    )
    trained = ka.training.JointModel(model)
    trained.compile(keras.optimizers.Adam(0.01), ka.training.CTCAttention(), jit_compile=False)
    inputs, truth = {**sound, "target_ids": ids[:, :-1]}, {"logits": ids[:, 1:]}
    trained.fit(inputs, truth | {"ctc_logits": labels}, epochs=40, batch_size=16, verbose=0)
    written = ka.generation.generate(model, sound, 4, **BEGIN)
    assert (written[:, :3] == labels).mean() > 0.8  # one of six by chance
