"""Recordings of digit sequences, made by joining recordings of single digits."""

import re

import numpy as np

from keras_attention.data.readers.recordings import Recording
from keras_attention.data.readers.tfds_builder import find_tfds_builder, prepare_builder
from keras_attention.files.extras import import_num2words, import_tfds

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = ("george", "jackson", "nicolas", "theo", "yweweler")
RATE = 8000
TOP_DB = 8.0, 40.0  # reduces errors on new voices for models that read whole recordings
TEST, DEV = range(5), range(5, 10)  # indices of recordings of each speaker and digit


def connected_digits(
    num_train=4000,
    num_dev=250,
    num_test=500,
    *,
    speakers=SPEAKERS,
    max_digits=7,
    speeds=(1.0,),
    top_db=None,
    seed=0,
    data_dir=None,
):
    """Make a `DataSet` of `Recording` of digit sequences, joined from TFDS's `spoken_digit`.

    The data is from Jackson et al. (*Free Spoken Digit Dataset*, CC BY-SA 4.0). Recordings have a
    sampling rate of 8,000 Hz and transcripts such as `"seven two"`. All digits in a sequence are
    from one speaker. Test sequences use recordings 0 to 4 of each speaker and digit, which are the
    authors' test set. Dev sequences use recordings 5 to 9, and train sequences use the rest.

    Args:
        num_train, num_dev, num_test: int, the number of sequences in each split.
        speakers: list of str, the speakers to include. To test on a new voice, leave this voice out
            of one dataset, and make a second dataset with only this voice.
        max_digits: int, the maximum number of digits in a sequence.
        speeds: playback speeds of the recordings in train sequences, drawn at random. Faster
            recordings also have a higher pitch, so a model learns from more voices (Ko et al.,
            2015, *Audio augmentation for speech recognition*: 0.9, 1.0, 1.1).
        top_db: (lowest, highest), a range in decibels, or None for no trimming. A random threshold
            from this range is drawn for each recording in a train sequence. The start and end of
            the recording are cut off where they are quieter than its loudest frame by more than the
            threshold, as in `librosa.effects.trim`. This teaches a model to recognize clipped
            digits, such as *six* without its soft end. (8, 40) helps models that read whole
            recordings, but not streaming ones.
        seed: int, the random seed for all choices.
        data_dir: path of the folder with TFDS's data. None uses TFDS's default.

    Raises:
        ValueError: a speaker is unknown, or an argument is out of its range.

    Example (downloads the data):

        seen = ka.data.connected_digits(speakers=["george", "jackson", "nicolas", "theo"])
        unseen = ka.data.connected_digits(0, 0, 500, speakers=["yweweler"])
    """
    if unknown := [name for name in speakers if name not in SPEAKERS]:
        raise ValueError(f"speakers has {unknown[0]!r}: expected some of {', '.join(SPEAKERS)}.")
    if not speeds or not all(0.5 <= speed <= 2 for speed in speeds):
        raise ValueError(f"speeds={speeds!r}: expected numbers from 0.5 to 2, such as 0.9 and 1.1.")
    if top_db is not None:
        check_range(top_db)
    parts = {"train": [], "dev": [], "test": []}
    for speaker, digit, number, samples in _read(data_dir):
        if speaker in speakers:
            part = "test" if number in TEST else "dev" if number in DEV else "train"
            for speed in speeds if part == "train" else (1.0,):
                parts[part].append((speaker, digit, change_speed(samples, speed)))
    counts, joined = {"train": num_train, "dev": num_dev, "test": num_test}, {}
    seeds = np.random.SeedSequence(seed).spawn(3)
    for (part, count), part_seed in zip(counts.items(), seeds, strict=True):
        options = {"top_db": top_db if part == "train" else None}
        generator = np.random.default_rng(part_seed)
        joined[part] = join_digits(parts[part], count, max_digits, generator, **options)
    notes = (
        "strings are joined recordings of single digits, each string of one speaker: in test those "
        "numbered 0 to 4 of each speaker and digit, the test set of the authors, in dev 5 to 9",
    )
    if tuple(speeds) != (1.0,):
        listed = ", ".join(f"{speed:g}" for speed in speeds)
        notes += (f"recordings in train strings are played at one of the speeds {listed}",)
    if top_db is not None:
        notes += (
            "recordings in train strings lose what is softer than their loudest frame by more than "
            f"{top_db[0]:g} to {top_db[1]:g} decibels before they begin and after they end",
        )
    return Recording.collect(**joined, sampling_rate=RATE, dev_fraction=0, notes=notes)


