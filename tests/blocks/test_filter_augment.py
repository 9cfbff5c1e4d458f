"""FilterAugment: its range, silence, and inference."""

import numpy as np
import pytest

import keras_attention as ka

DECIBELS = 10 / np.log(10)  # for a natural logarithm of power
X = np.zeros((400, 6, 13), "float32")


def draw(**settings):
    layer = ka.blocks.FilterAugment(**{"gain": 0.0, "band_gain": 0.0, "seed": 1, **settings})
    gains = np.asarray(layer(X, training=True)) * DECIBELS
    assert np.array_equal(np.asarray(layer(X)), X)
    assert (gains == gains[:, :1]).all()  # every frame of an utterance has the same filter
    return gains[:, 0]


def test_one_gain_changes_all_frequencies_within_its_bounds():
    gains = draw(gain=9.0)
    np.testing.assert_allclose(gains, np.repeat(gains[:, :1], 13, axis=1), atol=1e-5)
    assert -9.001 < gains.min() < -8 and 8 < gains.max() < 9.001 and abs(gains.mean()) < 1


def test_gains_of_bands_are_interpolated_linearly():
    gains = draw(band_gain=6.0, num_bands=3)
    bounds = gains[:, ::4]  # the features of the four bounds
    assert -6.001 < bounds.min() < -5 and 5 < bounds.max() < 6.001
    assert np.abs(np.corrcoef(bounds.T) - np.eye(4)).max() < 0.2
    for i in range(3):
        line = np.linspace(bounds[:, i], bounds[:, i + 1], 5, axis=1)
        np.testing.assert_allclose(gains[:, 4 * i : 4 * i + 5], line, atol=1e-4)


def test_silence_does_not_change():
    layer = ka.blocks.FilterAugment(gain=9.0, floor=-8.0, seed=1)
    x = np.where(np.arange(6)[None, :, None] < 2, -8.0, X).astype("float32")
    gains = np.asarray(layer(x, training=True))
    assert (gains[:, :2] == -8.0).all() and (gains[:, 2:] != 0).mean() > 0.99


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(gain=-1.0), "gain=-1.0.*at least 0"),
        (dict(num_bands=0), "num_bands=0.*at least 1"),
        (dict(floor=float("nan")), "floor=nan"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        ka.blocks.FilterAugment(**arguments)


def test_whisper_spectrograms_refuse_filter_augment():
    with pytest.raises(ValueError, match="spectrogram='whisper'.*'kaldi'"):
        ka.models.SpeechEmbedding(
            input="waveform", spectrogram="whisper", filter_augment={"gain": 3.0}
        )
