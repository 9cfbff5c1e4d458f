"""Recordings and what is said in them: from files of sound or features, as lists and batches."""

import dataclasses
import pathlib
import typing

import numpy as np

from keras_attention.checks import check_whole_number
from keras_attention.data.columns import UTF_8, read_lines
from keras_attention.data.extras import import_soundfile, import_tensorflow
from keras_attention.data.shares import check_batches, make_in_shares
from keras_attention.data.sphinx import FEATURES, list_sphinx, read_features
from keras_attention.data.splits import add_dev

SUFFIXES = (".wav", ".flac")
TRANSCRIPTS = "transcripts.tsv"  # of a folder


class Recording(typing.NamedTuple):
    """A piece of sound, float32 samples (n,) from -1 to 1 or features (T, F), and its transcript.

    `speaker` is a str, or None where nobody is named; `translation` what is said in another
    language, or None.
    """

    sound: np.ndarray
    text: str
    speaker: str | None = None
    translation: str | None = None


@dataclasses.dataclass(frozen=True)
class Recordings:
    """Recordings in three parts, in memory.

    Attributes:
        train, dev, test: lists of `Recording`.
        sampling_rate: int, samples a second of all of them; None for features.
        notes: tuple of str, what a model's card is to say about the data.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    sound = np.zeros(8000, "float32")
    data = ka.data.Recordings.from_lists([ka.data.Recording(sound, "one")] * 20, sampling_rate=8000)
    assert len(data.train) == 18 and len(data.dev) == 2
    ```
    """

    train: list
    dev: list
    test: list
    sampling_rate: int | None = None
    notes: tuple = ()

    @classmethod
    def from_lists(
        cls, train, dev=(), test=(), *, sampling_rate=None, dev_fraction=0.1, seed=0, notes=()
    ):
        """Of lists; without `dev`, a share of `train` becomes it."""
        train, dev, test = map(list, (train, dev, test))
        shapes = {recording.sound.shape[1:] for recording in (*train, *dev, *test)}
        if len(shapes) > 1:
            raise ValueError(
                f"The recordings have sounds of the shapes (T, ...) {sorted(shapes)}: expected all "
                "samples (n,), or all features (T, F) of the same F."
            )
        if sampling_rate is not None:
            check_whole_number("Recordings", "sampling_rate", sampling_rate)
        train, dev = add_dev(train, dev, dev_fraction=dev_fraction, seed=seed)
        return cls(train, dev, test, sampling_rate, tuple(notes))


