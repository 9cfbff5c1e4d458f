"""Connected digits: recordings of single digits, joined to strings of several."""

import re

import numpy as np

from keras_attention.data.readers.recordings import Recording
from keras_attention.data.readers.tfds_builder import find_tfds_builder, prepare_builder
from keras_attention.files.extras import import_num2words, import_tfds

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = ("george", "jackson", "nicolas", "theo", "yweweler")
RATE = 8000
TOP_DB = 8.0, 40.0  # to train models of whole strings: fewer errors with voices never heard
TEST, DEV = range(5), range(5, 10)  # recordings of a speaker and a digit, by their number


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
    """Strings of 1 to 7 spoken digits, joined of the recordings of TFDS's `spoken_digit`.

    (Jackson et al., *Free Spoken Digit Dataset*, CC BY-SA 4.0.) The recordings of a string are of
    one speaker. Those numbered 0 to 4 of each speaker and digit, the test set of the authors, are
    in test strings only, those from 5 to 9 in dev strings only, all others in train strings.

    Args:
        num_train, num_dev, num_test: int, strings.
        speakers: names of those who are heard: to leave one out, leave it out here, and ask for the
            strings of that one alone.
        max_digits: int, of a string.
        speeds: of the recordings in train strings, each as likely. A faster one has a higher voice,
            too, so that a model hears more speakers than there are (Ko et al., 2015, *Audio
            augmentation for speech recognition*: 0.9, 1.0, 1.1).
        top_db: (lowest, highest), or None: each recording in a train string loses what is softer
            than its loudest frame by more than a number of decibels, drawn from there, before it
            begins and after it ends, as `librosa.effects.trim` does it. So a model learns to do
            without what a recorder cut off, such as the soft ends of *six*: (8, 40) helps models
            that hear whole strings, and not those that stream.
        seed: int, of all draws.
        data_dir: where TFDS keeps its data; None for its own default.

    Returns:
        A `DataSet` of `Recording` with 8000 samples a second, texts such as `"seven two"`.

    Example (downloads the data):

        seen = ka.data.connected_digits(speakers=["george", "jackson", "nicolas", "theo"])
        unseen = ka.data.connected_digits(0, 0, 500, speakers=["yweweler"])
    """
    if unknown := [name for name in speakers if name not in SPEAKERS]:
        raise ValueError(f"There is no speaker {unknown[0]!r}: there are {', '.join(SPEAKERS)}.")
    if not speeds or not all(0.5 <= speed <= 2 for speed in speeds):
        raise ValueError(f"speeds={speeds!r}: expected numbers from 0.5 to 2, such as 0.9 and 1.1.")
    if top_db is not None:
        check_range(top_db)
    recordings = _read(data_dir)
    parts = {"train": [], "dev": [], "test": []}
    for speaker, digit, number, samples in recordings:
        if speaker in speakers:
            part = "test" if number in TEST else "dev" if number in DEV else "train"
            for speed in speeds if part == "train" else (1.0,):
                parts[part].append((speaker, digit, change_speed(samples, speed)))
    counts = {"train": num_train, "dev": num_dev, "test": num_test}
    seeds = np.random.SeedSequence(seed).spawn(3)
    joined = {
        part: join_digits(
            parts[part],
            count,
            max_digits,
            np.random.default_rng(one),
            top_db=top_db if part == "train" else None,
        )
        for (part, count), one in zip(counts.items(), seeds, strict=True)
    }
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
    """Strings of spoken English digits, and the numbers that they are in words of another language.

    For speech translation that has to reorder: `"seven two"` is *zweiundsiebzig*. The words are
    those of `num2words`; zeros in front of a number are not written.

    Args:
        language: str, one that `num2words` knows.
        *args, **keywords: those of `connected_digits`.

    Returns:
        A `DataSet` of `Recording`, with the digits as texts and the number as translation.

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
    """Return a function from digits in English, such as `"seven two"`, to that number in words."""
    num2words = import_num2words("spoken_numbers")
    try:
        num2words(7, lang=language)
    except NotImplementedError as error:
        raise ValueError(
            f"language={language!r}: num2words knows no such language; try 'de', 'fr' or 'es'."
        ) from error

    def name_number(text):
        digits = "".join(str(WORDS.index(word)) for word in text.split())
        return num2words(int(digits), lang=language)

    return name_number


def check_range(top_db):
    """Refuses what is not two numbers of decibels."""
    pair = isinstance(top_db, list | tuple) and len(top_db) == 2
    if not pair or not 0 < top_db[0] <= top_db[1]:
        raise ValueError(
            f"top_db={top_db!r}: expected two numbers of decibels, the lower one first, such as "
            "(8, 40), or None."
        )


def join_digits(recordings, count, max_digits, generator, top_db=None):
    """Return `count` strings of digits, a list of `Recording`.

    Args:
        recordings: list of (speaker, digit, samples).
        max_digits: int, of a string; each length is as likely.
        generator: NumPy's, for speakers, lengths, recordings and the silence between them, which
            lasts up to a tenth of a second.
        top_db: (lowest, highest), or None, from which `trim` gets a number for each recording.
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
    """Samples (n,) without those before the first loud frame and after the last one.

    A frame of 20 ms, one of which begins every 10, is loud if it has at most `top_db` decibels less
    power than the loudest (McFee et al., *librosa*, `effects.trim`).
    """
    size, stride = RATE // 50, RATE // 100
    padded = np.pad(samples, (0, size - 1))
    powers = np.mean(np.lib.stride_tricks.sliding_window_view(padded, size)[::stride] ** 2, axis=1)
    (loud,) = np.nonzero(powers >= powers.max() * 10 ** (-top_db / 10))
    return samples[loud[0] * stride : loud[-1] * stride + size]


def change_speed(samples, speed):
    """Samples (n,) as (round(n / speed),), resampled in the frequencies that both lengths hold."""
    if speed == 1:
        return samples
    length = round(len(samples) / speed)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    return (np.fft.irfft(spectrum, length) * (length / len(samples))).astype("float32")


def _read(data_dir):
    """(speaker, digit, number, samples) of all single digits."""
    tfds = import_tfds("connected_digits")
    builder = prepare_builder(
        tfds, find_tfds_builder(tfds, "spoken_digit", data_dir), "spoken_digit"
    )
    for split in builder.info.splits:
        for example in tfds.as_numpy(builder.as_dataset(split=split)):
            name = example["audio/filename"].decode()
            digit, speaker, number = re.match(r"(\d)_(\w+)_(\d+)", name).groups()
            samples = example["audio"].astype("float32") / 32768
            yield speaker, int(digit), int(number), samples
