"""Recordings and their transcripts, from files with sound or features."""

import pathlib
import typing

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.recording_tables import list_recordings
from keras_attention.data.readers.sounds import read_sound, resample
from keras_attention.data.readers.sphinx import FEATURES, read_features
from keras_attention.data.splits import add_dev, read_parts
from keras_attention.files.io import prefix_errors

RATE = 16_000  # Hz, used if files have different rates


class Recording(typing.NamedTuple):
    """A sound and its transcript.

    `sound` is float32 samples (n,) from -1 to 1, or features (frames, features), such as a log-mel
    spectrogram. `collect` states the sampling rate for all of them. `text` is the transcript.
    `speaker` is a str, or None if unknown. `translation` is the transcript in another language, or
    None.
    """

    sound: np.ndarray
    text: str
    speaker: str | None = None
    translation: str | None = None

    @classmethod
    def collect(
        cls, train, dev=(), test=(), *, sampling_rate=None, dev_fraction=0.1, seed=0, notes=()
    ):
        """Make a `DataSet` from lists of `Recording` for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it. `sampling_rate` is the rate of all recordings in Hz, or None for features.
        `notes` is a tuple of str, remarks about the data for a model card. Raise a ValueError if a
        sound contains NaN, or the sounds have different kinds of shapes.
        """
        train, dev, test = map(list, (train, dev, test))
        for recording in (*train, *dev, *test):
            if not np.isfinite(recording.sound).all():
                raise ValueError(
                    f"The sound of {recording.text!r} has NaN or infinity: expected finite numbers."
                )
        shapes = {recording.sound.shape[1:] for recording in (*train, *dev, *test)}
        if len(shapes) > 1:
            raise ValueError(
                f"The sounds have the shapes (T, ...) {sorted(shapes)}: expected one shape for all."
            )
        if sampling_rate is not None:
            check_whole_number("Recording.collect", "sampling_rate", sampling_rate)
        train, dev = add_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
        about = {"sampling_rate": sampling_rate}
        return DataSet(cls, train, dev, test, notes=tuple(notes), about=about)


def from_recordings(
    train=None,
    dev=None,
    test=None,
    *,
    sound_column="path",
    text_column="text",
    sampling_rate=None,
    dev_fraction=0.1,
    seed=0,
    encoding="utf-8",
    on_error="raise",
):
    """Read a `DataSet` of `Recording` from tables, lists or folders of files and transcripts.

    - `.csv`, `.tsv`, `.jsonl`, gzipped (`.gz`) or not: the first row, or the keys of the objects,
      name the columns. Columns `speaker` and `translation` are optional. Without column names, the
      columns are path, transcript, speaker and translation. Paths are absolute, or relative to the
      table.
    - a folder that contains such a file named `transcripts.tsv`.
    - a folder of LibriSpeech: files `*.trans.txt` at any depth have lines `name TRANSCRIPT` for
      `name.flac` or `name.wav` in the same folder. The speaker is the first number in a name.
    - a file list of Sphinx, as in AN4: `etc/an4_train.fileids` with `etc/an4_train.transcription`,
      for files in `feat/` or `wav/`.

    An empty transcript means that nobody speaks. Raise a ValueError that names the files and lines
    that cannot be read.

    Args:
        train, dev, test: a path, a list of paths, or None.
        sound_column, text_column: str, the names of the columns. In a file without column names,
            ints that count from 0.
        sampling_rate: int, the rate in Hz to resample all recordings to. None keeps the rate of the
            files, or resamples to 16,000 Hz if they differ.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import pathlib
    import numpy as np
    import soundfile
    import keras_attention as ka

    soundfile.write("a.wav", np.zeros(44100), 44100)
    pathlib.Path("said.csv").write_text("Path,Text\\na.wav,nothing\\n")
    data = ka.data.from_recordings(test="said.csv", sampling_rate=16000)
    assert data.test[0].text == "nothing" and len(data.test[0].sound) == 16000
    ```
    """
    columns = sound_column, text_column
    parts = read_parts(_read, train, dev, test, on_error, columns=columns, encoding=encoding)
    rates = {rate for part in parts.values() for _, rate in part if rate is not None}
    if sampling_rate is None:
        sampling_rate = rates.pop() if len(rates) == 1 else RATE if rates else None
    elif not rates:
        sampling_rate = None  # all files contain features
    for part in parts.values():
        for k, (one, rate) in enumerate(part):
            sound = one.sound if rate is None else resample(one.sound, rate, sampling_rate)
            part[k] = one._replace(sound=sound)
    options = {"sampling_rate": sampling_rate, "dev_fraction": dev_fraction, "seed": seed}
    return Recording.collect(**parts, **options)


def _read(path, columns, encoding, problems):
    """Read the files that `path` names, and return [(`Recording`, its sampling rate or None)].

    `columns` are the columns with path and transcript. Errors are collected in `problems`, a
    `Problems`.
    """
    recordings = []
    for place, file, *fields in list_recordings(path, columns, encoding, problems):
        with problems.note(), prefix_errors(place):
            if pathlib.Path(file).suffix == FEATURES:
                sound, rate = read_features(file), None
            else:
                sound, rate = read_sound(file)
            recordings.append((Recording(sound, *fields), rate))
    return recordings
