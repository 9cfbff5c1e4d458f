"""Recordings and what is said in them: from files of sound or features, as lists and batches."""

import functools
import pathlib
import typing

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.dataset import DataSet
from keras_attention.data.readers.columns import UTF_8
from keras_attention.data.readers.recording_tables import list_recordings
from keras_attention.data.readers.sounds import read_sound, resample
from keras_attention.data.readers.sphinx import FEATURES, read_features
from keras_attention.data.splits import add_dev, read_parts
from keras_attention.files.io import prefix_errors

RATE = 16_000  # samples a second, where files differ


class Recording(typing.NamedTuple):
    """A piece of sound, float32 samples (n,) from -1 to 1 or features (T, F), and its transcript.

    `speaker` is a str, or None where nobody is named; `translation` what is said in another
    language, or None.
    """

    sound: np.ndarray
    text: str
    speaker: str | None = None
    translation: str | None = None

    @classmethod
    def collect(
        cls, train, dev=(), test=(), *, sampling_rate=None, dev_fraction=0.1, seed=0, notes=()
    ):
        """Return a `DataSet` from lists of `Recording`. Without `dev`, a share of train becomes it.

        Args:
            sampling_rate: int, samples a second of all of them. None for features.
            notes: tuple of str, what a model's card is to say about the data.

        ```python
        import numpy as np
        import keras_attention as ka

        one = ka.data.Recording(np.zeros(8000, "float32"), "one")
        data = ka.data.Recording.collect([one] * 20, sampling_rate=8000)
        assert len(data.train) == 18 and len(data.dev) == 2
        ```
        """
        train, dev, test = map(list, (train, dev, test))
        for recording in (*train, *dev, *test):
            if not np.isfinite(recording.sound).all():
                raise ValueError(
                    f"The sound of the recording {recording.text!r} holds NaN or infinity: "
                    "expected finite numbers. Replace them, or leave the recording out."
                )
        shapes = {recording.sound.shape[1:] for recording in (*train, *dev, *test)}
        if len(shapes) > 1:
            raise ValueError(
                f"The recordings have sounds of the shapes (T, ...) {sorted(shapes)}: expected all "
                "samples (n,), or all features (T, F) of the same F."
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
    encoding=UTF_8,
    on_error="raise",
):
    """Recordings of files: tables with a path and a transcript in each row, lists, or folders.

    - `.csv`, `.tsv`, `.jsonl`, gzipped (`.gz`) or not: the first row, or the keys of the objects,
      name the columns. Paths are absolute, or relative to the table. There may be columns
      `speaker` and `translation`. Where the first row names no columns, they are path, transcript,
      speaker and translation, in this order, of which the last two may be missing.
    - a folder with such a file, called `transcripts.tsv`.
    - a folder as LibriSpeech has them, where files `*.trans.txt`, at any depth, have lines
      `name TRANSCRIPT` for `name.flac` or `name.wav` beside them. The speaker is the first number
      in a name.
    - a list of Sphinx, as AN4 has them: `etc/an4_train.fileids` with `etc/an4_train.transcription`
      beside it, of files in `feat/` or `wav/`.

    An empty transcript is that of a recording in which nobody speaks.

    Args:
        train, dev, test: a path, a list of paths, or None.
        sound_column, text_column: str, names of columns; or ints, which count columns from 0 where
            no row names them.
        sampling_rate: int, samples a second that all recordings get; others are resampled. None
            keeps the rate of the files, or takes 16,000 where they differ.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `Recording`.

    Raises:
        ValueError: names the files and the lines.

    ```python
    import pathlib
    import tempfile
    import numpy as np
    import soundfile
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    soundfile.write(folder / "a.wav", np.zeros(44100), 44100)
    (folder / "said.csv").write_text("Path,Text\\na.wav,nothing\\n")
    data = ka.data.from_recordings(test=folder / "said.csv", sampling_rate=16000)
    assert data.test[0].text == "nothing" and len(data.test[0].sound) == 16000
    ```
    """
    read = functools.partial(_read, columns=(sound_column, text_column), encoding=encoding)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    rates = {rate for part in parts.values() for _, rate in part if rate is not None}
    if sampling_rate is None:
        sampling_rate = rates.pop() if len(rates) == 1 else RATE if rates else None
    elif not rates:
        sampling_rate = None  # features
    parts = {
        name: [
            one if rate is None else one._replace(sound=resample(one.sound, rate, sampling_rate))
            for one, rate in part
        ]
        for name, part in parts.items()
    }
    return Recording.collect(
        **parts, sampling_rate=sampling_rate, dev_fraction=dev_fraction, seed=seed
    )


def _read(path, columns, encoding, problems):
    """Read [(`Recording`, its samples a second or None)] of what `path` names."""
    recordings = []
    for place, file, *fields in list_recordings(path, columns, encoding, problems):
        with problems.note(), prefix_errors(place):
            if pathlib.Path(file).suffix == FEATURES:
                sound, rate = read_features(file), None
            else:
                sound, rate = read_sound(file)
            recordings.append((Recording(sound, *fields), rate))
    return recordings
