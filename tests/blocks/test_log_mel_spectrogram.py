"""Log-mel spectrograms against librosa's and Kaldi's, by definition, in files, with padding."""

import pathlib

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.blocks import log_mel_spectrogram
from keras_attention.core import keras_internals
from tests.export.helpers import assert_exports
from tests.grids import quick

# For 0.15 seconds: `librosa.feature.melspectrogram(..., n_fft=400, hop_length=160, n_mels=40,
# pad_mode="reflect")` of librosa 0.11, and `transformers.audio_utils.spectrogram` of transformers
# 5.23 with Kaldi's settings, as Hugging Face's extractors call it.
KNOWN = np.load(pathlib.Path(__file__).parent / "spectrograms.npz")
SAMPLES = (KNOWN["samples"] / 32768).astype("float32")[None]
random = np.random.default_rng(0)
# Few samples per frame, so that short inputs have several frames.
SMALL = dict(num_mel_bins=3, sampling_rate=100, sequence_length=6, sequence_stride=2)


def test_whisper_equals_librosa():
    expected = np.log10(np.maximum(KNOWN["librosa"], 1e-10))[:-1]
    expected = (np.maximum(expected, expected.max() - 8) + 4) / 4
    spectrogram = ka.blocks.LogMelSpectrogram(40, "whisper")(SAMPLES)
    np.testing.assert_allclose(spectrogram[0], expected, atol=1e-5)


def test_kaldi_equals_hugging_face():
    spectrogram = ka.blocks.LogMelSpectrogram(40, "kaldi")(SAMPLES)
    np.testing.assert_allclose(spectrogram[0], KNOWN["kaldi"], atol=1e-4)


def define_kaldi(samples, bins, rate, length, stride, transform, low, high):
    """Compute Kaldi's `compute-fbank-feats`, frame by frame, in float64."""

    def mel(hertz):
        return 1127 * np.log(1 + hertz / 700)

    corners = np.linspace(mel(low), mel(high), bins + 2)
    rows = []
    for start in range(0, len(samples) - length + 1, stride):
        frame = samples[start : start + length] * 32768.0
        frame = frame - frame.mean()
        frame = np.array([x - 0.97 * frame[max(i - 1, 0)] for i, x in enumerate(frame)])
        window = [0.5 - 0.5 * np.cos(2 * np.pi * i / (length - 1)) for i in range(length)]
        spectrum = np.fft.rfft(frame * np.array(window) ** 0.85, transform)
        row = []
        for m in range(bins):
            total = 0.0
            for k, value in enumerate(spectrum):
                place = mel(k * rate / transform)
                rising = (place - corners[m]) / (corners[m + 1] - corners[m])
                falling = (corners[m + 2] - place) / (corners[m + 2] - corners[m + 1])
                total += max(0.0, min(rising, falling)) * abs(value) ** 2
            row.append(np.log(max(total, np.finfo("float32").eps)))
        rows.append(row)
    return np.array(rows)


def test_kaldi_by_definition_at_another_rate():
    samples = random.normal(size=900, scale=0.1)
    expected = define_kaldi(samples, 23, 8000, 200, 80, 256, 100, 3500)
    layer = ka.blocks.LogMelSpectrogram(
        23, "kaldi", sampling_rate=8000, min_freq=100, max_freq=3500
    )
    np.testing.assert_allclose(layer(samples[None])[0], expected, atol=2e-4)
    assert layer.count_frames(900) == len(expected)


@pytest.mark.tensorflow
@pytest.mark.parametrize("length", [6, 9, 12, 400, 441])
def test_a_transform_by_factors_equals_the_transform(length):
    x = random.normal(size=(2, 3, length)).astype("float32")
    expected = np.fft.rfft(x)
    real, imaginary = log_mel_spectrogram.transform_by_factors(x, length)
    np.testing.assert_allclose(real, expected.real, atol=1e-3)
    np.testing.assert_allclose(imaginary, expected.imag, atol=1e-3)


