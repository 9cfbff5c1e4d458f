"""Streamed is whole: logits and labels of chunks are those of an utterance heard at once."""

import numpy as np
import pytest

import keras_attention as ka

SIZE = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=20)
IN_CHUNKS = ka.masks.Blockwise(ka.masks.Causal(), 3)
random = np.random.default_rng(0)


def make(sound=None, chunk_size=3, **kwargs):
    embedding = ka.models.SpeechEmbedding(**{"num_mel_bins": 12, **(sound or {})})
    size = {"hidden_dim": 16} if "encoder" in kwargs else SIZE
    settings = {"chunk_size": chunk_size, "embedding": embedding, **size, **kwargs}
    model = ka.models.speech_recognizer(9, **settings)
    for weight in model.weights:
        if "variance" in weight.path:
            weight.assign(random.uniform(0.5, 2, weight.shape))
        elif "float" in weight.dtype:
            weight.assign(random.normal(size=weight.shape, scale=0.4))
    return model


def cut(sound, lengths):
    return np.split(sound, np.cumsum(lengths))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        dict(kernel_size=5),
        dict(
            encoder=ka.models.ConformerEncoder(
                2,
                attention=ka.attention.MultiHeadAttention(
                    2, 8, mask=IN_CHUNKS, position="transformer_xl"
                ),
                feed_forward=ka.blocks.FeedForward(20),
                convolution=ka.blocks.ConvolutionModule(4, normalization="layer_norm", causal=True),
            )
        ),
        dict(
            sound=dict(subsampling=2),
            encoder=ka.models.TransformerEncoder.of_size(
                2, 2, 16, 20, mask=IN_CHUNKS, position=["alibi", "rotary"]
            ),
        ),
        dict(sound=dict(subsampling=1, filter_augment=dict(gain=3.0))),
    ],
)
def test_streamed_labels_equal_the_whole_recording(settings):
    """Pieces shorter and longer than a chunk, and an end within one."""
    model, features = make(**settings), random.normal(size=(53, 12)).astype("float32")
    whole = model({"features": features[None], "lengths": np.array([53])})[0]
    stream = ka.generation.SpeechStream(model, max_length=60)
    pieces = [stream.compute_logits(piece) for piece in cut(features, [1, 4, 30, 0, 11])]
    pieces.append(stream.compute_logits(features[:0], last=True))
    assert len(pieces[0]) == 0 and len(pieces[2]) > 0
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-4)


@pytest.mark.slow
def test_waveforms_are_cut_anywhere():
    model = make(dict(input="waveform", sampling_rate=2000), kernel_size=5)
    samples = random.normal(size=1333, scale=0.1).astype("float32")
    model.get_layer("feature_norm").set_weights([np.full(12, 17.0), np.full(12, 1.0)])
    whole = model({"waveform": samples[None], "lengths": np.array([1333])})
    pieces = cut(samples, [7, 300, 11, 500, 90])
    stream = ka.generation.SpeechStream(model)
    logits = [stream.compute_logits(piece) for piece in pieces]
    logits.append(stream.compute_logits(samples[:0], last=True))
    np.testing.assert_allclose(np.concatenate(logits), whole[0], atol=1e-3)
    expected = np.asarray(ka.blocks.GreedyCTCDecoder()(whole))[0]
    stream = ka.generation.SpeechStream(model)
    labels = [label for piece in pieces for label in stream.hear(piece)]
    before = len(labels)
    labels += stream.finish()
    assert labels == list(expected[expected > 0]) and before >= 1
    again = stream.hear(samples) + stream.finish()  # another utterance
    assert again == labels


@pytest.mark.slow
def test_integers_are_scaled_as_predict_scales_them():
    """16-bit samples, as microphones give them, and 32-bit ones say what their floats say."""
    task = ka.tasks.from_preset("digits-speech")
    loud = random.normal(size=16000, scale=0.1) * np.repeat([0.003, 1.0], 8000)
    samples = np.round(32768 * loud).clip(-32768, 32767).astype("int16")
    stream = ka.generation.SpeechStream(task.model)
    wholes = samples, samples.astype("int32") << 16, samples.astype("float32") / 32768
    texts = []
    for whole in wholes:
        labels = [label for piece in np.split(whole, 5) for label in stream.hear(piece)]
        texts.append(task.preprocessor.decode(labels + stream.finish()))
    assert texts[0] and texts == [texts[2]] * 3
    assert stream.hear(np.zeros(16000, "int16")) + stream.finish() == []
    pieces = [stream.compute_logits(samples), stream.compute_logits(samples[:0], last=True)]
    whole = task.model(task.preprocessor([samples]))[0]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-3)


def test_no_chunk_sees_a_later_one():
    model, features = make(kernel_size=5), random.normal(size=(1, 48, 12)).astype("float32")
    other = features.copy()
    other[:, 24:] += 1
    one, two = (model({"features": x, "lengths": np.array([48])}) for x in (features, other))
    np.testing.assert_allclose(one[:, :6], two[:, :6], atol=1e-6)
    assert not np.allclose(one[:, 6:], two[:, 6:], atol=1e-3)


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(chunk_size=None), "subsampling looks ahead.*chunk_size="),
        (
            dict(sound=dict(input="waveform", spectrogram="whisper")),
            "spectrogram='whisper'.*spectrogram='kaldi'",
        ),
    ],
)
def test_refuses_models_that_need_later_sound(settings, message):
    with pytest.raises(ValueError, match=message):
        ka.generation.SpeechStream(make(**settings))


@pytest.mark.slow
def test_refuses_what_does_not_fit():
    stream = ka.generation.SpeechStream(make(kernel_size=5), max_length=4)
    with pytest.raises(ValueError, match=r"shape \(5, 9\) and .* expected an.*features \(T, 12\)"):
        stream.hear(np.zeros((5, 9)))
    with pytest.raises(ValueError, match=r"\(5, 12\) and the dtype int16: expected .* floats"):
        stream.hear(np.zeros((5, 12), "int16"))
    with pytest.raises(ValueError, match=r"max_length=4\) has read 3 vectors.*room for 3 more"):
        stream.hear(np.zeros((30, 12)))
    stream = ka.generation.SpeechStream(
        make(dict(input="waveform", sampling_rate=2000), kernel_size=5)
    )
    with pytest.raises(ValueError, match=r"dtype uint8: expected .*from -1 to 1, int16 or int32"):
        stream.hear(np.zeros(400, "uint8"))
    with pytest.raises(ValueError, match=r"shape \(400, 2\).*samples \(T,\).*Pass one channel"):
        stream.hear(np.zeros((400, 2), "float32"))
    with pytest.raises(ValueError, match="sound is a tuple of int, ndarray: .*sampling rate"):
        stream.hear((2000, np.zeros(400)))
    labeler = ka.models.sequence_labeler(9, 3, **SIZE)
    with pytest.raises(ValueError, match="speech_recognizer"):
        ka.generation.SpeechStream(labeler)
