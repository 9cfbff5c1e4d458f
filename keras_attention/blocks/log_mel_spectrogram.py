"""`LogMelSpectrogram`: log-mel spectrograms of waveforms, as in Whisper and Kaldi."""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_attention.blocks.lengths import mask_lengths
from keras_attention.core import checks, keras_internals, scope
from keras_attention.core.part import OwnArguments


@dataclasses.dataclass(frozen=True)
class SpectrogramSettings:
    """The settings in which the spectrograms of Whisper and Kaldi differ.

    Attributes:
        window: str, `"hann"` (periodic) or `"povey"` (a symmetric Hann window to the power of
            0.85).
        centered: bool, whether sample t * stride is the center of frame t, with the waveform
            mirrored at both ends. Otherwise this sample is the first of frame t.
        pads_frames: bool, whether frames are padded to the next power of two before the Fourier
            transform.
        scale: float, multiplies the samples, which are between -1 and 1.
        preemphasis: float, the fraction of the previous sample that is subtracted from each sample,
            after subtracting the mean of the frame. None subtracts neither.
        slaney: bool, whether the mel scale is Slaney's, with triangles of equal area in Hz.
            Otherwise it is 1127 ln(1 + f / 700), with triangles of equal height in mel.
        min_freq: float, the lower end of the lowest triangle, in Hz.
        floor: float, the minimum power before the logarithm.
        whisper_range: bool, whether the result is (x + 4) / 4, where x is log10 of the power,
            raised to at least 8 below the maximum of the utterance. Otherwise the result is the
            natural logarithm.
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
    """Computes the log-mel spectrogram of waveforms, as Whisper or Kaldi does.

    Computes `log(max(|DFT(window · frame)|² · triangles, floor))`, where `triangles` is a matrix of
    mel filters, in float32 under any dtype policy. `"whisper"` follows Radford et al. (2022,
    section 2.2). Before the logarithm it equals librosa's `melspectrogram(pad_mode="reflect")`
    without the last frame. `"kaldi"` is Kaldi's `compute-fbank-feats` without dither. Its frames do
    not depend on one another, so it can be used for streaming.

    Args:
        num_mel_bins: int F, number of features of a frame.
        settings: `"whisper"` or `"kaldi"`.
        sampling_rate: int, samples per second.
        sequence_length: int, number of samples in a frame. None is 25 milliseconds.
        sequence_stride: int, number of samples from one frame to the next. None is 10 milliseconds.
        min_freq: float, the lowest frequency in Hz. None is 0 for Whisper and 20 for Kaldi.
        max_freq: float, the highest frequency in Hz. None is half of the sampling rate.

    Call arguments:
        inputs: float (B, samples), by convention from -1 to 1.
        mask: bool (B, samples), True = a sample. Padding comes last. Keras fills it from the
            implicit mask.

    Returns (B, T, F), where T is `count_frames(samples)`. If there is a mask, the result has an
    implicit mask, with as many frames for each utterance as the utterance has without padding. With
    `"whisper"`, padding changes the last of these frames: they contain the padding instead of the
    mirrored end of the utterance.

    In LiteRT files, the transform is the built-in `RFFT2D` if the frame length is a power of two.
    Other lengths, such as Whisper's 400, use small matrix products. The triangles stay in float
    when other weights become int8, because powers span 10 decades, and int8 only two. The
    quantization `"int8"` would also round the powers. To use it, export a model whose inputs are
    features, and compute the features outside the file.

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
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.num_mel_bins, self.settings, self.sampling_rate = num_mel_bins, settings, sampling_rate
        checks.check_choice(self, "settings", list(SETTINGS))
        self._kind = SETTINGS[settings]
        checks.check_whole_numbers(self, "num_mel_bins", "sampling_rate")
        self.sequence_length = sequence_length or round(FRAME * sampling_rate)
        self.sequence_stride = sequence_stride or round(STRIDE * sampling_rate)
        checks.check_whole_numbers(self, "sequence_length", least=2)
        checks.check_whole_numbers(self, "sequence_stride")
        self.min_freq = self._kind.min_freq if min_freq is None else min_freq
        self.max_freq = sampling_rate / 2 if max_freq is None else max_freq
        checks.check_number(self, "min_freq", least=0)
        checks.check_number(self, "max_freq", above=self.min_freq, most=sampling_rate / 2)
        self.fft_length = self.sequence_length
        if self._kind.pads_frames:
            self.fft_length = 2 ** math.ceil(math.log2(self.sequence_length))
        self._window = make_window(self._kind.window, self.sequence_length)
        self._triangles = make_triangles(
            num_mel_bins,
            self.fft_length,
            sampling_rate,
            self.min_freq,
            self.max_freq,
            slaney=self._kind.slaney,
        )

    def count_frames(self, samples):
        """Return the number of frames of a waveform with this number of samples.

        Both numbers are an int or an int tensor.
        """
        if self._kind.centered:
            return samples // self.sequence_stride
        frames = (samples - self.sequence_length) // self.sequence_stride + 1
        return max(frames, 0) if isinstance(samples, int) else ops.maximum(frames, 0)

    def call(self, inputs, mask=None):
        x = ops.cast(inputs, "float32")
        if self._kind.scale != 1.0:
            x = ops.multiply(x, self._kind.scale)
        before = self.sequence_length // 2
        if self._kind.centered:
            x = ops.pad(x, ((0, 0), (before, before)), mode="reflect")
        frames = ops.extract_sequences(x, self.sequence_length, self.sequence_stride)
        if self._kind.centered:  # leave out the frame that is centered at the end
            frames = frames[:, : self.count_frames(ops.shape(inputs)[1])]
        powers = self._compute_powers(self._sharpen(frames))
        x = ops.log(ops.maximum(self._sum_triangles(powers), self._kind.floor))
        is_frame = None
        if mask is not None:
            counts = self.count_frames(ops.sum(ops.cast(mask, "int32"), axis=1))
            is_frame = mask_lengths(counts, ops.shape(x)[1])
        if self._kind.whisper_range:
            x = self._limit(ops.divide(x, math.log(10.0)), is_frame)
        x = ops.cast(x, self.compute_dtype)
        if is_frame is not None:
            keras_internals.set_mask(x, is_frame)
        return x

    def _sharpen(self, frames):
        """Subtract from each sample the mean of its frame, and a fraction of the previous sample.

        `frames` is (B, T, L), with L samples in each frame. Without `preemphasis` in the settings,
        nothing is subtracted.
        """
        if self._kind.preemphasis is None:
            return frames
        frames = frames - ops.mean(frames, axis=-1, keepdims=True)
        before = ops.concatenate([frames[..., :1], frames[..., :-1]], axis=-1)
        return frames - self._kind.preemphasis * before

    def _compute_powers(self, frames):
        """Compute the power |DFT|² at each frequency: (B, T, L) -> (B, T, fft_length / 2 + 1)."""
        x = ops.multiply(frames, self._window)
        exported = scope.current(scope.Export) is not None
        if exported and self.fft_length & (self.fft_length - 1):
            real, imaginary = transform_by_factors(x, self.fft_length)
        else:
            real, imaginary = ops.rfft(x, self.fft_length)
        return ops.square(real) + ops.square(imaginary)

    def _sum_triangles(self, powers):
        """Sum the powers under each mel triangle: (B, T, fft_length / 2 + 1) becomes (B, T, F)."""
        if scope.current(scope.Export) is None:
            return ops.matmul(powers, self._triangles)
        # In a product with a constant matrix, a converter would round both factors to int8.
        bins, weights = list_bins(self._triangles)
        picked = ops.take(powers, bins.ravel(), axis=-1)
        shape = ops.shape(picked)
        picked = ops.reshape(picked, (shape[0], shape[1], *bins.shape))
        return ops.sum(ops.multiply(picked, weights), axis=-1)

    def _limit(self, x, is_frame):
        """Clip log10 of powers at 8 below the maximum of each utterance, and rescale, as Whisper.

        `x` is (B, T, F), and `is_frame` bool (B, T), False for padding, or None.
        """
        frames = x
        if is_frame is not None:
            frames = ops.where(ops.expand_dims(is_frame, axis=2), x, math.log10(self._kind.floor))
        loudest = ops.max(frames, axis=(1, 2), keepdims=True)
        return (ops.maximum(x, loudest - 8.0) + 4.0) / 4.0

    def compute_mask(self, inputs, previous=None):
        return None  # `call` attaches the mask to its output

    def compute_output_shape(self, input_shape):
        samples = input_shape[1]
        frames = None if samples is None else self.count_frames(samples)
        return (input_shape[0], frames, self.num_mel_bins)


