"""Recordings of CMU Sphinx: lists of files, transcripts, and files with cepstra."""

import pathlib
import re

import numpy as np

from keras_attention.data.readers.tables import read_lines
from keras_attention.files.io import leads_outside

FEATURES = ".mfc"
SOUNDS = (("feat", FEATURES), ("wav", ".wav"), ("wav", ".flac"))  # searched in this order


def read_features(path, *, differences=True):
    """Read the cepstra (speech features) in a `.mfc` file of CMU Sphinx, float32 (T, 13).

    Sphinx is a speech recognizer (Lee et al., 1990). The file contains the count of its values,
    int32, followed by the values, float32, either all big-endian or all little-endian. A frame of
    10 ms has 13 values. The mean of each value over the recording is subtracted, which removes
    constant effects of the microphone. If `differences` is True, the first and second differences
    in time are appended to each frame, (T, 39), as with `-feat 1s_c_d_dd`. Raise a ValueError if
    the file is missing or damaged.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise ValueError(f"The file {path} is missing: expected cepstra, as Sphinx writes them.")
    content = path.read_bytes()
    for order in ">", "<":
        count = np.frombuffer(content[:4], f"{order}i4")
        if len(count) and count[0] > 0 and 4 + 4 * int(count[0]) == len(content):
            numbers = np.frombuffer(content, f"{order}f4", offset=4).astype("float32")
            break
    else:
        raise ValueError(
            f"{path} is not a file of cepstra: its first int32 is not the count of its numbers."
        )
    if len(numbers) % 13 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{path} has {len(numbers)} numbers: expected finite numbers, 13 for each frame."
        )
    cepstra = numbers.reshape(-1, 13)
    cepstra = cepstra - cepstra.mean(axis=0)
    return add_differences(cepstra) if differences else cepstra


def add_differences(features):
    """Append the first and second differences in time to features (T, F), and return (T, 3 F).

    T is the number of frames, and F the number of features. For features c, the differences are c[t
    + 2] - c[t - 2] and (c[t + 3] - c[t - 1]) - (c[t + 1] - c[t - 3]). The sequence is padded by
    repeating its first and last frame.
    """
    padded = np.pad(features, [(3, 3), (0, 0)], mode="edge")

    def shift(by):
        return padded[3 + by : len(padded) - 3 + by]

    first = shift(2) - shift(-2)
    second = (shift(3) - shift(-1)) - (shift(1) - shift(-3))
    return np.concatenate([features, first, second], axis=1)


def list_sphinx(path, encoding="utf-8"):
    """List the recordings in a file list of CMU Sphinx, `NAME.fileids`.

    Return a list of (place, file, transcript, speaker). The place is the list and line, for error
    messages. `NAME.transcription` in the same folder has a line `WORDS (id)` for each file, in the
    same order. The id is the last part of the path. Files are in `feat/` or `wav/` next to the
    folder of the list. The speaker is the name of the folder that contains the file.
    """
    path = pathlib.Path(path)
    texts = path.with_suffix(".transcription")
    for file in (path, texts):
        if not file.is_file():
            raise ValueError(
                f"The file {file} is missing: expected a list of Sphinx and its transcripts."
            )
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
