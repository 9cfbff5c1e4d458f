"""Waveforms as log-mel spectrograms, as Whisper and as Kaldi define them."""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_attention.blocks.length_mask import mask_lengths
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.part import OwnArguments


@dataclasses.dataclass(frozen=True)
class SpectrogramSettings:
    """What makes the spectrograms of one toolkit differ from those of another.

    Attributes:
        window: str, `"hann"` (periodic) or `"povey"` (a symmetric Hann to the power of 0.85).
        centered: bool, whether frame t lies around sample t * stride, with the ends mirrored, or
            begins there.
        pads_frames: bool, whether a frame is padded to the next power of two before the transform.
        scale: float, by which samples from -1 to 1 are multiplied.
        preemphasis: float, the share of the sample before that is subtracted, after the mean of the
            frame; or None for neither.
        slaney: bool, whether the mel scale is Slaney's, with triangles of equal areas in Hz; or
            1127 ln(1 + f / 700), with triangles of equal heights in mel.
        min_freq: float, in Hz, where the lowest triangle begins.
        floor: float, the least power of which a logarithm is taken.
        whisper_range: bool, whether log10 is limited to 8 below the largest of an utterance, and
            then mapped by (x + 4) / 4; or the natural logarithm stays as it is.
    """

    window: str
    centered: bool
    pads_frames: bool
    scale: float
    preemphasis: float | None
    slaney: bool
    min_freq: float
    floor: float
    whisper_range: bool


SETTINGS = {
    "whisper": SpectrogramSettings(
        window="hann",
        centered=True,
        pads_frames=False,
        scale=1.0,
        preemphasis=None,
        slaney=True,
        min_freq=0.0,
        floor=1e-10,
        whisper_range=True,
    ),
    "kaldi": SpectrogramSettings(
        window="povey",
        centered=False,
        pads_frames=True,
        scale=32768.0,
        preemphasis=0.97,
        slaney=False,
        min_freq=20.0,
        floor=float(np.finfo("float32").eps),
        whisper_range=False,
    ),
}
FRAME, STRIDE = 0.025, 0.010  # seconds