def spoken_numbers(*args, language="de", **keywords):
    """Make a `DataSet` of spoken English digits, with the number in words of another language.

    Use it to test speech translation that must reorder words: `"seven two"` becomes
    *zweiundsiebzig*. The library `num2words` converts the number, without leading zeros, to words
    of `language`, the `translation` of each `Recording`. All other arguments are passed to
    `connected_digits`.

    Example (downloads the data):

        data = ka.data.spoken_numbers(4000, speakers=["george", "jackson", "nicolas", "theo"])
    """
    name_number = make_number_namer(language)
    data = connected_digits(*args, **keywords)
    parts = {
        name: [one._replace(translation=name_number(one.text)) for one in part]
        for name, part in data.parts.items()
    }
    notes = (*data.notes, f"numbers are written in words of the language {language!r}")
    return Recording.collect(**parts, sampling_rate=RATE, dev_fraction=0, notes=notes)


def make_number_namer(language):
    """Return a function from English digits (`"seven two"`) to the number 72 in `language`."""
    num2words = import_num2words("spoken_numbers")
    try:
        num2words(7, lang=language)
    except NotImplementedError as error:
        raise ValueError(
            f"language={language!r}: expected a language of num2words, such as 'de', 'fr' or 'es'."
        ) from error

    def name_number(text):
        digits = "".join(str(WORDS.index(word)) for word in text.split())
        return num2words(int(digits), lang=language)

    return name_number


def check_range(top_db):
    """Raise a ValueError unless `top_db` is a pair (lowest, highest) with 0 < lowest <= highest."""
    pair = isinstance(top_db, list | tuple) and len(top_db) == 2
    if not pair or not 0 < top_db[0] <= top_db[1]:
        raise ValueError(
            f"top_db={top_db!r}: expected (lowest, highest) in decibels, such as (8, 40), or None."
        )


def join_digits(recordings, count, max_digits, generator, top_db=None):
    """Join recordings of single digits at random, and return `count` sequences as `Recording`s.

    Args:
        recordings: list of (speaker, digit, samples).
        count: int, the number of sequences.
        max_digits: int, the maximum number of digits. All lengths up to it are equally likely.
        generator: a NumPy generator. It chooses speakers, lengths, recordings, and pauses of up to
            a tenth of a second before, between and after the digits.
        top_db: (lowest, highest), the range to draw the `top_db` of `trim` from for each recording.
            None for no trimming.
    """
    by_speaker = {}
    for speaker, digit, samples in recordings:
        by_speaker.setdefault(speaker, []).append((digit, samples))
    strings = []
    for _ in range(count):
        speaker = sorted(by_speaker)[generator.integers(len(by_speaker))]
        own = by_speaker[speaker]
        length = generator.integers(1, max_digits + 1)
        chosen = [own[k] for k in generator.integers(len(own), size=length)]
        if top_db is not None:
            drawn = generator.uniform(*top_db, size=length)
            chosen = [(digit, trim(one, d)) for (digit, one), d in zip(chosen, drawn, strict=True)]
        silences = generator.integers(0, RATE // 10, size=length + 1)
        pieces = [np.zeros(silences[0], "float32")]
        for (_, samples), silence in zip(chosen, silences[1:], strict=True):
            pieces += [samples, np.zeros(silence, "float32")]
        text = " ".join(WORDS[digit] for digit, _ in chosen)
        strings.append(Recording(np.concatenate(pieces), text, speaker))
    return strings


def trim(samples, top_db):
    """Return the samples (n,) from the first loud frame to the last loud one.

    Frames are 20 ms long and begin every 10 ms. A frame is loud if its power is at most `top_db`
    decibels below the power of the loudest frame (McFee et al., *librosa*, `effects.trim`).
    """
    size, stride = RATE // 50, RATE // 100
    padded = np.pad(samples, (0, size - 1))
    powers = np.mean(np.lib.stride_tricks.sliding_window_view(padded, size)[::stride] ** 2, axis=1)
    (loud,) = np.nonzero(powers >= powers.max() * 10 ** (-top_db / 10))
    return samples[loud[0] * stride : loud[-1] * stride + size]


def change_speed(samples, speed):
    """Resample `samples` (n,) to round(n / speed) samples, which play `speed` times as fast."""
    if speed == 1:
        return samples
    length = round(len(samples) / speed)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * (length / len(samples))).astype("float32")


def _read(data_dir):
    """Yield (speaker, digit, index, samples) for each recording of a digit in `spoken_digit`."""
    tfds = import_tfds("connected_digits")
    builder = find_tfds_builder(tfds, "spoken_digit", data_dir)
    builder = prepare_builder(tfds, builder, "spoken_digit")
    for split in builder.info.splits:
        for example in tfds.as_numpy(builder.as_dataset(split=split)):
            name = example["audio/filename"].decode()
            digit, speaker, number = re.match(r"(\d)_(\w+)_(\d+)", name).groups()
            samples = example["audio"].astype("float32") / 32768
            yield speaker, int(digit), int(number), samples
