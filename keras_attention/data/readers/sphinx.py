"""Recordings as CMU Sphinx keeps them: lists of files, transcripts, and cepstra in files."""

import pathlib
import re

import numpy as np

from keras_attention.data.readers.columns import UTF_8, read_lines
from keras_attention.files.io import leads_outside

FEATURES = ".mfc"
SOUNDS = (("feat", FEATURES), ("wav", ".wav"), ("wav", ".flac"))  # in this order


def read_features(path, *, differences=True):
    """Return the cepstra in a file of Sphinx, float32 (T, 13), as its recognizers take them.

    (Lee et al., 1990.) A file holds how many numbers follow, int32, and these as float32, both big
    endian, or both little endian; 13 are a frame of 10 ms. The mean of each cepstrum over the
    recording is subtracted, which takes away what the microphone adds to all of it.

    Args:
        path: path of a `.mfc` file.
        differences: bool, whether the first and second differences in time follow each frame, as
            `-feat 1s_c_d_dd` has them: (T, 39).

    Raises:
        ValueError: no such file, or not one of cepstra.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path}: expected one of cepstra, which Sphinx writes.")
    content = path.read_bytes()
    for order in ">", "<":
        count = np.frombuffer(content[:4], f"{order}i4")
        if len(count) and count[0] > 0 and 4 + 4 * int(count[0]) == len(content):
            numbers = np.frombuffer(content, f"{order}f4", offset=4).astype("float32")
            break
    else:
        raise ValueError(
            f"{path} is no file of cepstra: its first number, int32, does not say how many follow."
        )
    if len(numbers) % 13 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{path} has {len(numbers)} numbers: expected finite ones, 13 of each frame."
        )
    cepstra = numbers.reshape(-1, 13)
    cepstra = cepstra - cepstra.mean(axis=0)
    return add_differences(cepstra) if differences else cepstra


def add_differences(features):
    """Features (T, F) with their first and second differences: (T, 3 F).

    c[t + 2] - c[t - 2], and (c[t + 3] - c[t - 1]) - (c[t + 1] - c[t - 3]); the first and the last
    frame stand for those before and after.
    """
    padded = np.pad(features, [(3, 3), (0, 0)], mode="edge")

    def shift(by):
        return padded[3 + by : len(padded) - 3 + by]

    first = shift(2) - shift(-2)
    second = (shift(3) - shift(-1)) - (shift(1) - shift(-3))
    return np.concatenate([features, first, second], axis=1)


def list_sphinx(path, encoding=UTF_8):
    """Return (place for errors, file, transcript, speaker) of each line of a list, `NAME.fileids`.

    `NAME.transcription` beside it has a line `WORDS (id)` for each, in the same order, where id is
    the last part of the path; the files are in `feat/` or `wav/` beside the folder of the list.
    The speaker is the folder of a file.
    """
    path = pathlib.Path(path)
    texts = path.with_suffix(".transcription")
    for file in (path, texts):
        if not file.is_file():
            raise ValueError(f"There is no file {file}: expected a list of Sphinx and its texts.")
    ids, lines = (
        [line for _, line in read_lines(file, encoding) if line.strip()] for file in (path, texts)
    )
    if len(ids) != len(lines):
        raise ValueError(
            f"{path} has {len(ids)} lines, and {texts} {len(lines)}: expected as many."
        )
    recordings = []
    for number, (name, line) in enumerate(zip(map(str.strip, ids), lines, strict=True), start=1):
        place, sound = f"{path}, line {number}", pathlib.PurePosixPath(name)
        match = re.fullmatch(r"(.*)\(([^()]*)\)\s*", line)
        if match is None or match[2] != sound.name:
            raise ValueError(
                f"{texts}, line {number}: {line[:60]!r}: expected words and ({sound.name})."
            )
        words = [word for word in match[1].split() if word not in ("<s>", "</s>", "<sil>")]
        if leads_outside(name):
            raise ValueError(f"{place}: {name!r} is outside of the folders feat/ and wav/.")
        root = path.parent.parent
        files = [root / folder / f"{name}{suffix}" for folder, suffix in SOUNDS]
        existing = [file for file in files if file.is_file()]
        if not existing:
            raise ValueError(f"{place}: there is neither {files[0]} nor {files[1]}.")
        recordings.append((place, existing[0], " ".join(words), sound.parent.name or None))
    return recordings
