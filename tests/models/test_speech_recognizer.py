"""The recognizer: padding, chunks, training, and files."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.export.helpers import assert_exports

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20)
random = np.random.default_rng(0)


def make(sound=None, **kwargs):
    embedding = ka.models.SpeechEmbedding(**{"num_mel_bins": 12, **(sound or {})})
    size = {"hidden_dim": 16} if "encoder" in kwargs else SIZE
    return ka.models.speech_recognizer(9, embedding=embedding, **{**size, **kwargs})


def draw(model):
    for weight in model.weights:
        if "float" in weight.dtype and "variance" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


@pytest.mark.parametrize(
    "settings",
    [
        dict(kernel_size=5),
        dict(
            chunk_size=2,
            encoder=ka.models.ConformerEncoder(
                1,
                attention=ka.attention.MultiHeadAttention(
                    2, 8, mask=ka.masks.Blockwise(ka.masks.Causal(), 2)
                ),
                feed_forward=ka.blocks.FeedForward(20),
                convolution=ka.blocks.ConvolutionModule(5, normalization="layer_norm", causal=True),
            ),
        ),
        dict(
            sound=dict(subsampling=2),
            position="sinusoidal",
            encoder=ka.models.TransformerEncoder.of_size(1, 2, 16, 20, norm="post"),
        ),
    ],
)
def test_padding_changes_nothing(settings):
    model = draw(make(**settings))
    x = random.normal(size=(2, 50, 12)).astype("float32")
    padded = model({"features": x, "lengths": np.array([50, 31])})
    alone = model({"features": x[1:, :31], "lengths": np.array([31])})
    np.testing.assert_allclose(padded[1:, : alone.shape[1]], alone, atol=1e-5)


def test_a_waveform_gives_the_logits_of_its_features():
    heard = draw(make(dict(input="waveform", sampling_rate=2000), kernel_size=3))
    model = make(kernel_size=3)
    model.set_weights(heard.get_weights())
    samples = random.normal(size=(2, 900), scale=0.1).astype("float32")
    spectrogram = heard.get_layer("spectrogram")
    assert (spectrogram.sequence_length, spectrogram.sequence_stride) == (50, 20)
    features = np.asarray(spectrogram(samples))
    lengths = np.array([spectrogram.count_frames(900), spectrogram.count_frames(500)])
    expected = model({"features": features, "lengths": lengths})
    logits = heard({"waveform": samples, "lengths": np.array([900, 500])})
    np.testing.assert_allclose(logits[0], expected[0], atol=1e-4)
    end = int(lengths[1]) // 4
    np.testing.assert_allclose(logits[1, :end], expected[1, :end], atol=1e-4)


# Gulati et al. (2020), table 1, say 10.3, 30.7 and 118.8 million with their LSTM decoders.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, least, most", [("Conformer-S", 8e6, 10.3e6), ("Conformer-M", 24e6, 30.7e6)]
)
def test_parameter_counts_are_near_those_of_the_paper(name, least, most):
    size = ka.models.sizes("speech_recognizer")[name]
    one, two = (
        ka.models.speech_recognizer(29, **{**size, "num_layers": n}).count_params() for n in (1, 2)
    )
    assert least < one + (size["num_layers"] - 1) * (two - one) < most


@pytest.mark.slow
def test_trains_with_ctc_and_spec_augment():
    """Make features louder where their label is."""
    keras.utils.set_random_seed(0)
    model = make(
        dict(subsampling=2, spec_augment=dict(time_mask_size=3, frequency_mask_size=1)),
        kernel_size=3,
    )
    labels = random.integers(1, 5, size=(48, 3))
    labels[:24, 2] = 0
    features = np.repeat(np.eye(12)[labels * (labels > 0) * 2], 6, axis=1)
    features += random.normal(size=features.shape, scale=0.1)
    inputs = {"features": features.astype("float32"), "lengths": 6 * (labels > 0).sum(axis=1)}
    model.compile(keras.optimizers.Adam(0.01), ka.training.MaskedCTC(), jit_compile=False)
    losses = model.fit(inputs, labels, epochs=30, batch_size=16, verbose=0).history["loss"]
    assert losses[-1] < 0.25 * losses[0]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_one_file_turns_a_waveform_into_labels():
    model = draw(make(dict(input="waveform", sampling_rate=2000), kernel_size=3))
    labels = ka.blocks.GreedyCTCDecoder(name="labels")(model.output)
    listener = keras.Model(model.input, labels)
    samples = random.normal(size=(2, 900), scale=0.1).astype("float32")
    batch = {"waveform": samples, "lengths": np.array([900, 640], "int32")}
    assert_exports(listener, sequence_length=800, examples=[batch])


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("settings", [dict(kernel_size=3), dict(chunk_size=2)])
def test_export(settings):
    batch = {
        "features": random.normal(size=(2, 24, 12)).astype("float32"),
        "lengths": np.array([24, 13], "int32"),
    }
    assert_exports(make(**settings), sequence_length=16, examples=[batch])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(sound=dict(input="mp3")), "input='mp3'.*'features' or 'waveform'"),
        (dict(kernel_size=5, encoder=lambda x: x), "kernel_size=5.*has no effect"),
        (dict(chunk_size=2, mask="causal"), "chunk_size=2.*mask='causal'"),
        (dict(sound=dict(subsampling=3)), "factor=3.*power of two"),
        (dict(sound=dict(stem="1d"), chunk_size=2), "stem='1d'.*chunk_size"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
