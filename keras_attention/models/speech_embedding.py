"""`SpeechEmbedding`: a sound and its first vectors, as a part of builders."""

import dataclasses

import keras

from keras_attention.blocks import (
    ConvolutionSubsampling,
    FilterAugment,
    FixedLength,
    FrameConvolutions,
    LengthMask,
    LogMelSpectrogram,
    PositionEmbedding,
    SpecAugment,
)
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.log_mel_spectrogram import STRIDE


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeechEmbedding:
    """What builders of speech do before their encoder: they read a sound and subsample it.

    The sizes, the dropout and the position are those of the builder, which calls the part. An
    embedding of your own has the same two methods.

    Args:
        input: `"features"`, such as log-mel spectrograms, or `"waveform"`, which a
            `LogMelSpectrogram` in the model turns into them.
        num_mel_bins: int F, features of a frame.
        sampling_rate: int, samples a second of a waveform.
        spectrogram: `"kaldi"` or `"whisper"`, of a waveform, as in `LogMelSpectrogram`.
        num_frames: int, to which every sound is cut or filled up with silence, which counts as
            sound (Whisper: 3000, which are 30 seconds), or None for sounds of any length, whose
            padding is masked.
        normalize: bool, whether features get mean 0 and variance 1, over all frames of the
            training, by a `BatchNormalization` without weights. So no frame waits for later ones.
        stem: `"2d"`, a `ConvolutionSubsampling`, or `"1d"`, `FrameConvolutions` as in Whisper.
        subsampling: int, a power of two, how many frames make one vector.
        filters: int, of the convolutions of `"2d"`, or None for D.
        filter_augment: dict, keywords of `FilterAugment` for training, of features that are
            natural logarithms, or None.
        spec_augment: dict, keywords of `SpecAugment` for training, or None.

    Example:

    ```python
    import keras_attention as ka

    embedding = ka.models.SpeechEmbedding(input="waveform", num_mel_bins=40)
    inputs = embedding.inputs()
    assert list(inputs) == ["waveform", "lengths"]
    assert embedding(inputs, 16).shape == (None, None, 16)
    ```
    """

    input: str = "features"
    num_mel_bins: int = 80
    sampling_rate: int = 16000
    spectrogram: str = "kaldi"
    num_frames: int | None = None
    normalize: bool = True
    stem: str = "2d"
    subsampling: int = 4
    filters: int | None = None
    filter_augment: dict | None = None
    spec_augment: dict | None = None

    def __post_init__(self):
        for name, choices in (("input", ("features", "waveform")), ("stem", ("2d", "1d"))):
            if (choice := getattr(self, name)) not in choices:
                expected = " or ".join(map(repr, choices))
                raise ValueError(f"SpeechEmbedding({name}={choice!r}): expected {expected}.")
        if self.stem == "1d" and self.filters is not None:
            raise ValueError(
                f"SpeechEmbedding(filters={self.filters}, stem='1d'): convolutions over frames "
                "have as many channels as the model is wide. Leave filters out."
            )
        if self.filter_augment and self.input == "waveform" and self.spectrogram == "whisper":
            raise ValueError(
                "SpeechEmbedding(filter_augment=...) adds decibels to natural logarithms, and "
                "spectrogram='whisper' limits and scales them. Leave it out, or use 'kaldi'."
            )

    def count_vectors(self):
        """Return the number of vectors of a sound of `num_frames`, or None for any length."""
        return None if self.num_frames is None else -(-self.num_frames // self.subsampling)

    def inputs(self):
        """Make the inputs of a model, a dict of symbolic tensors.

        Returns:
            `"features"` float32 (B, frames, F) or `"waveform"` float32 (B, samples); and
            `"lengths"` int32 (B,), how many frames or samples each row has, which features of
            `num_frames` do not need.
        """
        shape = (self.num_frames, self.num_mel_bins) if self.input == "features" else (None,)
        sound = {self.input: keras.Input(shape, dtype="float32", name=self.input)}
        if self.input == "features" and self.num_frames is not None:
            return sound
        return sound | {"lengths": keras.Input((), dtype="int32", name="lengths")}

    def __call__(self, inputs, hidden_dim, position=None, dropout=0.0, causal=False):
        """Embed a sound.

        Args:
            inputs: what `inputs` made. hidden_dim: int D.
            position: a part that is added to the vectors, or None.
            dropout: float, of the vectors.
            causal: bool, whether convolutions see no later frames, for streaming.

        Returns (B, ⌈frames / subsampling⌉, D), with the mask of the vectors that are sound.
        """
        x = inputs[self.input]
        if "lengths" in inputs:
            x = LengthMask(name="length_mask")(x, inputs["lengths"])
        if self.input == "waveform":
            if self.num_frames is not None:
                samples = self.num_frames * round(STRIDE * self.sampling_rate)
                x = FixedLength(samples, name="fixed_length")(x)
            x = LogMelSpectrogram(
                self.num_mel_bins, self.spectrogram, self.sampling_rate, name="spectrogram"
            )(x)
        if self.filter_augment:
            x = FilterAugment(**self.filter_augment, dtype="float32", name="filter_augment")(x)
        if self.normalize:
            x = keras.layers.BatchNormalization(
                center=False, scale=False, momentum=0.9, dtype="float32", name="feature_norm"
            )(x)
        if self.spec_augment:
            x = SpecAugment(**self.spec_augment, name="spec_augment")(x)
        if self.stem == "1d" and causal:
            raise ValueError(
                "SpeechEmbedding(stem='1d') looks at later frames, and chunk_size= is for "
                "streaming. Use stem='2d', or leave chunk_size out."
            )
        if self.stem == "1d":
            subsample = FrameConvolutions(hidden_dim, self.subsampling, name="subsampling")
        else:
            subsample = ConvolutionSubsampling(
                hidden_dim, self.subsampling, self.filters, causal=causal, name="subsampling"
            )
        x = subsample(x)
        if position is not None:
            x = PositionEmbedding(copy_part(position), name="position")(x)
        return keras.layers.Dropout(dropout, name="subsampling_dropout")(x)