def read_sound(path, sampling_rate=None):
    """The samples of a WAV or FLAC file, float32 (n,) from -1 to 1, and how many a second has.

    Channels are averaged.

    Args:
        path: path of a file.
        sampling_rate: int, what the file must have; None takes any.

    Raises:
        ValueError: no such file, not one of sound, without samples, or of another rate.
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
    if sampling_rate not in (None, rate):
        raise ValueError(
            f"{path} has {rate} samples a second, and {sampling_rate} are expected: convert it, "
            f"for example with `sox {path} -r {sampling_rate} new.wav`."
        )
    return samples.mean(axis=1), rate


def from_recordings(train=None, dev=None, test=None, *, sampling_rate=None, seed=0, encoding=UTF_8):
    """Recordings of files: tables with a path and a transcript in each line, lists, or folders.

    Args:
        train, dev, test: a path each, or None: a `.tsv` file with lines `path<TAB>transcript`,
            paths relative to it; a folder with such a file, called `transcripts.tsv`; or a folder
            as LibriSpeech has them, where files `*.trans.txt`, at any depth, have lines
            `name TRANSCRIPT` for `name.flac` or `name.wav` beside them. A third column of a table
            names the speaker, and a fourth has a translation; of LibriSpeech the speaker is the
            first number in a name. Or a list of Sphinx, as AN4 has them: `etc/an4_train.fileids`
            with `etc/an4_train.transcription` beside it, of files in `feat/` or `wav/`. An empty
            transcript is that of a recording in which nobody speaks.
        sampling_rate: int, samples a second that all must have; None is what the first has.
        seed: int, which tenth of train becomes dev where there is none.
        encoding: str, of the tables and lists, as Python names it.

    Returns:
        `Recordings`.

    Raises:
        ValueError: names the file and the line.
    """
    parts = {}
    for name, path in (("train", train), ("dev", dev), ("test", test)):
        parts[name] = []
        for place, file, *about in [] if path is None else list_recordings(path, encoding):
            try:
                if pathlib.Path(file).suffix == FEATURES:
                    sound = read_features(file)
                else:
                    sound, rate = read_sound(file, sampling_rate)
                    sampling_rate = sampling_rate or rate
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from error
            parts[name].append(Recording(sound, *about))
    return Recordings.from_lists(**parts, sampling_rate=sampling_rate, seed=seed)


def list_recordings(path, encoding=UTF_8):
    """(place for errors, sound file, transcript, ...) of each recording that `path` names.

    What follows are the other fields of a `Recording`: speaker, and translation where there is one.
    """
    path = pathlib.Path(path)
    if path.is_dir() and (path / TRANSCRIPTS).is_file():
        path = path / TRANSCRIPTS
    if path.suffix == ".fileids":
        found = list_sphinx(path, encoding)
    elif path.is_file():
        found = list(_read_table(path, encoding))
    else:
        files = sorted(path.rglob("*.trans.txt"))
        found = [row for file in files for row in _read_librispeech(file, encoding)]
    if not found:
        raise ValueError(
            f"{path} names no recordings: expected a .tsv file of paths and transcripts, a folder "
            f"with {TRANSCRIPTS}, or one with files *.trans.txt as LibriSpeech has them."
        )
    return found


def _read_table(path, encoding):
    for number, line in read_lines(path, encoding):
        if not line.strip():
            continue
        cells = line.split("\t")
        place = f"{path}, line {number}"
        if len(cells) not in (2, 3, 4):
            raise ValueError(
                f"{place}: {len(cells)} columns: expected a path, a tab and a transcript, and then "
                "perhaps a tab and a speaker, and one more and a translation."
            )
        path_of_sound, text, speaker, translation = (*cells, None, None)[:4]
        said = translation and translation.strip()
        yield place, path.parent / path_of_sound, text.strip(), speaker or None, said or None


def _read_librispeech(path, encoding):
    for number, line in read_lines(path, encoding):
        if not line.strip():
            continue
        name, _, text = line.partition(" ")
        place = f"{path}, line {number}"
        files = [path.parent / f"{name}{suffix}" for suffix in SUFFIXES]
        if not (there := [file for file in files if file.is_file()]):
            raise ValueError(f"{place}: there is neither {files[0]} nor {files[1].name}.")
        yield place, there[0], text.strip(), name.partition("-")[0]


def recording_batches(
    recordings, preprocessor, batch_size=16, *, shuffle=False, seed=0, drop_remainder=False
):
    """A `tf.data.Dataset` of batches for `fit` and `evaluate`, of recordings of similar lengths.

    Args:
        recordings: list of `Recording`.
        preprocessor: `SpeechPreprocessor`.
        batch_size: int; the last batch may be smaller.
        shuffle: bool, whether recordings meet others in every epoch, in another order.
        seed: int, of that order.
        drop_remainder: bool, whether a smaller last batch is left out: what Keras's own
            distributions want of several processes.

    Returns:
        A dataset of known cardinality: what `preprocessor` gives for the sounds, and labels int32
        (B, U), padded with 0.
    """
    if not recordings:
        raise ValueError("recordings is empty: there is nothing to make batches of.")
    tf = import_tensorflow("recording_batches")
    labels = [preprocessor.encode(recording.text) for recording in recordings]

    def make(rows, wanted):
        sounds = process_sounds(preprocessor, recordings, rows, wanted)
        return sounds, pad_labels([labels[i] for i in rows])[wanted]

    signature = sound_signature(tf, preprocessor), tf.TensorSpec((None, None), "int32")
    options = {"shuffle": shuffle, "seed": seed, "drop_remainder": drop_remainder}
    order = batch_by_sound(recordings, batch_size, **options)
    return generate_batches(tf, order, make, signature)


def process_sounds(preprocessor, recordings, rows, wanted):
    """What `preprocessor` makes of the `wanted` of the `rows`, as long as of all of them."""
    if len(wanted) == len(rows):
        return preprocessor([recordings[i].sound for i in rows])
    longest = max(rows, key=lambda i: len(recordings[i].sound))
    chosen = [*(rows[k] for k in wanted), longest]
    found = preprocessor([recordings[i].sound for i in chosen])
    return {name: array[:-1] for name, array in found.items()}


def pad_labels(rows, padding=0):
    """int32 (B, U) of lists of ints, padded at the end; U is at least 1."""
    padded = np.full((len(rows), max(1, *map(len, rows))), padding, "int32")
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def sound_signature(tf, preprocessor):
    """The `tf.TensorSpec`s of what a preprocessor makes of sounds."""
    shape = (None, None, *preprocessor.sound_shape)
    sound = tf.TensorSpec(shape, "float32")
    return {preprocessor.input_name: sound, "lengths": tf.TensorSpec((None,), "int32")}


def batch_by_sound(recordings, batch_size, *, shuffle=False, seed=0, drop_remainder=False):
    """A function that yields the indices of each batch, other ones in every epoch if shuffled.

    Its attribute `count` says how many there are, and `size` how large all are, or None.
    """
    lengths = np.array([len(recording.sound) for recording in recordings])
    kept = len(recordings) // batch_size * batch_size if drop_remainder else len(recordings)
    count = -(-kept // batch_size)
    check_batches(count)
    generator = np.random.default_rng(seed)

    def cut():
        # Lengths are blurred, so that a recording meets others in every epoch.
        blur = generator.uniform(0.8, 1.25, len(lengths)) if shuffle else 1.0
        order = np.argsort(lengths * blur, kind="stable")
        batches = [order[start : start + batch_size] for start in range(0, kept, batch_size)]
        turn = generator.permutation(count) if shuffle else range(count)
        yield from (batches[k] for k in turn)

    cut.count, cut.size = count, batch_size if drop_remainder else None
    return cut


def generate_batches(tf, cut, make, signature):
    """A dataset of what `make` gives for the indices of each batch of `batch_by_sound`.

    Args:
        make: function of the indices of a batch, and of the rows of it that are wanted.
    """

    def generate(produce, specs):
        batches = tf.data.Dataset.from_generator(produce, output_signature=specs)
        return batches.apply(tf.data.experimental.assert_cardinality(cut.count)).prefetch(2)

    def make_share(share):
        def produce():
            for rows in cut():
                yield make(rows, share.rows(len(rows))), len(rows)

        return generate(produce, (signature, tf.TensorSpec((), "int32")))

    def produce():
        for rows in cut():
            yield make(rows, range(len(rows)))

    if cut.size is not None:
        signature = tf.nest.map_structure(
            lambda spec: tf.TensorSpec((cut.size, *spec.shape[1:]), spec.dtype), signature
        )
    return make_in_shares(generate(produce, signature), make_share)
