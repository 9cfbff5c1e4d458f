"""Exact match and F1 of answers, computed like the official SQuAD scripts."""

import collections
import re
import string

VERSIONS = ("1.1", "2.0")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text):
    """Lowercase an answer, and remove punctuation, English articles and extra spaces.

    "The  U.S. (an  ally)" becomes "us ally", as in the official SQuAD script (Rajpurkar et al.,
    2016, section 6.1).
    """
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def compute_exact_match(prediction, answer):
    """Return 1.0 if `prediction` equals `answer` after `normalize_answer`, else 0.0."""
    return float(normalize_answer(prediction) == normalize_answer(answer))


def compute_answer_f1(prediction, answer, version="2.0"):
    """Return how well the words of two answers agree, as an F1 from 0 to 1.

    Args:
        prediction, answer: str. The function calls `normalize_answer` on both.
        version: `"1.1"` or `"2.0"`, the version of the official SQuAD script. If an answer has no
            words, the result is 0, but 1 in version 2.0 if both have no words.
    """
    predicted, true = (normalize_answer(text).split() for text in (prediction, answer))
    if version != "1.1" and not (predicted and true):
        return float(predicted == true)
    same = sum((collections.Counter(predicted) & collections.Counter(true)).values())
    return 2.0 * same / (len(predicted) + len(true)) if same else 0.0


def score_answers(predictions, answers, *, version="2.0"):
    """Score predicted answers to questions by exact match and F1, as the official SQuAD scripts do.

    Each prediction is compared with the human answer that gives the highest score (Rajpurkar et
    al., 2016, section 6.1, and 2018, *SQuAD 2.0*, section 5).

    Args:
        predictions: list of str, one per question. An empty string means "no answer".
        answers: list of lists of str, the human answers to each question. The inner list is empty
            if the context does not answer the question.
        version: `"1.1"` or `"2.0"`, the version of the official script. 2.0 first drops human
            answers that `normalize_answer` makes empty. A question without human answers is then
            unanswerable, and only an empty prediction is right.

    Returns:
        A dict of means over questions: `"exact_match"` and `"f1"`, from 0 to 1 (the scripts print
        percent). With version 2.0 and both answerable and unanswerable questions, also
        `"answerable_exact_match"`, `"answerable_f1"` and `"unanswerable_exact_match"`.

    Raises:
        ValueError: the lists are empty or differ in length, or the version is unknown.

    ```python
    import keras_attention as ka

    scores = ka.training.score_answers(
        ["the cat", "in a hat", ""], [["cat", "a black cat"], ["the hat"], []]
    )
    assert round(scores["exact_match"], 3) == 0.667 and round(scores["f1"], 3) == 0.889
    assert scores["unanswerable_exact_match"] == 1.0
    ```
    """
    if version not in VERSIONS:
        raise ValueError(f"version={version!r}: expected one of {', '.join(VERSIONS)}.")
    if len(predictions) != len(answers) or not predictions:
        raise ValueError(
            f"{len(predictions)} predictions and {len(answers)} lists of answers: expected one "
            "list for each prediction, and at least one."
        )
    rows = []
    for prediction, texts in zip(predictions, answers, strict=True):
        if isinstance(texts, str):
            raise ValueError(f"answers has the string {texts[:40]!r}: expected lists of strings.")
        true = [text for text in texts if version == "1.1" or normalize_answer(text)]
        true, answerable = true or [""], bool(true)
        exact = max(compute_exact_match(prediction, text) for text in true)
        f1 = max(compute_answer_f1(prediction, text, version) for text in true)
        rows.append((exact, f1, answerable))
    scores = {"exact_match": _mean(r[0] for r in rows), "f1": _mean(r[1] for r in rows)}
    kinds = {kind: [row for row in rows if row[2] is kind] for kind in (True, False)}
    if version == "2.0" and all(kinds.values()):
        scores |= {
            "answerable_exact_match": _mean(row[0] for row in kinds[True]),
            "answerable_f1": _mean(row[1] for row in kinds[True]),
            "unanswerable_exact_match": _mean(row[0] for row in kinds[False]),
        }
    return scores


def find_threshold(scores, missing):
    """Find the threshold above which a model should not answer, as the SQuAD 2.0 script does.

    The threshold gives the highest mean score. It lies halfway between the values of two questions,
    so that a decision never depends on rounding.

    Args:
        scores: list of (score if the model answers, score if it does not answer), each from 0 to 1,
            one pair per question.
        missing: list of float, one per question: the model's score of "no answer" minus the score
            of its best answer. If this difference is above the threshold, the question counts as
            unanswered.

    Returns:
        A tuple: the threshold, and the mean score with this threshold.
    """
    total = sum(none for _, none in scores)  # the lowest threshold: no question gets an answer
    best, threshold = total, min(missing, default=0.0) - 1.0
    order = sorted(range(len(scores)), key=lambda i: missing[i])
    for place, i in enumerate(order):
        total += scores[i][0] - scores[i][1]
        higher = missing[order[place + 1]] if place + 1 < len(order) else missing[i] + 2.0
        if higher > missing[i] and total > best:
            best, threshold = total, (missing[i] + higher) / 2
    return threshold, best / max(1, len(scores))


def _mean(values):
    values = list(values)
    return sum(values) / len(values)