@keras.saving.register_keras_serializable(package="keras_attention")
class LogMelSpectrogram(OwnArguments, keras.layers.Layer):
    """The logarithm of the power in frames of a waveform, on the mel scale.

    `log(max(|DFT(window · frame)|² · triangles, floor))`, in float32 under any policy. `"whisper"`
    is what Radford et al. (2022, section 2.2) compute, equal to librosa's `melspectrogram` (with
    `pad_mode="reflect"`) up to the logarithm and without its last frame; `"kaldi"` is Kaldi's
    `compute-fbank-feats` without dither, whose frames do not depend on one another: it is the one
    to stream.

    Args:
        num_mel_bins: int F.
        settings: `"whisper"` or `"kaldi"`.
        sampling_rate: int, samples a second.
        sequence_length, sequence_stride: int, samples of a frame, and from one to the next; None is
            25 and 10 milliseconds.
        min_freq, max_freq: float, in Hz, the ends of the triangles; None is 0 (Kaldi: 20) and half
            of the sampling rate.

    Call arguments:
        inputs: float (B, samples), by convention from -1 to 1.
        mask: bool (B, samples), True = a sample, those of a row first; from the implicit mask.

    Returns (B, T, F), T = `count_frames(samples)`. The mask of the frames is the implicit one of
    the output: frames for which an utterance alone would have enough samples. Those of Whisper
    near the end of a padded one see the padding where they would see its end mirrored.

    In LiteRT files a transform of a power of two is the built-in `RFFT2D`, and others, such as
    Whisper's 400, are small matrix products. The triangles stay in floats when weights are int8:
    powers span 10 decades, of which int8 keeps two. Full int8 rounds the powers themselves: export
    a model of features then, and compute these outside.

    ```python
    import numpy as np
    import keras_attention as ka

    layer = ka.blocks.LogMelSpectrogram(80, "kaldi", sampling_rate=16000)
    assert layer(np.random.normal(size=(2, 16000))).shape == (2, 98, 80)
    assert layer.count_frames(16000) == 98
    ```
    """

    own_arguments = (
        *("num_mel_bins", "settings", "sampling_rate", "sequence_length", "sequence_stride"),
        *("min_freq", "max_freq"),
    )

    def __init__(
        self,
        num_mel_bins=80,
        settings="kaldi",
        sampling_rate=16000,
        sequence_length=None,
        sequence_stride=None,
        min_freq=None,
        max_freq=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.num_mel_bins, self.settings, self.sampling_rate = num_mel_bins, settings, sampling_rate
        checks.check_choice(self, "settings", list(SETTINGS))
        self._of = SETTINGS[settings]
        checks.check_whole_numbers(self, "num_mel_bins", "sampling_rate")
        self.sequence_length = sequence_length or round(FRAME * sampling_rate)
        self.sequence_stride = sequence_stride or round(STRIDE * sampling_rate)
        checks.check_whole_numbers(self, "sequence_length", least=2)
        checks.check_whole_numbers(self, "sequence_stride")
        self.min_freq = self._of.min_freq if min_freq is None else min_freq
        self.max_freq = sampling_rate / 2 if max_freq is None else max_freq
        checks.check_number(self, "min_freq", least=0)
        checks.check_number(self, "max_freq", above=self.min_freq, most=sampling_rate / 2)
        self.fft_length = self.sequence_length
        if self._of.pads_frames:
            self.fft_length = 2 ** math.ceil(math.log2(self.sequence_length))
        self._window = make_window(self._of.window, self.sequence_length)
        self._triangles = make_triangles(
            num_mel_bins,
            self.fft_length,
            sampling_rate,
            self.min_freq,
            self.max_freq,
            slaney=self._of.slaney,
        )

    def count_frames(self, samples):
        """The frames of so many samples: of an int, or of an int tensor, element by element."""
        if self._of.centered:
            return samples // self.sequence_stride
        frames = (samples - self.sequence_length) // self.sequence_stride + 1
        return max(frames, 0) if isinstance(samples, int) else ops.maximum(frames, 0)

    def call(self, inputs, mask=None):
        x = ops.cast(inputs, "float32")
        if self._of.scale != 1.0:
            x = ops.multiply(x, self._of.scale)
        before = self.sequence_length // 2
        if self._of.centered:
            x = ops.pad(x, ((0, 0), (before, before)), mode="reflect")
        frames = ops.extract_sequences(x, self.sequence_length, self.sequence_stride)
        if self._of.centered:  # the one around the end, of which half is mirrored
            frames = frames[:, : self.count_frames(ops.shape(inputs)[1])]
        powers = self._compute_powers(self._sharpen(frames))
        x = ops.log(ops.maximum(self._sum_triangles(powers), self._of.floor))
        heard = None if mask is None else self.count_mask(mask, ops.shape(x)[1])
        if self._of.whisper_range:
            x = self._limit(ops.divide(x, math.log(10.0)), heard)
        x = ops.cast(x, self.compute_dtype)
        if heard is not None:
            keras_internals.set_mask(x, heard)
        return x

    def _sharpen(self, frames):
        """Frames (B, T, L) without their mean, and with less of their low frequencies."""
        if self._of.preemphasis is None:
            return frames
        frames = frames - ops.mean(frames, axis=-1, keepdims=True)
        before = ops.concatenate([frames[..., :1], frames[..., :-1]], axis=-1)
        return frames - self._of.preemphasis * before

    def _compute_powers(self, frames):
        """|DFT|² of the frames under the window: (B, T, L) -> (B, T, fft_length / 2 + 1)."""
        x = ops.multiply(frames, self._window)
        exported = scope.current(scope.Export) is not None
        if exported and self.fft_length & (self.fft_length - 1):
            real, imaginary = transform_by_factors(x, self.fft_length)
        else:
            real, imaginary = ops.rfft(x, self.fft_length)
        return ops.square(real) + ops.square(imaginary)

    def _sum_triangles(self, powers):
        """The powers under each triangle: (B, T, fft_length / 2 + 1) -> (B, T, F)."""
        if scope.current(scope.Export) is None:
            return ops.matmul(powers, self._triangles)
        # Of a product with a constant matrix, a converter would round both factors to int8.
        bins, weights = list_bins(self._triangles)
        picked = ops.take(powers, bins.ravel(), axis=-1)
        shape = ops.shape(picked)
        picked = ops.reshape(picked, (shape[0], shape[1], *bins.shape))
        return ops.sum(ops.multiply(picked, weights), axis=-1)

    def _limit(self, x, heard):
        """Whisper's range: at most 8 decades of power below the loudest frame, around 0."""
        frames = x
        if heard is not None:
            frames = ops.where(ops.expand_dims(heard, axis=2), x, math.log10(self._of.floor))
        loudest = ops.max(frames, axis=(1, 2), keepdims=True)
        return (ops.maximum(x, loudest - 8.0) + 4.0) / 4.0

    def count_mask(self, mask, frames):
        """Which of `frames` an utterance has: bool (B, T), from those of its samples."""
        return mask_lengths(self.count_frames(ops.sum(ops.cast(mask, "int32"), axis=1)), frames)

    def compute_mask(self, inputs, previous=None):
        return None  # the output carries it

    def compute_output_shape(self, input_shape):
        samples = input_shape[1]
        frames = None if samples is None else self.count_frames(samples)
        return (input_shape[0], frames, self.num_mel_bins)

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), self.compute_dtype)


