"""Windows of a question and its context, and answers as spans of tokens."""

import typing

import numpy as np


class QuestionWindow(typing.NamedTuple):
    """A question, and the part of its context that fits into one row of a model's input.

    Attributes:
        inputs: dict from the name of each model input to an int32 array (T,).
        tokens: tuple of the T words or subwords in the row.
        begin: int, the position in the row of the first token of the context.
        first: int, the index of this token in the whole context.
        count: int, the number of context tokens in the window.
    """

    inputs: dict
    tokens: tuple
    begin: int
    first: int
    count: int


class EncodedQuestion(typing.NamedTuple):
    """A question with a long context, as windows that a model can read.

    `windows` is a list of `QuestionWindow`. `spans` are int (n, 2): the index of the
    first character of each context token, and the index after its last character.
    """

    windows: list
    spans: np.ndarray


class Span(typing.NamedTuple):
    """An answer in a context, `context[start:end]`, with its score.

    `start` and `end` are None for "no answer". `score` is the sum of the start logit and the end
    logit.
    """

    start: int | None
    end: int | None
    score: float


def cut_windows(length, room, stride):
    """Divide `length` tokens into overlapping windows of up to `room` tokens.

    Return a list of (first token, number of tokens). Consecutive windows share `stride` tokens, or
    half of `room` if that is less.
    """
    step = max(1, room - min(stride, room // 2))
    windows, first = [], 0
    while not windows or sum(windows[-1]) < length:
        windows.append((first, min(room, length - first)))
        first += step
    return windows


def locate_answer(spans, answer):
    """Return the indices (first, last) of the tokens that `answer`, an `Answer`, covers, or None.

    `spans` are the (start, end) characters of all tokens in the context, int (n, 2).
    """
    touched = np.flatnonzero((spans[:, 0] < answer.end) & (spans[:, 1] > answer.start))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


def place_in_window(window, tokens):
    """Convert two indices of tokens in the whole context to positions in a `QuestionWindow`.

    `tokens` and the result are pairs (first, last). The result is None if the window does not
    contain both tokens.
    """
    first, last = (number - window.first for number in tokens)
    if first < 0 or last >= window.count:
        return None
    return window.begin + first, window.begin + last


def search_span(start_logits, end_logits, encoded, *, maximum_answer, no_answer=False):
    """Find the answer with the highest score in all windows of a question.

    Args:
        start_logits, end_logits: lists of arrays (T,), one for each window.
        encoded: `EncodedQuestion`, the windows of the question.
        maximum_answer: int, the maximum number of tokens in an answer.
        no_answer: bool, whether the first position of each window stands for "no answer". The score
            of "no answer" is then the lowest in any window, because a window without the answer
            says little about the other windows.

    Returns:
        (best, null, total). `best` is the `Span` with the highest score, and the first of several
        equal ones. `null` is the score of "no answer", or None. `total` is the logarithm of the sum
        of exp(score) over all answers.
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
            spans = encoded.spans[window.first :]
            best = Span(int(spans[i, 0]), int(spans[j, 1]), float(scores[i, j]))
        nothing.append(float(start[0]) + float(end[0]))
    null = min(nothing) if no_answer else None
    every = np.concatenate([*every, *([[null]] if no_answer else [])])
    return best, null, float(np.logaddexp.reduce(every))
