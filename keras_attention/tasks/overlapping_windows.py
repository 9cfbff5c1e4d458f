"""Recordings of any length for CTC models: overlapping windows, and words with times."""

import itertools
import typing

import numpy as np

from keras_attention.tasks.transcript import Word

SECONDS, OVERLAP = 30.0, 4.0  # length of a window, and of the part that it shares with the next


class Window(typing.NamedTuple):
    """A window of a recording, in encoder vectors from the beginning of the recording.

    Attributes:
        start, end: ints, the vectors that the model computes.
        first, last: ints, the vectors from `first` to before `last` are kept.
    """

    start: int
    end: int
    first: int
    last: int


def cut_windows(count, size, overlap):
    """Cut a recording into windows of equal size that overlap.

    Vectors near the end of a window do not depend on the next sounds, so neighbors are cut in the
    middle of their overlap. The last window may be shorter.

    Args:
        count: int, the number of vectors in the recording.
        size: int, the number of vectors in a window.
        overlap: int, how many vectors two windows share, less than `size`.

    Returns:
        A list of `Window`. Their kept parts join without a gap.
    """
    starts = [0]
    while starts[-1] + size < count:
        starts.append(starts[-1] + size - overlap)
    cuts = [0, *(start + overlap // 2 for start in starts[1:]), count]
    return [
        Window(start, min(start + size, count), *cuts[k : k + 2]) for k, start in enumerate(starts)
    ]


def join_windows(compute, sound, windows, vector, rows):
    """Compute the logits of all windows, and join their kept parts to logits (T, V).

    Args:
        compute: function from a list of pieces of `sound` to logits (B, T, V).
        sound: samples (n,), or features (n, F).
        windows: list of `Window`.
        vector: int, the number of samples, or of frames, that become one encoder vector.
        rows: int, the maximum number of pieces in one call.
    """
    pieces = [sound[one.start * vector : one.end * vector] for one in windows[:-1]]
    pieces.append(sound[windows[-1].start * vector :])
    parts = []
    for k in range(0, len(pieces), rows):
        logits = compute(pieces[k : k + rows])
        for one, row in zip(windows[k : k + rows], logits, strict=True):
            parts.append(row[one.first - one.start : one.last - one.start])
    return np.concatenate(parts)


def collapse(logits):
    """Return the most probable label of each vector, without repeats, for logits (T, V)."""
    return [label for label, _ in itertools.groupby(logits.argmax(axis=1).tolist())]


def find_words(logits, tokens, separator, seconds):
    """Return the words that a CTC model hears, with times.

    Each label is taken from the most probable one of a vector. A word begins with the first vector
    of its first label, and ends after the last vector of its last label.

    Args:
        logits: float (T, V), the logits of a recording. Label 0 is the blank.
        tokens: list of str, the token of each label from 1.
        separator: str, the token between words, or None if every token is a word.
        seconds: float, the duration of a vector.

    Returns:
        A list of `ka.tasks.Word`.
    """
    logits = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    words, end, parts = [], 0, []

    def close():
        if parts:
            text = "".join(text for text, *_ in parts)
            probability = float(np.mean([share for *_, share in parts]))
            words.append(Word(text, parts[0][1] * seconds, parts[-1][2] * seconds, probability))
            parts.clear()

    for label, run in itertools.groupby(logits.argmax(axis=1).tolist()):
        start, end = end, end + len(list(run))
        if label == 0:
            continue
        if separator is None or tokens[label - 1] == separator:
            close()
        if tokens[label - 1] != separator:
            parts.append((tokens[label - 1], start, end, shares[start:end, label].max()))
    close()
    return words