@pytest.mark.parametrize("settings", ["whisper", "kaldi"])
def test_padding_is_masked(settings):
    layer = ka.blocks.LogMelSpectrogram(settings=settings, **SMALL)
    lengths = np.array([40, 23])
    x = random.normal(size=(2, 40)).astype("float32")
    x[1, 23:] = 0
    spectrogram = layer(ka.blocks.LengthMask()(x, lengths))
    mask = np.asarray(keras_internals.get_mask(spectrogram))
    assert mask.shape == spectrogram.shape[:2] and mask[0].all()
    frames = layer.count_frames(23)
    assert mask[1].sum() == frames == int(layer.count_frames(lengths)[1])
    near_the_end = 2 if settings == "whisper" else 0  # mirrors the end
    alone = np.asarray(layer(x[1:, :23]))[0, : frames - near_the_end]
    np.testing.assert_allclose(np.asarray(spectrogram)[1, : len(alone)], alone, atol=1e-5)


def test_padding_does_not_set_whispers_loudest_frame():
    layer = ka.blocks.LogMelSpectrogram(settings="whisper", **SMALL)
    x = np.full((1, 60), 1e-3, "float32")
    x[0, 40:] = 1e4 * random.normal(size=20)
    expected = layer(x[:, :20])
    spectrogram = layer(x, mask=np.arange(60)[None] < 20)
    np.testing.assert_allclose(spectrogram[0, :8], expected[0, :8], atol=1e-4)


def test_half_precision_computes_in_float32():
    layer = ka.blocks.LogMelSpectrogram(40, "kaldi", dtype="mixed_bfloat16")
    spectrogram = layer(SAMPLES)
    assert keras.backend.standardize_dtype(spectrogram.dtype) == "bfloat16"
    np.testing.assert_allclose(keras.ops.cast(spectrogram[0], "float32"), KNOWN["kaldi"], rtol=4e-3)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("settings", ["whisper", "kaldi"])
def test_export(settings):
    waveform = keras.Input((None,), name="waveform")
    features = ka.blocks.LogMelSpectrogram(12, settings, name="features")(waveform)
    examples = random.normal(size=(2, 2, 1200), scale=0.1).astype("float32")
    file = assert_exports(
        keras.Model(waveform, features), sequence_length=900, examples=list(examples)
    )
    assert ("RFFT2D" in {op.kind for op in file.operators}) == (settings == "kaldi")


@pytest.mark.tensorflow
@pytest.mark.parametrize("settings", quick(["whisper", "kaldi"], "kaldi"))
def test_int8_weights_leave_the_front_end_in_floats(settings, tmp_path):
    """Compare with float32, with a rounded dense layer after the spectrogram."""
    waveform = keras.Input((None,), name="waveform")
    features = ka.blocks.LogMelSpectrogram(80, settings, name="features")(waveform)
    logits = keras.layers.Dense(64, name="logits")(features)
    model = keras.Model(waveform, {"features": features, "logits": logits})
    path = tmp_path / "model.tflite"
    x = random.normal(size=(1, 4000)).astype("float32") * np.geomspace(1e-4, 0.5, 4000)
    x = x.astype("float32")
    report = ka.export.to_litert(model, path, quantization="int8_weights", examples=x)
    spectrogram = ka.export.load(path)({"waveform": x})
    np.testing.assert_allclose(spectrogram["features"], model(x)["features"], atol=1e-3)
    assert not any("in part only" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(settings="htk"), "settings='htk'.*'whisper', 'kaldi'"),
        (dict(num_mel_bins=0), "num_mel_bins=0.*at least 1"),
        (dict(max_freq=9000), "max_freq=9000.*at most 8000"),
        (dict(min_freq=300, max_freq=200), "max_freq=200.*above 300"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.LogMelSpectrogram(**arguments)