def make_window(name, length):
    """Return the window `name`, a factor for each sample: float32 (length,).

    `name` is `"hann"` or `"povey"`.
    """
    if name == "hann":
        return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)).astype("float32")
    symmetric = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))
    return (symmetric**0.85).astype("float32")


def make_triangles(num_mel_bins, fft_length, sampling_rate, min_freq, max_freq, slaney):
    """Return the weight of each DFT bin in each of F mel bins: float32 (fft_length / 2 + 1, F).

    `num_mel_bins` is F. `fft_length` is the length of a DFT in samples. `sampling_rate`, `min_freq`
    and `max_freq` are explained in `LogMelSpectrogram`. `slaney` is a bool, whether the mel scale
    is Slaney's. Triangle m rises from corner m to corner m + 1 and falls to corner m + 2. The
    corners are equally spaced in mel.
    """
    hertz = np.arange(fft_length // 2 + 1) * sampling_rate / fft_length
    to_mel = _hertz_to_slaney if slaney else _hertz_to_mel
    corners = np.linspace(to_mel(min_freq), to_mel(max_freq), num_mel_bins + 2)
    if slaney:  # back to Hz
        above = 1000.0 * np.exp(_STEP * (corners - _BREAK))
        corners = np.where(corners < _BREAK, corners * _LINEAR, above)
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


def list_bins(triangles):
    """Return the indices of the DFT bins under each triangle and their weights, both (F, W).

    `triangles` is the matrix (fft_length / 2 + 1, F) of `make_triangles`. The indices are int32,
    the weights float32. W is the number of bins under the widest triangle. Narrower triangles are
    padded with weights of 0.
    """
    columns = [np.flatnonzero(column) for column in triangles.T]
    width = max(1, *(len(column) for column in columns))
    bins, weights = np.zeros((2, len(columns), width))
    for m, column in enumerate(columns):
        bins[m, : len(column)], weights[m, : len(column)] = column, triangles[column, m]
    return bins.astype("int32"), weights.astype("float32")


def transform_by_factors(x, length):
    """Compute the real and imaginary parts of a DFT, (B, T, length // 2 + 1), of x (B, T, length).

    The DFT consists of products of small matrices (Cooley and Tukey, 1965). Let length = P · Q, and
    write the input index as n = Q p + q and the output index as k = j + P l. With
    W(a) = exp(-2πi a):

        X[k] = Σ_q W(q j / length) (Σ_p x[n] W(p j / P)) W(q l / Q)

    If P is close to Q, the matrices are so small that converters do not round them to int8.
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
    """Return real and imaginary part of exp(-2πi · row · column / length), each (rows, columns)."""
    angles = 2 * np.pi * np.outer(np.arange(rows), np.arange(columns)) / length
    return np.cos(angles).astype("float32"), -np.sin(angles).astype("float32")
