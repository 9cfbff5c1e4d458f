"""A question and its context as windows of tokens, and answers as spans of them, and back."""

import typing

import numpy as np


class QuestionWindow(typing.NamedTuple):
    """A question, and as much of its context as a model sees at once.

    `inputs` maps the names of a model's inputs to int32 arrays (T,), and `tokens` are the T words
    or pieces. `begin` is the place of the context's first token that is here, which is number
    `first` of all, and `count` says how many are here.
    """

    inputs: dict
    tokens: tuple
    begin: int
    first: int
    count: int


class EncodedQuestion(typing.NamedTuple):
    """The windows of a question, and the characters of each of the context's tokens.

    `spans` is int (n, 2): where a token begins in the context, and where it has ended.
    """

    windows: list
    spans: np.ndarray


class Span(typing.NamedTuple):
    """Characters `start` to `end` of a context, and what they get: the sum of two logits.

    `start` is None where there is no answer.
    """

    start: int | None
    end: int | None
    score: float


def cut_windows(length, room, stride):
    """Return (first, count) of windows that see `length` tokens, `room` of them at a time.

    Each begins `room - stride` tokens after the one before: `stride` of them are seen twice.

    ```python
    from keras_attention.data.preprocessors.answer_spans import cut_windows

    assert cut_windows(10, room=6, stride=2) == [(0, 6), (4, 6)]
    assert cut_windows(3, room=6, stride=2) == [(0, 3)]
    ```
    """
    step = max(1, room - min(stride, room // 2))
    windows, first = [], 0
    while not windows or sum(windows[-1]) < length:
        windows.append((first, min(room, length - first)))
        first += step
    return windows


def locate_answer(spans, answer):
    """Return (first, last), the numbers of the tokens that an `Answer` touches.

    None where it does none.

    Args:
        spans: int (n, 2), the characters of each token.
    """
    touched = np.flatnonzero((spans[:, 0] < answer.end) & (spans[:, 1] > answer.start))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


def place_in_window(window, tokens):
    """Return (first, last) places in a window of tokens by their numbers.

    None where it lacks one.
    """
    first, last = (number - window.first for number in tokens)
    if first < 0 or last >= window.count:
        return None
    return window.begin + first, window.begin + last


def search_span(start_logits, end_logits, encoded, *, maximum_answer, no_answer=False):
    """Return the best span of all windows of a question, and what else could have been.

    Args:
        start_logits, end_logits: lists of arrays (T,), one for each window.
        encoded: `EncodedQuestion`.
        maximum_answer: int, the tokens of an answer at most.
        no_answer: bool, whether the first place of each window stands for no answer. That has the
            lowest of the windows' scores: one that sees no answer says little about the others.

    Returns:
        (`Span`, the best one; the score of no answer, or None; the logarithm of the sum of e to the
        power of all scores). Of spans with the same score it is the first.
    """
    best, every, nothing = None, [], []
    for start, end, window in zip(start_logits, end_logits, encoded.windows, strict=True):
        context = slice(window.begin, window.begin + window.count)
        scores = start[context, None].astype("float64") + end[None, context]
        ahead = np.arange(window.count)[None] - np.arange(window.count)[:, None]
        scores = np.where((ahead >= 0) & (ahead < maximum_answer), scores, -np.inf)
        every.append(scores.ravel())
        i, j = divmod(int(scores.argmax()), window.count)
        if best is None or scores[i, j] > best.score:
            start_of, end_of = (
                encoded.spans[window.first + i, 0],
                encoded.spans[window.first + j, 1],
            )
            best = Span(int(start_of), int(end_of), float(scores[i, j]))
        nothing.append(float(start[0]) + float(end[0]))
    null = min(nothing) if no_answer else None
    every = np.concatenate([*every, *([[null]] if no_answer else [])])
    return best, null, float(np.logaddexp.reduce(every))
