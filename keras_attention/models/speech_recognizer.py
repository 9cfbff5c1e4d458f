"""Speech recognition by CTC: sound as frames, subsampled and encoded, with a label for each."""

import keras

from keras_attention import masks
from keras_attention.blocks import (
    ConvolutionSubsampling,
    FilterAugment,
    LengthMask,
    LogMelSpectrogram,
    SpecAugment,
)
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import ConformerKeywords


def _conformer(num_layers, num_heads, hidden_dim):
    return dict(
        num_layers=num_layers,
        num_heads=num_heads,
        hidden_dim=hidden_dim,
        intermediate_dim=4 * hidden_dim,
        kernel_size=32,
        dropout=0.1,
        position="transformer_xl",
    )


# Gulati et al. (2020), table 1, the encoders: the paper decodes with an LSTM.
SIZES = {
    "Conformer-S": _conformer(16, 4, 144),
    "Conformer-M": _conformer(16, 4, 256),
    "Conformer-L": _conformer(17, 8, 512),
}


@takes_keywords_of(
    ConformerKeywords,
    without=["max_length", "causal", "padding"],
    num_layers=4,
    num_heads=4,
    hidden_dim=144,
    intermediate_dim=576,
    dropout=0.1,
    activation="silu",
    position="rotary",
)
def speech_recognizer(
    vocabulary_size,
    *,
    inputs="features",
    num_mel_bins=80,
    sampling_rate=16000,
    spectrogram="kaldi",
    subsampling=4,
    subsampling_filters=None,
    chunk_size=None,
    filter_augment=None,
    spec_augment=None,
    name="speech_recognizer",
    **encoder,
):
    """Conformer or Transformer with a CTC output (Gulati et al., 2020; Graves et al., 2006).

    Train it with `ka.training.MaskedCTC()`, for which the logits carry the mask of their frames.
    `ka.blocks.GreedyCTCDecoder` behind it gives labels, in exported files as well.

    Args:
        vocabulary_size: int V, labels and the blank, which is 0 and pads labels.
        inputs: `"features"`, such as log-mel spectrograms, or `"waveform"`, of which a
            `LogMelSpectrogram` in the model makes them.
        num_mel_bins: int F, features of a frame.
        sampling_rate: int, samples a second of a waveform.
        spectrogram: `"kaldi"` or `"whisper"`, of a waveform, as in `LogMelSpectrogram`.
        subsampling: int, a power of two, how many frames make one vector.
        subsampling_filters: int, of the convolutions that do so; None is `hidden_dim`.
        chunk_size: int, for streaming: a vector sees those of its chunk of so many and earlier
            ones, and convolutions no later ones; `ka.generation.SpeechStream` then hears chunk by
            chunk. With 10 ms a frame and `subsampling=4`, 8 are 320 ms. None sees everything.
        filter_augment: dict, keywords of `FilterAugment` for training, of features that are
            natural logarithms; None or an empty one for none.
        spec_augment: dict, keywords of `SpecAugment` for training; None or an empty one for none.
        name: str.
        encoder: `block` (`"conformer"` or `"encoder"`), `kernel_size` (31) and `convolution_norm`
            (`"batch_norm"`) of a Conformer's convolution; and keywords of `TransformerEncoder`,
            which documents them: sizes, `dropout`, and the parts `score`, `normalizer`, `mask` and
            `position`. Published sizes: `ka.models.sizes("speech_recognizer")`.

    Returns:
        A functional `keras.Model`. Inputs: `"features"` float32 (B, T, F), or `"waveform"` float32
        (B, samples); and `"lengths"` int32 (B,), how many frames or samples each row has. Output:
        logits (B, ⌈T / subsampling⌉, V), float32.

    Features are brought to mean 0 and variance 1, over all frames of the training, by a
    `BatchNormalization` without weights: so that no frame has to wait for later ones.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, kernel_size=5)
    model = ka.models.speech_recognizer(28, num_mel_bins=40, **size)
    inputs = {"features": np.ones((2, 50, 40)), "lengths": np.array([50, 31])}
    assert model(inputs).shape == (2, 13, 28)

    heard = ka.models.speech_recognizer(28, inputs="waveform", num_mel_bins=40, **size)
    inputs = {"waveform": np.zeros((2, 16000)), "lengths": np.array([16000, 9000])}
    assert heard(inputs).shape == (2, 25, 28)
    assert "Conformer-M" in ka.models.sizes("speech_recognizer")
    ```
    """
    if inputs not in ("features", "waveform"):
        raise ValueError(f"inputs={inputs!r}: expected 'features' or 'waveform'.")
    if chunk_size is not None:
        if encoder.get("mask") is not None:
            raise ValueError(
                f"chunk_size={chunk_size} is a mask, and mask={encoder['mask']!r} another one: "
                "give one of them."
            )
        encoder["mask"] = masks.Blockwise(masks.Causal(), chunk_size)
    encoder = ConformerKeywords(causal=chunk_size is not None, **encoder)
    lengths = keras.Input((), dtype="int32", name="lengths")
    shape = (None, num_mel_bins) if inputs == "features" else (None,)
    sound = keras.Input(shape, dtype="float32", name=inputs)
    x = LengthMask(name="length_mask")(sound, lengths)
    if inputs == "waveform":
        x = LogMelSpectrogram(num_mel_bins, spectrogram, sampling_rate, name="spectrogram")(x)
    if filter_augment:
        check_logarithm(inputs, spectrogram)
        x = FilterAugment(**filter_augment, dtype="float32", name="filter_augment")(x)
    x = keras.layers.BatchNormalization(
        center=False, scale=False, momentum=0.9, dtype="float32", name="feature_norm"
    )(x)
    if spec_augment:
        x = SpecAugment(**spec_augment, name="spec_augment")(x)
    x = ConvolutionSubsampling(
        encoder.hidden_dim,
        subsampling,
        filters=subsampling_filters,
        causal=chunk_size is not None,
        name="subsampling",
    )(x)
    x = keras.layers.Dropout(encoder.dropout, name="subsampling_dropout")(x)
    x = encoder(x)
    logits = keras.layers.Dense(vocabulary_size, dtype="float32", name="logits")(x)
    return keras.Model({inputs: sound, "lengths": lengths}, logits, name=name)


def check_logarithm(inputs, spectrogram):
    """Refuses `filter_augment` of spectrograms whose range is Whisper's."""
    if inputs == "waveform" and spectrogram == "whisper":
        raise ValueError(
            "filter_augment= adds decibels to natural logarithms, and spectrogram='whisper' limits "
            "and scales them: leave it out, or build with spectrogram='kaldi'."
        )
