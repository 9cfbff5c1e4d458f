"""Files of sound: samples of one channel, at any rate."""

import fractions
import functools
import pathlib

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.files.extras import import_resampling, import_soundfile

LEAST, MOST = 1_000, 1_000_000  # samples a second
# Of the low-pass filter: zeros on either side, the share of the band that it keeps, and the window.
# As `kaiser_best` of librosa: an error of less than -90 dB.
ZEROS, BAND, BETA = 64, 0.9475937167399596, 14.769656459379492


def read_sound(path, sampling_rate=None):
    """Return the samples of a WAV or FLAC file, float32 (n,) from -1 to 1, and how many a second
    has.

    Channels are averaged.

    Args:
        path: path of a file.
        sampling_rate: int, samples a second to resample to; None for those of the file.

    Raises:
        ValueError: no such file, not one of sound, without samples, or with samples that are not
            finite.
    """
    soundfile = import_soundfile("read_sound")
    if not pathlib.Path(path).is_file():
        raise ValueError(f"There is no file {path}: expected a WAV or FLAC file.")
    try:
        samples, rate = soundfile.read(str(path), dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError) as error:
        raise ValueError(f"{path} is no WAV or FLAC file that can be read: {error}") from error
    if not len(samples):
        raise ValueError(f"{path} has no samples: record it again, or leave it out.")
    if not np.isfinite(samples).all():
        raise ValueError(
            f"{path} holds NaN or infinity: expected samples from -1 to 1. Write it again, or "
            "leave it out."
        )
    if not LEAST <= rate <= MOST:
        raise ValueError(
            f"{path} has {rate:,} samples a second: expected {LEAST:,} to {MOST:,}. It is damaged, "
            "or no recording."
        )
    samples = samples.mean(axis=1)
    if sampling_rate is None:
        return samples, rate
    return resample(samples, rate, sampling_rate), sampling_rate


def resample(samples, rate, new_rate):
    """Resample, without the frequencies that the lower of both rates cannot have.

    Args:
        samples: float32 (n,).
        rate, new_rate: int, samples a second before and after.

    Returns:
        float32 (n * new_rate / rate,), rounded up.

    ```python
    import numpy as np
    from keras_attention.data.readers.sounds import resample

    tone = np.sin(2 * np.pi * 440 * np.arange(44100) / 44100).astype("float32")
    same = np.sin(2 * np.pi * 440 * np.arange(16000) / 16000)
    assert np.abs(resample(tone, 44100, 16000) - same)[200:-200].max() < 1e-4
    ```
    """
    check_whole_number("resample", "new_rate", new_rate)
    if rate == new_rate:
        return samples
    signal = import_resampling("read_sound")
    # A rate such as 44,101 gets the ratio of one that differs by less than a millionth.
    ratio = fractions.Fraction(new_rate, rate).limit_denominator(10_000)
    up, down = ratio.as_integer_ratio()
    resampled = signal.resample_poly(samples.astype("float64"), up, down, window=_filter(up, down))
    return resampled.astype("float32")


@functools.lru_cache(maxsize=4)
def _filter(up, down):
    """Return the taps of the low-pass filter between two rates."""
    signal, longer = import_resampling("read_sound"), max(up, down)
    return signal.firwin(2 * ZEROS * longer + 1, BAND / longer, window=("kaiser", BETA))
