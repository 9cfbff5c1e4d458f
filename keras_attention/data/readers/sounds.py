"""Reads sound files as mono samples, and resamples them."""

import fractions
import functools
import pathlib

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.files.extras import import_resampling, import_soundfile

LEAST, MOST = 1_000, 1_000_000  # Hz
# Low-pass filter: zeros on either side, share of the band that it keeps, and Kaiser beta, as in
# librosa's `kaiser_best`. Its error is below -90 dB.
ZEROS, BAND, BETA = 64, 0.9475937167399596, 14.769656459379492


def read_sound(path, sampling_rate=None):
    """Read a WAV or FLAC file, and return (samples, sampling rate).

    Samples are float32 (n,) from -1 to 1. Channels are averaged. `sampling_rate` is the rate in Hz
    to resample to, or None for the rate of the file. Raise a ValueError if the file is missing,
    damaged or without samples.
    """
    soundfile = import_soundfile("read_sound")
    if not pathlib.Path(path).is_file():
        raise ValueError(f"The file {path} is missing: expected a WAV or FLAC file.")
    try:
        samples, rate = soundfile.read(str(path), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError) as error:
        raise ValueError(f"{path} is not a readable WAV or FLAC file: {error}") from error
    if not len(samples):
        raise ValueError(f"{path} has no samples: record it again, or leave it out.")
    if not np.isfinite(samples).all():
        raise ValueError(
            f"{path} has NaN or infinity: expected samples from -1 to 1. Leave it out."
        )
    if not LEAST <= rate <= MOST:
        raise ValueError(
            f"{path} has {rate:,} samples a second: expected {LEAST:,} to {MOST:,}. Is it damaged?"
        )
    samples = samples.mean(axis=1)
    if sampling_rate is None:
        return samples, rate
    return resample(samples, rate, sampling_rate), sampling_rate


def measure_duration(path):
    """Return the duration of a WAV or FLAC file in seconds, or 0 if the file is not readable."""
    soundfile = import_soundfile("measure_duration")
    try:
        return soundfile.info(str(path)).duration
    except (soundfile.SoundFileError, RuntimeError):
        return 0.0


def resample(samples, rate, new_rate):
    """Resample float32 samples (n,) from `rate` to `new_rate`, both in Hz.

    The result has n * new_rate / rate samples, rounded up. Frequencies that the lower rate cannot
    represent are removed.
    """
    check_whole_number("resample", "new_rate", new_rate)
    if rate == new_rate:
        return samples
    signal = import_resampling("read_sound")
    # For a rate such as 44,101 Hz, the ratio is rounded by less than a millionth.
    ratio = fractions.Fraction(new_rate, rate).limit_denominator(10_000)
    up, down = ratio.as_integer_ratio()
    resampled = signal.resample_poly(samples.astype("float64"), up, down, window=_filter(up, down))
    return resampled.astype("float32")


@functools.lru_cache(maxsize=4)
def _filter(up, down):
    """Compute the coefficients of the low-pass filter for resampling by `up` / `down`."""
    signal, longer = import_resampling("read_sound"), max(up, down)
    return signal.firwin(2 * ZEROS * longer + 1, BAND / longer, window=("kaiser", BETA))
