"""`SpeechEmbedding`: the first layers of speech models, which embed and shorten the sound."""

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
    """Settings of the first layers of speech models, which embed sound as a shorter sequence.

    Pass the settings as `embedding=` to `speech_recognizer` or `speech_to_text`, which call it with
    the sizes, dropout and position of the model. You may instead pass an object of your own class,
    which needs `inputs` and `__call__`.

    Args:
        input: what the model reads: `"features"`, such as log-mel spectrograms, or `"waveform"`,
            from which a `LogMelSpectrogram` in the model computes features.
        num_mel_bins: int F, number of features of a frame.
        sampling_rate: int, samples per second of a waveform.
        spectrogram: `"kaldi"` or `"whisper"`, the software whose features `LogMelSpectrogram`
            computes from a waveform.
        num_frames: int, a fixed number of frames. Longer waveforms are cut, and shorter ones padded
            with silence that is not masked (Whisper: 3000, 30 seconds). None for any length, with
            masked padding.
        normalize: bool, whether a `BatchNormalization` without trainable weights normalizes each
            feature to mean 0 and variance 1, by statistics of the training data.
        stem: the convolutions that shorten the sequence: `"2d"` over frames and features
            (`ConvolutionSubsampling`), or `"1d"` over frames, as in Whisper (`FrameConvolutions`).
        subsampling: int, a power of two, the number of frames that one vector represents.
        filters: int, the filters of the convolutions of `"2d"`. None is `hidden_dim`.
        filter_augment: dict of arguments of `FilterAugment`, which randomly changes the volume of
            frequency bands in training. None leaves it out. The features must be natural
            logarithms.
        spec_augment: dict of arguments of `SpecAugment`, which masks random frames and features in
            training. None leaves it out.

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
                f"SpeechEmbedding(filters={self.filters}, stem='1d'): FrameConvolutions have "
                "hidden_dim channels. Leave filters out."
            )
        if self.filter_augment and self.input == "waveform" and self.spectrogram == "whisper":
            raise ValueError(
                "SpeechEmbedding(filter_augment=...) needs natural logarithms, but "
                "spectrogram='whisper' limits and scales them. Leave it out, or use 'kaldi'."
            )

    def count_vectors(self):
        """Return the number of vectors that `num_frames` frames become. None returns None."""
        return None if self.num_frames is None else -(-self.num_frames // self.subsampling)

    def inputs(self):
        """Make the inputs of a model, a dict of symbolic tensors.

        Returns:
            A dict: `"features"` float32 (B, frames, num_mel_bins) or `"waveform"` float32 (B,
                samples), and
            `"lengths"` int32 (B,), the number of frames or samples of each row. Features with
            `num_frames` have no `"lengths"`.
        """
        shape = (self.num_frames, self.num_mel_bins) if self.input == "features" else (None,)
        sound = {self.input: keras.Input(shape, dtype="float32", name=self.input)}
        if self.input == "features" and self.num_frames is not None:
            return sound
        return sound | {"lengths": keras.Input((), dtype="int32", name="lengths")}

    def __call__(self, inputs, hidden_dim, position=None, dropout=0.0, causal=False):
        """Embed sound as vectors (B, ⌈frames / subsampling⌉, hidden_dim) with a Keras mask.

        Args:
            inputs: the dict that `inputs()` returned.
            hidden_dim: int, the size of the vectors.
            position: a position layer whose vectors are added, or None.
            dropout: float, the dropout rate for the vectors.
            causal: bool, whether convolutions read only earlier frames, for streaming.
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
                "SpeechEmbedding(stem='1d') looks at later frames, so it cannot stream with "
                "chunk_size. Use stem='2d', or leave chunk_size out."
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