def make_window(name, length):
    """The window `"hann"` or `"povey"` of so many samples, float32."""
    if name == "hann":
        return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)).astype("float32")
    symmetric = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))
    return (symmetric**0.85).astype("float32")


def make_triangles(num_mel_bins, fft_length, sampling_rate, min_freq, max_freq, slaney):
    """The weight of each bin of the transform in each mel bin: float32 (fft_length / 2 + 1, F).

    Triangle m rises from corner m to corner m + 1 and falls to corner m + 2; the corners are
    equally far apart in mel.
    """
    hertz = np.arange(fft_length // 2 + 1) * sampling_rate / fft_length
    to_mel = _hertz_to_slaney if slaney else _hertz_to_mel
    corners = np.linspace(to_mel(min_freq), to_mel(max_freq), num_mel_bins + 2)
    if slaney:
        corners = _slaney_to_hertz(corners)
    else:
        hertz = _hertz_to_mel(hertz)
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising = (hertz[:, None] - left) / (middle - left)
    falling = (right - hertz[:, None]) / (right - middle)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    if slaney:
        triangles *= 2.0 / (right - left)
    return triangles.astype("float32")


def _hertz_to_mel(hertz):
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


# Slaney's scale is linear up to 1000 Hz, which is 15 mel, and logarithmic from there.
_LINEAR, _BREAK, _STEP = 200.0 / 3, 15.0, np.log(6.4) / 27


def _hertz_to_slaney(hertz):
    above = np.maximum(hertz, 1000.0)
    return np.where(hertz < 1000.0, hertz / _LINEAR, _BREAK + np.log(above / 1000.0) / _STEP)


def _slaney_to_hertz(mel):
    return np.where(mel < _BREAK, mel * _LINEAR, 1000.0 * np.exp(_STEP * (mel - _BREAK)))


def list_bins(triangles):
    """The bins under each triangle and their weights: int32 and float32 (F, W), W the widest.

    Narrower ones are filled up with weights of 0.
    """
    under = [np.flatnonzero(column) for column in triangles.T]
    width = max(1, *(len(found) for found in under))
    bins, weights = np.zeros((2, len(under), width))
    for m, found in enumerate(under):
        bins[m, : len(found)], weights[m, : len(found)] = found, triangles[found, m]
    return bins.astype("int32"), weights.astype("float32")


def transform_by_factors(x, length):
    """The first `length // 2 + 1` terms of the discrete Fourier transform, by matrix products.

    Cooley and Tukey (1965): with length = P · Q, n = Q p + q and k = j + P l,
    X[k] = Σ_q W(q j / length) (Σ_p x[n] W(p j / P)) W(q l / Q), W(a) = exp(-2πi a). With P near Q
    the matrices are too small for a converter to round them to int8 (400: 20 × 20).

    Args:
        x: float (B, T, length).
        length: int.

    Returns:
        The real and the imaginary part, each (B, T, length // 2 + 1).
    """
    p = max(d for d in range(1, math.isqrt(length) + 1) if length % d == 0)
    q = length // p
    shape = ops.shape(x)
    x = ops.reshape(x, (shape[0], shape[1], p, q))
    x = ops.transpose(x, (0, 1, 3, 2))  # (B, T, Q, P): n = Q p + q
    inner_real, inner_imaginary = _roots(p, p, p)
    real, imaginary = ops.matmul(x, inner_real), ops.matmul(x, inner_imaginary)  # (B, T, Q, J)
    cosine, sine = _roots(q, p, length)
    real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
    real, imaginary = (ops.transpose(part, (0, 1, 3, 2)) for part in (real, imaginary))
    outer_real, outer_imaginary = _roots(q, q, q)
    real, imaginary = (
        ops.matmul(real, outer_real) - ops.matmul(imaginary, outer_imaginary),
        ops.matmul(real, outer_imaginary) + ops.matmul(imaginary, outer_real),
    )  # (B, T, J, L): k = j + P l
    terms = length // 2 + 1
    return [
        ops.reshape(ops.transpose(part, (0, 1, 3, 2)), (shape[0], shape[1], length))[..., :terms]
        for part in (real, imaginary)
    ]


def _roots(rows, columns, length):
    """The real and the imaginary part of exp(-2πi · row · column / length), float32."""
    angles = 2 * np.pi * np.outer(np.arange(rows), np.arange(columns)) / length
    return np.cos(angles).astype("float32"), -np.sin(angles).astype("float32")
